"""Captured frames on disk: inputs of sim-to-real learning, unfit ones left out, and judges of what is learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.captures import Capture, read_captures
from softform_core.evaluation.evaluate import SURFACE_POINTS, judge, predict_by
from softform_core.evaluation.summary import before_and_after
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import pipeline_of
from softform_core.forward.sim_to_real_store import SimToRealModel
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.frames.marker_store import MarkerStore
from softform_core.frames.store import open_recording
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real_card import HeldOutErrors
from softform_core.robots import Robot
from softform_core.shapes.shape import estimate_normals
from softform_core.training.marker_learning import unfit_markers
from softform_core.training.scan_checks import unfit_scans
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M

POINTS = 1000
"""Points drawn from each scan (paper 000, Table II)."""

_SIMULATED_POINTS = 1000
"""Simulated points of a check; as many as training samples, so that training's own check agrees."""


@dataclass(frozen=True)
class RecordedFrames:
    """The frames of a store that can be learned from.

    Attributes:
        store: Name of the store.
        origin: Attributes `via`, `source`, `seed`, `created` and `git_revision`.
        captures: The frames, whole: what predictions are judged by.
        frames: The same frames as learning takes them.
        coverage: Mean share of the robot, or of its markers, that they show.
        left_out: Number and reason of every other frame that was captured.
    """

    store: str
    origin: dict[str, Any]
    captures: list[Capture]
    frames: Frames | MarkerFrames
    coverage: float
    left_out: dict[int, str]

    @property
    def numbers(self) -> list[int]:
        """Numbers of the frames."""
        return [capture.number for capture in self.captures]

    @property
    def uv(self) -> Array | None:
        """(M, 2) places of the markers; None for scans."""
        return self.frames.uv if isinstance(self.frames, MarkerFrames) else None

    def places(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        """Return places of the frames of these numbers in `captures` and `frames`."""
        return np.flatnonzero(np.isin(self.numbers, numbers))


def read_recorded_frames(path: Path, robot: Robot, forward_kinematics: MlpWeights, seed: int) -> RecordedFrames:
    """Read a store of scans or of markers and check every frame against the simulated shape.

    Raises:
        SoftformError: If there is no store of this robot, or no frame in it that can be learned from.
    """
    recording = open_recording(path, robot)
    origin = {key: str(recording.attributes[key]) for key in ("via", "source", "seed", "created", "git_revision")}
    captured = read_captures(path, robot, None)
    captures = captured.frames
    actuations = np.array([capture.actuation for capture in captures])
    known = [capture.past for capture in captures if capture.past is not None]
    pasts = np.array(known) if len(known) == len(captures) else None
    frames: Frames | MarkerFrames
    if isinstance(recording, MarkerStore):
        assert captured.uv is not None
        positions = np.array([capture.points for capture in captures])
        frames = MarkerFrames(actuations, recording.names, captured.uv, positions, pasts)
        unfit = unfit_markers(forward_kinematics, frames, robot.patches)
    else:
        simulated = pipeline_of(robot, forward_kinematics, robot.patches.samples(_SIMULATED_POINTS))
        frames = Frames(actuations, *_scans(captures, simulated, seed), pasts)
        unfit = unfit_scans(frames, simulated)
    faults = {flag.frame: flag.reason for flag in unfit}
    kept = np.setdiff1d(np.arange(len(captures)), list(faults))
    left_out = captured.left_out | {captures[place].number: reason for place, reason in faults.items()}
    if not len(kept):
        number, reason = min(left_out.items())
        raise SoftformError(
            f"No frame of {path} can be learned from; frame {number}: {reason}.",
            f"Collect others: ./softform collect --robot {robot.given_as}",
        )
    captures = [captures[place] for place in kept]
    return RecordedFrames(
        path.name,
        origin,
        captures,
        frames.part(kept),
        float(recording.coverage[[capture.number for capture in captures]].mean()),
        dict(sorted(left_out.items())),
    )


def _scans(captures: Sequence[Capture], simulated: ForwardPipeline, seed: int) -> tuple[list[Array], list[Array]]:
    """Draw `POINTS` points (m, 3) m of each scan, with oriented normals.

    Normals are those of the points' neighbourhoods in the whole scan, turned to the side of the simulated surface
    nearby.
    """
    clouds, normals = [], []
    for capture in captures:
        order = np.random.default_rng([seed, capture.number]).permutation(len(capture.points))
        chosen = np.sort(order[:POINTS])
        clouds.append(capture.points[chosen])
        fitted = estimate_normals(capture.points)[chosen]
        nearest = cKDTree(simulated.points(capture.actuation)).query(MM_PER_M * capture.points[chosen])[1]
        along = np.einsum("mx,mx->m", fitted, simulated.normals(capture.actuation)[nearest])
        normals.append(np.where(along[:, None] < 0.0, -fitted, fitted))
    return clouds, normals


_MEAN_OF_GAUSSIAN = float(np.sqrt(2.0 / np.pi))
"""Mean absolute value of a Gaussian of one standard deviation."""


def held_out_errors(
    robot: Robot,
    forward_kinematics: MlpWeights,
    model: TrainedSimToReal | SimToRealModel,
    captures: Sequence[Capture],
    uv: Array | None,
) -> HeldOutErrors:
    """Return distances between captures that a model was not trained on and the predicted surfaces, before and after.

    Markers lie at uv (M, 2), None for scans.
    """
    grid = robot.patches.samples(SURFACE_POINTS)
    before = pipeline_of(robot, forward_kinematics, grid)
    after = pipeline_of(robot, forward_kinematics, grid, model.sim_to_real)
    uncertainty = SurfaceUncertainty(after, model.members, model.spread_factor, model.spread_floor_mm)
    predict = predict_by(before, after, uncertainty)
    frames = [judge(capture, uv, predict) for capture in captures]
    simulated, corrected = before_and_after(frames)
    assert corrected is not None
    return HeldOutErrors(
        frames=len(frames),
        before_mean=simulated.captured.mean_mm,
        before_99_percentile=simulated.captured.p99_mm,
        after_mean=corrected.captured.mean_mm,
        after_99_percentile=corrected.captured.p99_mm,
        noise_floor_mean=None if corrected.noise_mm is None else _MEAN_OF_GAUSSIAN * corrected.noise_mm,
        within_one_sigma=corrected.within_one_sigma or 0.0,
        within_two_sigma=corrected.within_two_sigma or 0.0,
    )
