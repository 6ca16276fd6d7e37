"""Corrections of the actuation are found in captured frames, outliers or not, and come before N_fk for nothing."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import ActuationCorrection, SimToReal
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.geometry.rigid import RigidTransform
from softform_core.networks.mlp_weights import MlpWeights, chained, extract_mlp, perceptron_of
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_core.stores.past import pasts
from softform_core.surface.patch_set import SHEET
from softform_core.training.actuation_fit import fit_actuation, fit_actuation_to_markers
from softform_core.training.actuation_model import AlikeModel
from softform_core.training.marker_learning import unfit_markers

GAIN = np.array([1.1, 0.9, 1.0, 0.95, 1.05, 1.0, 1.1, 0.92, 1.0])
OFFSET = np.array([100.0, -100.0, 0.0, 50.0, -50.0, 0.0, 80.0, -80.0, 0.0])


def gains(gain: np.ndarray, offset: np.ndarray) -> ActuationCorrection:
    """The correction gain * a + offset of each actuation by itself."""
    return ActuationCorrection(perceptron_of([np.diag(gain)], [offset], "tanh"))


@pytest.fixture(scope="module")
def network() -> MlpWeights:
    return extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])


@pytest.fixture(scope="module")
def simulated(network: MlpWeights) -> ForwardPipeline:
    return ForwardPipeline(network, SHEET.samples(900), None, SHEET)


def test_the_corrected_network_is_that_of_the_corrected_actuation() -> None:
    network = extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])
    actuation = np.random.default_rng(0).uniform(500.0, 4500.0, (3, 9))
    corrected = gains(GAIN, OFFSET).before(network)
    np.testing.assert_allclose(corrected.forward(actuation), network.forward(GAIN * actuation + OFFSET), atol=1e-9)


@pytest.mark.parametrize("outliers", [0, 40])
def test_gain_and_offset_are_found(network: MlpWeights, simulated: ForwardPipeline, outliers: int) -> None:
    random = np.random.default_rng(3)
    actuation = random.uniform(500.0, 4000.0, (30, 9))
    real = GAIN * actuation + OFFSET
    clouds, normals = [], []
    for points, normal in zip(simulated.points(real), simulated.normals(real), strict=True):
        chosen = random.choice(len(points), 500, replace=False)
        cloud = points[chosen] + random.normal(0.0, 0.2, (500, 3))
        cloud[:outliers] += random.uniform(-15.0, 15.0, (outliers, 3))
        clouds.append(0.001 * cloud)
        normals.append(normal[chosen])
    found = fit_actuation(simulated, network, Frames(actuation, clouds, normals))
    offset = found.effective(np.zeros(9))
    np.testing.assert_allclose(found.effective(np.eye(9)) - offset, np.diag(GAIN), atol=0.015)
    np.testing.assert_allclose(offset, OFFSET, atol=45.0)


@pytest.mark.parametrize("width", [0.0, 0.05])
def test_the_play_is_found_beside_gain_and_offset(
    network: MlpWeights, simulated: ForwardPipeline, width: float
) -> None:
    random = np.random.default_rng(3)
    commanded = random.uniform(500.0, 4000.0, (30, 9))
    past = pasts(commanded, np.zeros(9))
    real = GAIN * PrandtlIshlinskii.play(np.full(9, 2500.0 * width)).effective_after(past, commanded) + OFFSET
    clouds, normals = [], []
    for points, normal in zip(simulated.points(real), simulated.normals(real), strict=True):
        chosen = random.choice(len(points), 500, replace=False)
        clouds.append(0.001 * (points[chosen] + random.normal(0.0, 0.2, (500, 3))))
        normals.append(normal[chosen])
    frames = Frames(commanded, clouds, normals, past)
    found = fit_actuation(simulated, network, frames)
    assert np.abs(found.effective(frames.effective(found.memory).actuation) - real).mean() < 25.0
    if width:
        assert found.memory is not None and found.memory.lag == pytest.approx(np.full(9, 2500.0 * width), rel=0.3)
        without = fit_actuation(simulated, network, replace(frames, past=None))
        assert without.memory is None
        assert np.abs(without.effective(commanded) - real).mean() > 60.0
    else:
        assert found.memory is None


def test_networks_in_a_row_are_one_and_only_of_one_kind() -> None:
    random = np.random.default_rng(0)

    def perceptron(sizes: tuple[int, ...], activation: str) -> MlpWeights:
        weights = [random.normal(size=(after, before)) for before, after in pairwise(sizes)]
        made = perceptron_of(weights, [random.normal(size=len(weight)) for weight in weights], activation)
        return replace(made, input_offset=random.normal(size=sizes[0]), output_scale=random.uniform(1, 2, sizes[-1]))

    first, then, x = perceptron((2, 5, 3), "tanh"), perceptron((3, 4, 4, 6), "tanh"), random.normal(size=(7, 2))
    np.testing.assert_allclose(chained(first, then).forward(x), then.forward(first.forward(x)), atol=1e-12)
    relu = perceptron((3, 4, 1), "relu")
    with pytest.raises(SoftformError, match="do not make one"):
        chained(first, relu)
    straight = perceptron((2, 3), "tanh")
    np.testing.assert_allclose(chained(straight, relu).forward(x), relu.forward(straight.forward(x)), atol=1e-12)


@pytest.mark.long
def test_markers_tell_what_couples_what_bends_and_how_the_base_sits() -> None:
    robot = load_robot("compressible")
    network = extract_mlp(load_forward_kinematics(robot)[0])
    random = np.random.default_rng(1)
    uv = robot.patches.samples(64)
    simulated = ForwardPipeline(network, uv, None, robot.patches)
    coupling, base = (
        0.05 * random.normal(size=(9, 9)),
        RigidTransform().moved([0.01, -0.02, 0.0], [1.0, 0.0, -2.0], [0, 0, 0]),
    )

    def real(actuation: Array) -> Array:
        x = (actuation - network.input_offset) / network.input_scale
        bent = 0.1 * np.maximum(0.0, -x - 0.2)  # as bellows whose folds touch early
        return base.apply(simulated.points(actuation + network.input_scale * (x @ coupling.T + bent)))

    captured, others = (random.uniform(robot.actuation_min, robot.actuation_max, (count, 9)) for count in (120, 10))
    markers = real(captured) + random.normal(0.0, 0.2, (120, len(uv), 3))
    markers[random.random(markers.shape[:2]) < 0.1] = np.nan
    frames = MarkerFrames(captured, [f"m{number}" for number in range(len(uv))], uv, 0.001 * markers)
    found, motion = fit_actuation_to_markers(simulated, network, frames)
    assert found.memory is None
    predicted = motion.apply(ForwardPipeline(found.before(network), uv, None, robot.patches).points(others))
    before, after = (np.abs(each - real(others)).mean() for each in (simulated.points(others), predicted))
    assert before > 5.0 and after < 0.5, (before, after)
    np.testing.assert_allclose(
        found.before(network).forward(others), network.forward(found.effective(others)), atol=1e-6
    )


@pytest.mark.long
def test_markers_tell_the_play_of_an_arm() -> None:
    robot = load_robot("compressible")
    network = extract_mlp(load_forward_kinematics(robot)[0])
    random, uv = np.random.default_rng(1), robot.patches.samples(64)
    simulated = ForwardPipeline(network, uv, None, robot.patches)
    commanded = random.uniform(robot.actuation_min, robot.actuation_max, (60, 9))
    past, play = pasts(commanded, robot.rest_actuation), PrandtlIshlinskii.play(0.06 * network.input_scale)
    markers = simulated.points(0.9 * play.effective_after(past, commanded)) + random.normal(0.0, 0.2, (60, len(uv), 3))
    frames = MarkerFrames(commanded, [f"m{number}" for number in range(len(uv))], uv, 0.001 * markers, past)
    found, _ = fit_actuation_to_markers(simulated, network, frames)
    assert found.memory is not None and found.memory.lag == pytest.approx(play.widths[0], rel=0.15)


def test_a_past_that_is_none_of_these_frames_is_rejected() -> None:
    uv, actuation = SHEET.samples(4), np.zeros((3, 9))
    for past in (np.zeros((2, 4, 9)), np.zeros((3, 9)), np.zeros((3, 0, 9)), np.full((3, 4, 9), np.inf)):
        with pytest.raises(SoftformError, match="before"):
            MarkerFrames(actuation, list("abcd"), uv, np.zeros((3, 4, 3)), past)


def test_exchanged_labels_are_found_beside_the_corrected_actuation() -> None:
    robot = load_robot("compressible")
    network = extract_mlp(load_forward_kinematics(robot)[0])
    actuation = np.random.default_rng(2).uniform(robot.actuation_min, robot.actuation_max, (40, 9))
    uv = robot.patches.samples(200)
    markers = 0.001 * ForwardPipeline(network, uv, None, robot.patches).points(0.7 * actuation)
    far = int(np.argmax(np.linalg.norm(uv - uv[0], axis=1)))
    markers[5, [0, far]] = markers[5, [far, 0]]
    frames = MarkerFrames(actuation, [f"m{number}" for number in range(len(uv))], uv, markers)
    assert [flag.frame for flag in unfit_markers(network, frames, robot.patches)] == [5]


def test_a_transfer_carries_its_correction_into_the_pipeline(random_sim_to_real: Callable[..., SimToReal]) -> None:
    warp = random_sim_to_real(1)
    network = extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])
    corrected = replace(warp, actuation=gains(GAIN, OFFSET))
    uv, actuation = SHEET.samples(100), np.full((1, 9), 2000.0)
    expected = ForwardPipeline(network, uv, warp, SHEET).points(GAIN * actuation + OFFSET)
    np.testing.assert_allclose(ForwardPipeline(network, uv, corrected, SHEET).points(actuation), expected, atol=1e-4)


SECTIONS = np.array(
    [[3 * section + place for place in order] for section in range(3) for order in permutations(range(3))]
)
"""Orders in which each of three bellows sees its section, of three sections."""


def shared(x: Array) -> Array:
    """What a reality adds to each bellow of the arm, relative: one function of it and of both others, (n, 9)."""
    own, next_one, last = (np.roll(x.reshape(-1, 3, 3), -turn, axis=2) for turn in range(3))
    return (0.15 * own * (next_one + last) - 0.2 * next_one * last).reshape(x.shape)


@pytest.fixture(scope="module")
def arm() -> tuple[MlpWeights, ForwardPipeline]:
    robot = load_robot("compressible")
    network = extract_mlp(load_forward_kinematics(robot)[0])
    return network, ForwardPipeline(network, robot.patches.samples(900), None, robot.patches)


def effective_by(network: MlpWeights, actuation: Array) -> Array:
    x = (actuation - network.input_offset) / network.input_scale
    return actuation + network.input_scale * (0.04 * np.tile([1.0, -1.0, 0.5], 3) + shared(x))


def scans_of(arm: tuple[MlpWeights, ForwardPipeline], count: int) -> Frames:
    network, simulated = arm
    random = np.random.default_rng(6)
    actuation = network.input_offset + network.input_scale * random.uniform(-1.0, 1.0, (count, 9))
    real = effective_by(network, actuation)
    clouds, normals = [], []
    for points, normal in zip(simulated.points(real), simulated.normals(real), strict=True):
        chosen = random.choice(len(points), 300, replace=False)
        clouds.append(0.001 * (points[chosen] + random.normal(0.0, 0.2, (300, 3))))
        normals.append(normal[chosen])
    return Frames(actuation, clouds, normals)


def test_what_alike_sections_share_is_found(arm: tuple[MlpWeights, ForwardPipeline]) -> None:
    network, simulated = arm
    frames = scans_of(arm, 40)
    others = network.input_offset + network.input_scale * np.random.default_rng(7).uniform(-1.0, 1.0, (30, 9))

    def error(alike: NDArray[np.int64] | None) -> float:
        found = fit_actuation(simulated, network, frames, alike=alike).effective(others)
        return float(np.abs((found - effective_by(network, others)) / network.input_scale).mean())

    alone, together = error(None), error(SECTIONS)
    assert together < 0.4 * alone, (alone, together)
    assert error(np.zeros((0, 0), dtype=np.int64)) == alone


def test_the_fitted_correction_chains_with_the_network(arm: tuple[MlpWeights, ForwardPipeline]) -> None:
    network, simulated = arm
    found = fit_actuation(simulated, network, scans_of(arm, 30), alike=SECTIONS)
    others = network.input_offset + network.input_scale * np.random.default_rng(8).uniform(-1.0, 1.0, (5, 9))
    np.testing.assert_allclose(
        found.before(network).forward(others), network.forward(found.effective(others)), atol=1e-4
    )
    aged = gains(GAIN, OFFSET)
    twice = found.after(aged)
    np.testing.assert_allclose(twice.effective(others), found.effective(GAIN * others + OFFSET), atol=1e-2)


def test_a_memory_that_came_with_ageing_is_kept_before_all_layers() -> None:
    play, narrow = (PrandtlIshlinskii.play(np.full(9, width)) for width in (200.0, 50.0))
    aged, learned = replace(gains(GAIN, OFFSET), memory=play), gains(1.0 / GAIN, OFFSET)
    both, past, commanded = learned.after(aged), np.full((1, 1, 9), 1000.0), np.full((1, 9), 2000.0)
    assert both.memory is play
    felt = play.effective_after(past, commanded)
    np.testing.assert_allclose(both.effective(felt), learned.effective(aged.effective(felt)), atol=1e-6)
    # Ageing is fitted on what the model's own memory leaves in effect, so that this one comes first.
    assert replace(learned, memory=narrow).after(gains(GAIN, OFFSET)).memory is narrow


def test_what_is_shared_is_symmetric_and_what_is_fitted_is_what_predicts() -> None:
    random = np.random.default_rng(9)
    actuation = random.uniform(0.0, 100.0, (5, 9))
    model = AlikeModel(actuation, np.full(9, 50.0), np.full(9, 50.0), SECTIONS)
    unknowns = random.normal(size=len(model.expected(0.3, 0.1)))
    expected = actuation + 50.0 * model.values(unknowns)
    np.testing.assert_allclose(model.correction([unknowns]).effective(actuation), expected, rtol=1e-4)
    unknowns[: 2 * 9] = 0.0
    own_weights = 9 * (len(unknowns) - 2 * 9) // 10
    unknowns[-own_weights:] = 0.0
    shared_alone = model.correction([unknowns])
    turned, mirrored_and_exchanged = [2, 0, 1, 5, 3, 4, 8, 6, 7], [6, 8, 7, 0, 2, 1, 3, 5, 4]
    for order in (turned, mirrored_and_exchanged):
        np.testing.assert_allclose(
            shared_alone.effective(actuation[:, order]), shared_alone.effective(actuation)[:, order]
        )
    assert np.abs(shared_alone.effective(actuation) - actuation).max() > 1.0


def test_few_frames_and_other_networks_get_gains_and_offsets_alone(arm: tuple[MlpWeights, ForwardPipeline]) -> None:
    network, simulated = arm
    few = scans_of(arm, 8)
    assert len(fit_actuation(simulated, network, few, alike=SECTIONS).layers.weights) == 1
    edgy = replace(network, activation="relu")
    plain = fit_actuation(simulated, edgy, scans_of(arm, 30), alike=SECTIONS)
    assert len(plain.layers.weights) == 1
    plain.before(edgy)
