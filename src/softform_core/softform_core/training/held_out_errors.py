"""A sim-to-real transfer judged by captured frames that it was not trained on, as `softform evaluate` judges."""

from collections.abc import Sequence

import numpy as np

from softform_core.arrays import Array
from softform_core.evaluation.captures import Capture
from softform_core.evaluation.comparison import PredictedSurface
from softform_core.evaluation.evaluate import SURFACE_POINTS, judge
from softform_core.evaluation.summary import share_within, summarise
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.robot_pipeline import pipeline_of
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real_card import HeldOutErrors
from softform_core.robots import Robot

_MEAN_OF_GAUSSIAN = float(np.sqrt(2.0 / np.pi))
"""Mean absolute value of a Gaussian of one standard deviation."""


def held_out_errors(
    robot: Robot,
    forward_kinematics: MlpWeights,
    sim_to_real: SimToReal,
    members: Sequence[SimToReal],
    spread: tuple[float, float],
    captures: Sequence[Capture],
    uv: Array | None,
) -> HeldOutErrors:
    """Distances between captures and the predicted surfaces, before and after.

    Args:
        robot: Robot that was captured.
        forward_kinematics: N_fk.
        sim_to_real: Mean of the members.
        members: Members of the ensemble.
        spread: Factor of the ensemble's spread, and floor in mm.
        captures: Frames that it was not trained on.
        uv: (M, 2) places of the markers; None for scans.
    """
    grid = robot.patches.samples(SURFACE_POINTS)
    before = pipeline_of(robot, forward_kinematics, grid)
    after = pipeline_of(robot, forward_kinematics, grid, sim_to_real)
    uncertainty = SurfaceUncertainty(after, members, *spread)

    def predict(capture: Capture) -> tuple[PredictedSurface, PredictedSurface]:
        felt = capture.felt(sim_to_real)
        corrected = PredictedSurface.of(after, felt, uncertainty.along_normals(felt))
        return PredictedSurface.of(before, capture.actuation), corrected

    frames = [judge(capture, uv, predict) for capture in captures]
    compared = [frame.best for frame in frames]
    simulated, corrected = summarise([frame.before for frame in frames]), summarise(compared)
    return HeldOutErrors(
        frames=len(frames),
        before_mean=simulated.captured.mean_mm,
        before_99_percentile=simulated.captured.p99_mm,
        after_mean=corrected.captured.mean_mm,
        after_99_percentile=corrected.captured.p99_mm,
        noise_floor_mean=None if corrected.noise_mm is None else _MEAN_OF_GAUSSIAN * corrected.noise_mm,
        within_one_sigma=share_within(compared, 1.0) or 0.0,
        within_two_sigma=share_within(compared, 2.0) or 0.0,
    )
