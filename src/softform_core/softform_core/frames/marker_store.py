"""Frames captured by a motion-capture system, on disk (see `recording`): positions of named markers.

On top of every recording's arrays: `positions` (n, M, 3) m, NaN where a marker is missing; `rest` (M, 3) m, where the
markers are when no chamber is pressurised, which is how they are placed on the surface. Attribute `marker_names`: M
names, fixed by the rest frame. `coverage` is the share of the markers that is seen. `references` shows drift, if it was
asked for.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.frames.quality import MarkerQuality
from softform_core.frames.recording import ATTRIBUTES, Recording, common_rows, fill_new_group
from softform_core.frames.references import ReferenceCaptures
from softform_core.robots import Robot
from softform_core.stores.zarr_stores import Rows, Shapes, StoreKind, disk_errors, misshapen_rows, new_group


def _rows(inputs: int, markers: int) -> Rows:
    return common_rows(inputs) | {"positions": ((markers, 3), "f8")}


def _misshapen(shapes: Shapes) -> list[str]:
    inputs = shapes.get("actuation", (0, 0))[-1]
    markers = shapes.get("rest", (0,))[0]
    return misshapen_rows(shapes, _rows(inputs, markers)) + ["rest"] * (shapes.get("rest", ())[1:] != (3,))


MARKER_FRAMES = StoreKind(
    name="set of marker frames",
    schema="softform/marker_frames",
    version=2,
    attributes=(*ATTRIBUTES, "marker_names"),
    made_by="./softform collect --via mocap",
    misshapen=_misshapen,
)


class MarkerStore(Recording):
    """An open store; `open_marker_frames` and `create_marker_frames` make one."""

    kind = MARKER_FRAMES

    def _rows(self) -> Rows:
        return _rows(self.actuation.shape[1], len(self.names))

    def _other_commands(self, rest: Array) -> list[tuple[float, Array, int | None]]:
        """Return the commands between frames: the reference pose is reached from rest."""
        references = self.references
        poses = [rest, references.actuation] if len(references) else []
        return [(moment, pose, None) for moment in references.captured_at.tolist() for pose in poses]

    @property
    def names(self) -> list[str]:
        """Names of the M markers."""
        names = self._group.attrs["marker_names"]
        assert isinstance(names, list)
        return [str(name) for name in names]

    @property
    def rest(self) -> Array:
        """Positions at rest, (M, 3) m."""
        return self._read("rest")

    @property
    def references(self) -> ReferenceCaptures:
        """Captures of the reference pose; none unless they were asked for."""
        return ReferenceCaptures(self.path, self._group, self.kind)

    def positions(self, number: int) -> Array:
        """Return the markers of one frame, captured or rejected, (M, 3) m; NaN where missing or pending."""
        return self._row("positions", number)

    def captured_positions(self) -> Array:
        """Return markers of all captured frames, (n, M, 3) m."""
        return self._read("positions")[self.captured]

    def same_positions(self, positions: Array) -> int | None:
        """Return the kept frame with just these positions, or None: two measurements never agree in every digit."""
        kept = self._read("positions")[: len(self)]
        agree = ((kept == positions) | (np.isnan(kept) & np.isnan(positions))).all(axis=(1, 2))
        found = [number for number in self._kept.tolist() if agree[number]]
        return found[0] if found else None

    def write_captured(
        self, number: int, positions: Array, measured: Array, captured_at: float, quality: MarkerQuality
    ) -> None:
        """Keep a frame; it is rejected, with its positions, if its quality (of `MarkerJudge`) has a fault.

        Positions are (M, 3) m in the robot's frame, in the order of `names`, NaN where a marker is missing; `measured`
        (k,) and `captured_at`, s since the epoch, are those of the capture.

        Raises:
            SoftformError: If actuation or time are not finite, or the disk is full or cannot be written.
        """
        if not (np.isfinite(measured).all() and np.isfinite(captured_at)) or np.isinf(positions).any():
            raise SoftformError(f"Frame {number} holds values that are not finite.", "Drop them before it is stored.")
        values: dict[str, ArrayLike] = {"positions": positions, "measured": measured, "captured_at": captured_at}
        with disk_errors(self.path, MARKER_FRAMES):
            self._write(number, values | {"coverage": quality.coverage}, quality.fault)


open_marker_frames = MarkerStore.open


def create_marker_frames(
    path: Path, robot: Robot, actuations: Array, names: list[str], rest: Array, provenance: dict[str, Any]
) -> MarkerStore:
    """Make a store of pending frames; it appears at `path` complete or not at all.

    Args:
        path: Directory of the store, which must not exist.
        robot: Robot that is captured.
        actuations: (n, k).
        names: M names of the markers.
        rest: (M, 3) m, where they are at rest.
        provenance: `seed, source, via, git_revision, created`.

    Raises:
        SoftformError: If the rest frame is not whole, or the disk is full or cannot be written.
    """
    if rest.shape != (len(names), 3) or not np.isfinite(rest).all() or len(set(names)) != len(names) or not names:
        raise SoftformError(
            f"The rest frame has {len(names)} names ({len(set(names))} different) and positions of shape {rest.shape}.",
            "Give each marker a name of its own and a finite position at rest.",
        )
    with new_group(path, MARKER_FRAMES, robot) as group:
        group.attrs.update(provenance | {"marker_names": list(names)})
        fill_new_group(group, _rows(robot.degrees_of_freedom, len(names)), actuations)
        group.create_array("rest", data=np.asarray(rest, dtype=np.float64))
    return open_marker_frames(path, robot, writable=True)
