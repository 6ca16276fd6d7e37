"""The membrane's own N_fk under another actuation stands for reality: learning from its markers finds it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.surface_uncertainty import members_spread
from softform_core.frames.frames import MarkerFrames
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_core.surface.patch_set import SHEET
from softform_core.training.ensemble import TrainingRun
from softform_core.training.marker_learning import (
    MARKER_RECIPES,
    MARKERS,
    marker_distance,
    share_between_markers,
    train_sim_to_real_from_markers,
)
from softform_core.units import MM_PER_M

GRID = (np.arange(5) + 0.5) / 5
UV = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1).reshape(-1, 2)
JUDGED = np.random.default_rng(77).uniform(0.0, 5000.0, (12, 9))
QUICK = replace(MARKERS, epochs=150, members=3)


@pytest.fixture(scope="module")
def simulated() -> MlpWeights:
    return extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])


def real_points(simulated: MlpWeights, actuation: np.ndarray, uv: np.ndarray) -> np.ndarray:
    """(n, P, 3) mm of a reality whose sensors are wrong: true pressures are 85 % of those commanded."""
    return ForwardPipeline(simulated, uv).points(0.85 * actuation)


def frames(simulated: MlpWeights, missing: float = 0.1, count: int = 30, seed: int = 0) -> MarkerFrames:
    generator = np.random.default_rng(seed)
    actuation = generator.uniform(0.0, 5000.0, (count, 9))
    positions = real_points(simulated, actuation, UV) + generator.normal(0.0, 0.1, (count, len(UV), 3))
    positions[generator.random((count, len(UV))) < missing] = np.nan
    return MarkerFrames(actuation, [f"m{i}" for i in range(len(UV))], UV, positions / MM_PER_M)


def gap(simulated: MlpWeights, sim_to_real: SimToReal | None) -> float:
    """Mean distance along z, mm, at actuations that no frame shows, between the markers too."""
    uv = SHEET.samples(400)
    predicted = ForwardPipeline(simulated, uv, sim_to_real).points(JUDGED)
    return float(np.abs(predicted - real_points(simulated, JUDGED, uv))[..., 2].mean())


@pytest.fixture(scope="module")
def trained(simulated: MlpWeights):
    return train_sim_to_real_from_markers(simulated, frames(simulated), QUICK)


def test_training_lowers_the_gap_at_held_out_actuations(simulated: MlpWeights, trained) -> None:
    assert gap(simulated, trained.sim_to_real) < 0.35 * gap(simulated, None)
    assert len(trained.members) == 3
    assert trained.confidence == []
    assert trained.flags == ()
    np.testing.assert_array_equal(trained.sim_to_real.kernel_uv, UV)


def test_the_uncertainty_covers_errors_between_the_markers_too(simulated: MlpWeights, trained) -> None:
    uv = SHEET.samples(400)
    predictions = np.array([ForwardPipeline(simulated, uv, member).points(JUDGED) for member in trained.members])
    error = real_points(simulated, JUDGED, uv) - predictions.mean(axis=0)
    upwards = np.broadcast_to([0.0, 0.0, 1.0], error.shape)
    sigma = np.hypot(trained.spread_factor * members_spread(predictions, upwards), trained.spread_floor_mm)
    assert np.mean(np.abs(error[..., 2]) < 2.0 * sigma) > 0.88
    assert sigma.mean() < 0.6 * gap(simulated, None)


def test_fewer_markers_leave_more_unseen_between_them(simulated: MlpWeights) -> None:
    def share(side: int) -> float:
        uv = SHEET.samples(side**2) * 0.9 + 0.05
        return share_between_markers(simulated, uv, uv, MARKERS, SHEET)

    assert 0.01 < share(7) < share(4) < 1.0


def test_a_missing_marker_has_no_say() -> None:
    """Eq. 13: sum of the captured markers' squared distances over the number of all markers."""
    predicted = torch.tensor([[[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 0.0, 0.0], [9.0, 9.0, 9.0]]])
    captured = torch.tensor([[[0.0, 3.0, 4.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    visible = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    assert marker_distance(predicted, captured, visible).tolist() == [(25.0 + 0.0 + 4.0) / 4]


def test_kernels_may_stand_elsewhere_and_training_goes_on_from_an_earlier_model(simulated: MlpWeights, trained) -> None:
    captured, few = frames(simulated), replace(QUICK, epochs=1, learning_rate=1e-12)
    start = trained.members
    unchanged = train_sim_to_real_from_markers(simulated, captured, few, TrainingRun(start=start))
    assert gap(simulated, unchanged.sim_to_real) == pytest.approx(gap(simulated, trained.sim_to_real), rel=0.02)
    with pytest.raises(SoftformError, match="other layers or kernels"):
        train_sim_to_real_from_markers(simulated, captured, few, TrainingRun(start=start), kernel_uv=SHEET.samples(16))


def test_labels_that_cannot_be_right_are_not_trained_on(simulated: MlpWeights) -> None:
    captured = frames(simulated, missing=0.0)
    captured.positions[7:, [3, 4]] = captured.positions[7:, [4, 3]]
    with pytest.raises(SoftformError, match="frame 7: markers m3, m4 seem to be exchanged"):
        train_sim_to_real_from_markers(simulated, captured, QUICK)
    train_sim_to_real_from_markers(simulated, captured, replace(QUICK, epochs=1, members=1), check_labels=False)


def test_the_printed_recipe_learns_from_markers_too(simulated: MlpWeights) -> None:
    recipe = replace(MARKER_RECIPES["paper"], epochs=60)
    trained = train_sim_to_real_from_markers(simulated, frames(simulated), recipe)
    assert gap(simulated, trained.sim_to_real) < 0.9 * gap(simulated, None)


def test_a_frame_taken_under_other_pressures_is_flagged(simulated: MlpWeights) -> None:
    captured = frames(simulated)
    captured.actuation[11] = 5000.0 - captured.actuation[11]
    flags = train_sim_to_real_from_markers(simulated, captured, QUICK, check_labels=False).flags
    assert [flag.frame for flag in flags] == [11]
    assert "the model explains it to" in flags[0].reason


def test_too_few_frames_are_rejected(simulated: MlpWeights) -> None:
    with pytest.raises(SoftformError, match="folds"):
        train_sim_to_real_from_markers(simulated, frames(simulated, count=3), QUICK)
