"""A memory fitted with the correction behind it: its derivatives, what it finds, and what it takes for none."""

from itertools import permutations

import numpy as np
import pytest

from softform_core.arrays import Array
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.frames.frames import MarkerFrames
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_core.stores.past import pasts
from softform_core.surface.patch_set import SHEET
from softform_core.training.actuation_fit import fit_actuation_to_few_markers
from softform_core.training.actuation_model import ActuationModel, AlikeModel, PerceptronModel
from softform_core.training.memory_model import RememberingModel

SECTIONS = np.array(
    [[3 * section + place for place in order] for section in range(3) for order in permutations(range(3))]
)
MIDDLE = HALF = np.full(9, 50.0)
COMMANDED = np.random.default_rng(0).uniform(0.0, 100.0, (6, 9))
PAST = pasts(COMMANDED, np.zeros(9))
SEVERAL = PrandtlIshlinskii(
    np.outer([20.0, 90.0, 250.0], np.linspace(0.8, 1.2, 9)),
    np.outer([0.3, 0.3, 0.2], np.ones(9)),
    np.array([0.5]),
    np.full((1, 9), 0.03),
)


@pytest.mark.parametrize(
    "behind", [PerceptronModel(COMMANDED, MIDDLE, HALF, 4), AlikeModel(COMMANDED, MIDDLE, HALF, SECTIONS)]
)
def test_slopes_are_those_of_what_takes_effect(behind: ActuationModel) -> None:
    count = {PerceptronModel: 9 + 81 + 36 + 36 + 4, AlikeModel: 18 + 24 * 10}[type(behind)]
    model = RememberingModel.of(behind, PAST)
    random = np.random.default_rng(1)
    unknowns = 0.1 * random.standard_normal(len(model.expected(np.ones(count))))
    direction = random.standard_normal(len(unknowns))
    ahead, back = (model.effective(unknowns + sign * 1e-5 * direction) for sign in (1.0, -1.0))
    np.testing.assert_allclose(model.slopes(unknowns) @ direction, (ahead - back) / 2e-5, atol=1e-7)
    of_behind, _ = model.parts(unknowns)
    moved = random.standard_normal(9)
    by = [
        type(behind)(**{**vars_of(behind), "actuation": COMMANDED + sign * 1e-4 * moved}).effective(of_behind)
        for sign in (1.0, -1.0)
    ]
    np.testing.assert_allclose(behind.response(of_behind) @ (moved / HALF), (by[0] - by[1]) / 2e-4, atol=1e-7)


def vars_of(model: ActuationModel) -> dict[str, object]:
    return {name: getattr(model, name) for name in type(model).__dataclass_fields__}


def test_the_correction_predicts_what_was_fitted() -> None:
    behind = PerceptronModel(COMMANDED, MIDDLE, HALF)
    model = RememberingModel.of(behind, PAST)
    unknowns = 0.1 * np.random.default_rng(2).standard_normal(len(model.expected(np.ones(90))))
    correction = model.correction([unknowns])
    assert correction.memory is not None
    found = correction.effective(correction.memory.effective_after(PAST, COMMANDED))
    np.testing.assert_allclose(found / HALF, model.effective(unknowns), atol=1e-9)


@pytest.fixture(scope="module")
def network() -> MlpWeights:
    return extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])


def markers_of(network: MlpWeights, commanded: Array, felt: Array) -> MarkerFrames:
    uv, random = SHEET.samples(36), np.random.default_rng(4)
    points = ForwardPipeline(network, uv, None, SHEET).points(felt)
    positions = 0.001 * (points + random.normal(0.0, 0.1, points.shape))
    positions[random.random(positions.shape[:2]) < 0.1] = np.nan
    return MarkerFrames(commanded, [f"m{i}" for i in range(36)], uv, positions, pasts(commanded, np.zeros(9)))


def test_few_markers_tell_gain_offset_and_memory(network: MlpWeights) -> None:
    """Of plays of other widths than those that are fitted, and of creep."""
    commanded = np.random.default_rng(3).uniform(0.0, 5000.0, (60, 9))
    past, frames = pasts(commanded, np.zeros(9)), 40
    felt = 0.95 * SEVERAL.effective_after(past, commanded) + 60.0
    marked = markers_of(network, commanded[:frames], felt[:frames])
    simulated = ForwardPipeline(network, marked.uv, None, SHEET)
    found = fit_actuation_to_few_markers(simulated, network, marked)
    assert found.memory is not None and found.memory.lag == pytest.approx(SEVERAL.lag, rel=0.25)
    predicted = found.effective(found.memory.effective_after(past[frames:], commanded[frames:]))
    assert np.sqrt(np.square(predicted - felt[frames:]).mean()) < 0.25 * np.sqrt(
        np.square(felt[frames:] - (0.95 * commanded[frames:] + 60.0)).mean()
    )


def test_a_body_that_remembers_nothing_is_taken_for_one(network: MlpWeights) -> None:
    commanded = np.random.default_rng(3).uniform(0.0, 5000.0, (30, 9))
    marked = markers_of(network, commanded, 1.05 * commanded - 40.0)
    found = fit_actuation_to_few_markers(ForwardPipeline(network, marked.uv, None, SHEET), network, marked)
    assert found.memory is None
    np.testing.assert_allclose(found.effective(commanded), 1.05 * commanded - 40.0, atol=40.0)
