"""Captured frames of a recording that a model is judged by; those that it was trained on are marked."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.rbf_warp import SimToReal
from softform_core.frames.marker_store import MarkerStore
from softform_core.frames.store import open_recording
from softform_core.networks.sim_to_real_card import SurfaceSimToRealCard
from softform_core.registration.markers import register_markers
from softform_core.robots import Robot


@dataclass(frozen=True)
class Capture:
    """One captured shape.

    Attributes:
        number: Index of the frame in the recording.
        actuation: (k,), commanded.
        points: (M, 3) m in the robot's frame; of markers all, NaN where one is missing.
        trained_on: Whether the model that is judged has learned from it.
        past: (h, k), commanded before it, the oldest first; None if that is not known.
    """

    number: int
    actuation: Array
    points: Array
    trained_on: bool
    past: Array | None = None

    def effective(self, sim_to_real: SimToReal | None) -> Array:
        """Return the effective actuation (k,) according to a model; without a model, the commanded one."""
        return self.actuation if sim_to_real is None else sim_to_real.effective_after(self.past, self.actuation)


@dataclass(frozen=True)
class Captures:
    """The usable frames of a recording.

    Attributes:
        path: Path of the recording.
        via: Capture device, `scanner` or `mocap`.
        source: Hardware, or a reality of the rig.
        created: Time at which the recording was begun.
        frames: Frames that can be compared.
        uv: (M, 2) places of the markers on the surface; None for scans.
        left_out: Frames that cannot be compared, with the reason.
    """

    path: Path
    via: str
    source: str
    created: str
    frames: list[Capture]
    uv: Array | None
    left_out: dict[int, str]


def read_captures(path: Path, robot: Robot, card: SurfaceSimToRealCard | None) -> Captures:
    """Read a recording of scans or of markers; training frames of the evaluated model (by its card) are marked.

    Raises:
        SoftformError: If there is no recording of this robot, or no frame in it that can be compared.
    """
    recording = open_recording(path, robot)
    origin = {name: recording.attributes[name] for name in ("created", "seed", "source", "via")}
    trained_on: set[int] = set()
    if card is not None and origin == {name: getattr(card.frames, name) for name in origin}:
        trained_on = set(card.frames.used)
    frames, left_out = [], {number: f"rejected when collected: {why}" for number, why in recording.rejections.items()}
    uv = register_markers(recording.rest, robot) if isinstance(recording, MarkerStore) else None
    pasts, actuation = recording.pasts(robot.rest_actuation), recording.actuation
    left_out |= {number: f"lost: {why}" for number, why in recording.lost.items()}
    for number in recording.captured.tolist():
        try:
            if isinstance(recording, MarkerStore):
                points = recording.positions(number)
                if not np.isfinite(points).all(axis=1).any():
                    raise SoftformError(f"The markers of frame {number} of {path} are damaged.")
            else:
                points = recording.captured_points(number).astype(np.float64)
        except SoftformError as error:
            left_out[number] = error.message
            continue
        past = None if pasts is None else pasts[number]
        frames.append(Capture(number, actuation[number], points, number in trained_on, past))
    if not frames:
        reasons = "".join(f" Frame {number}: {reason}" for number, reason in sorted(left_out.items())[:3])
        raise SoftformError(
            f"{path} holds no frame that can be compared ({len(recording)} planned).{reasons}",
            f"Collect some with: ./softform collect --robot {robot.given_as} --output {path}",
        )
    via, source, created = (str(origin[name]) for name in ("via", "source", "created"))
    return Captures(path, via, source, created, frames, uv, dict(sorted(left_out.items())))
