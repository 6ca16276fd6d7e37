"""The data set that collecting fills: whether it may be continued with what is asked for, what it lacks and holds."""

import os
import time
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.frames.marker_store import MarkerStore
from softform_core.frames.store import FrameStore, open_recording
from softform_core.halton import halton_actuations
from softform_core.paths import data_dir
from softform_core.provenance import git_revision, now
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

VIA = ("scanner", "mocap")
"""Ways of capturing."""

MOST_FRAMES = 100_000

_SCAN_BYTES, _MARKERS_BYTES, _BAG_BYTES = 5e5, 1e4, 1.5e6
"""Bytes of one frame: about 20000 points; about 40 markers; three seconds of the stack's topics."""

Store: TypeAlias = FrameStore | MarkerStore


def default_output(robot: Robot) -> Path:
    """Return the default folder of a robot's frames."""
    return data_dir() / robot.name / "frames.zarr"


def asked_actuations(robot: Robot, frames: int, seed: int) -> NDArray[np.float64]:
    """Return actuations of a data set, (n, k): the robot at rest, then a Halton sequence over the working range.

    A sequence of so few has none near rest, and what is learned from it is millimetres wrong there, where every target
    that is nearly flat lies.

    Raises:
        SoftformError: If there are none, or more than anybody collects.
    """
    if frames > MOST_FRAMES:
        raise SoftformError(f"{frames} frames were asked for.", f"Ask for {MOST_FRAMES} at most.")
    spread = halton_actuations(robot.actuation_min, robot.actuation_max, frames, seed)
    return np.concatenate([robot.rest_actuation[None], spread])[:frames]


def open_to_continue(
    path: Path, robot: Robot, seed: int, source: str, via: str, *, writable: bool = False
) -> Store | None:
    """Open the data set, if there is one.

    Args:
        path: The store.
        robot: Robot that is captured.
        seed: Seed of the actuations.
        source: Hardware, or the reality of the rig; a data set has frames of one source only.
        via: Capture device: `scanner` or `mocap`.
        writable: Whether frames will be written.

    Raises:
        SoftformError: If it was begun with other ones, or cannot be read.
    """
    if not path.exists():
        return None
    store = open_recording(path, robot, writable=writable)
    for name, asked in (("via", via), ("seed", seed), ("source", source)):
        if store.attributes[name] != asked:
            raise SoftformError(
                f"The frames {path} were begun with {name} '{store.attributes[name]}', not '{asked}'.",
                "Ask for that to continue them, or give another --output.",
            )
    return store


def missing_frames(store: Store, frames: int) -> NDArray[np.int64]:
    """Return the numbers of the pending frames among the first `frames`."""
    return store.pending[store.pending < frames]


def provenance(seed: int, source: str, via: str) -> dict[str, object]:
    """Return the provenance that a new data set is stored with."""
    return {
        "seed": seed,
        "source": source,
        "via": via,
        "git_revision": git_revision(),
        "created": now(),
    }


def begin_session(store: Store, bag: Path | None) -> None:
    """Note that collecting begins or goes on; the raw recording `bag` is named relative to the store's folder."""
    store.begin_session(
        {
            "began": now(),
            "git_revision": git_revision(),
            "bag": "" if bag is None else os.path.relpath(bag, store.path.parent),
        }
    )


def bytes_needed(via: str, with_bag: bool) -> float:
    """Estimate the disk space of one frame, bytes; most of it is the raw recording."""
    return (_SCAN_BYTES if via == "scanner" else _MARKERS_BYTES) + (_BAG_BYTES if with_bag else 0.0)


def free_bag(path: Path) -> Path:
    """Return a folder for the raw recording beside the store, `NAME.bags/DATE-TIME`, which does not exist."""
    return path.with_name(f"{path.stem}.bags") / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def summary_figures(store: Store) -> dict[str, object]:
    """Return figures of a data set; lengths in mm, times in s."""
    coverage = store.coverage[store.captured]
    moments = np.sort(store.captured_at[np.isfinite(store.captured_at)])
    drift = store.references.drift() if isinstance(store, MarkerStore) else np.empty((0, 0))
    return {
        "path": str(store.path),
        "frames": len(store),
        "captured": len(store.captured),
        "rejected": len(store.rejections),
        "lost": len(store.lost),
        "pending": len(store.pending),
        "coverage_mean": round(float(coverage.mean()), 4) if len(coverage) else None,
        "coverage_min": round(float(coverage.min()), 4) if len(coverage) else None,
        "seconds_a_frame": round(float(np.median(np.diff(moments))), 2) if len(moments) > 1 else None,
        "sessions": len(store.sessions),
        "references": len(drift),
        "drift_mean_mm": round(float(MM_PER_M * np.nanmean(drift[-1])), 3) if len(drift) else None,
        "drift_max_mm": round(float(MM_PER_M * np.nanmax(drift)), 3) if len(drift) else None,
    }


def summary_lines(store: Store) -> list[str]:
    """Return the same as text, with the reason of every rejected and of every lost frame."""
    figures = summary_figures(store)
    line = f"{store.path}: {figures['captured']} of {figures['frames']} frames captured"
    if figures["pending"]:
        line += f", {figures['pending']} to go"
    if figures["coverage_mean"] is not None:
        seen = "the markers" if isinstance(store, MarkerStore) else "the robot"
        line += f", {figures['coverage_mean']:.0%} of {seen} seen on average, {figures['coverage_min']:.0%} at least"
    lines = [f"{line}."]
    if figures["seconds_a_frame"] is not None:
        lines.append(f"  {figures['seconds_a_frame']} s a frame, in {figures['sessions']} sessions")
    if figures["references"]:
        lines.append(
            f"  drift in {figures['references']} captures of the reference pose: {figures['drift_mean_mm']:.1f} mm on "
            f"average in the last one, {figures['drift_max_mm']:.1f} mm at most"
        )
    lines += [f"  frame {number} is rejected: {reason}" for number, reason in sorted(store.rejections.items())]
    lines += [f"  frame {number} is lost: {reason}" for number, reason in sorted(store.lost.items())]
    return lines
