"""A sim-to-real transfer judged by captured frames that it was not trained on, as `softform evaluate` judges."""

from collections.abc import Sequence

import numpy as np

from softform_core.arrays import Array
from softform_core.evaluation.captures import Capture
from softform_core.evaluation.evaluate import SURFACE_POINTS, judge, predict_by
from softform_core.evaluation.summary import before_and_after
from softform_core.forward.robot_pipeline import pipeline_of
from softform_core.forward.sim_to_real_store import SimToRealModel
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real_card import HeldOutErrors
from softform_core.robots import Robot
from softform_core.training.trained_sim_to_real import TrainedSimToReal

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
