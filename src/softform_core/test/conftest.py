"""Networks for kinematics tests: a membrane written down by hand, and random ones that no shortcut could fit."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.sim_to_real_store import SIM_TO_REAL
from softform_core.inverse.ik_options import IkOptions
from softform_core.networks.mlp_weights import MlpWeights, mean_of
from softform_core.networks.saved_network import export
from softform_core.networks.sim_to_real import ShapeInput
from softform_core.networks.sim_to_real_card import FramesUsed, HeldOutErrors, SurfaceSimToRealCard, Training
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.warp_device import INSTALL
from softform_core.surface.patch_set import SHEET
from softform_core.training.cards import make_sim_to_real_card, network_of
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside this file

PRESSURE_MAX = 5000.0
CHAMBERS = 9
GRID = 30


@pytest.fixture(params=["cpu", "cuda:0"])
def device(request: pytest.FixtureRequest) -> str:
    warp = pytest.importorskip("warp", reason=f"Warp is an extra: {INSTALL}")
    if request.param not in [str(one) for one in warp.get_devices()]:
        pytest.skip(f"There is no {request.param} here.")
    return request.param


def flat_control_points() -> Array:
    line = np.linspace(-160.0, 160.0, GRID)
    x, y = np.meshgrid(line, line, indexing="ij")
    return np.stack([x, y, np.zeros_like(x)], axis=-1)


def hand_made_membrane() -> MlpWeights:
    """Each chamber lifts a bump over itself, more slowly the higher the pressure, and its neighbours a little."""
    flat = flat_control_points().reshape(-1, 3)
    centers = np.stack(np.meshgrid(*[[-107.0, 0.0, 107.0]] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    distance = np.linalg.norm(flat[:, None, :2] - centers, axis=2)
    inside = np.cos(np.pi * flat[:, 0] / 322.0) * np.cos(np.pi * flat[:, 1] / 322.0)
    bumps = np.exp(-((distance / 55.0) ** 2)) * np.sqrt(np.maximum(inside, 0.0))[:, None]
    last = np.zeros((len(flat), 3, CHAMBERS))
    last[:, 2] = 45.0 * bumps
    last[:, :2] = 0.05 * (flat[:, None, :2] - centers).swapaxes(1, 2) * bumps[:, None, :]
    coupling = 0.9 * np.eye(CHAMBERS) + 0.05 * (distance[np.argmin(distance, axis=0)] < 120.0)
    return MlpWeights(
        weights=[coupling, last.reshape(-1, CHAMBERS)],
        biases=[np.zeros(CHAMBERS), np.zeros(last.shape[0] * 3)],
        activation="tanh",
        input_offset=np.zeros(CHAMBERS),
        input_scale=np.full(CHAMBERS, PRESSURE_MAX),
        output_offset=flat.ravel(),
        output_scale=np.ones(1),
    )


def random_network(sizes: list[int], rng: np.random.Generator, **normalisation: Array) -> MlpWeights:
    return MlpWeights(
        weights=[rng.normal(size=(b, a)) / np.sqrt(a) for a, b in zip(sizes[:-1], sizes[1:], strict=True)],
        biases=[0.3 * rng.normal(size=b) for b in sizes[1:]],
        activation="relu",
        **normalisation,
    )


def random_forward_kinematics(seed: int) -> MlpWeights:
    rng = np.random.default_rng(seed)
    return random_network(
        [CHAMBERS, 128, 128, GRID * GRID * 3],
        rng,
        input_offset=np.full(CHAMBERS, 2500.0),
        input_scale=rng.uniform(1500.0, 2500.0, CHAMBERS),
        output_offset=flat_control_points().ravel() + rng.normal(size=GRID * GRID * 3),
        output_scale=rng.uniform(2.0, 6.0, GRID * GRID * 3),
    )


def random_sim_to_real(seed: int, kernels: int = 100) -> SimToReal:
    rng = np.random.default_rng(seed)
    gamma = np.zeros((kernels + 4, 3))
    gamma[1:4] = np.eye(3)
    scale = np.full((kernels + 4, 3), 1.0)
    scale[1:4] = 0.02
    return SimToReal(
        SHEET.samples(kernels),
        random_network(
            [GRID * GRID * 3, 24, 24, gamma.size],
            rng,
            input_offset=flat_control_points().ravel(),
            input_scale=np.full(GRID * GRID * 3, 10.0),
            output_offset=gamma.ravel(),
            output_scale=scale.ravel(),
        ),
    )


def shape_of(pipeline: ForwardPipeline, actuation: Array) -> Shape:
    """The pipeline's own surface as a mesh in metres; `pipeline` samples a grid."""
    return Shape(pipeline.points(actuation) / MM_PER_M, None, SHEET.triangles(len(pipeline.uv)))


@pytest.fixture(scope="session", name="random_forward_kinematics")
def random_forward_kinematics_fixture() -> Callable[[int], MlpWeights]:
    return random_forward_kinematics


@pytest.fixture(scope="session", name="random_sim_to_real")
def random_sim_to_real_fixture() -> Callable[..., SimToReal]:
    return random_sim_to_real


@pytest.fixture(scope="session", name="shape_of")
def shape_of_fixture() -> Callable[[ForwardPipeline, Array], Shape]:
    return shape_of


def save_random_model(folder: Path, seed: int, members: int = 3, fk: str = "") -> SurfaceSimToRealCard:
    """A sim-to-real model of the shipped membrane whose members have random weights; `fk` names another N_fk."""
    robot = load_robot("membrane")
    _, simulated = load_forward_kinematics(robot)
    ensemble = [random_sim_to_real(seed + 1000 * member, kernels=25) for member in range(members)]
    mean = SimToReal(ensemble[0].kernel_uv, mean_of([one.coefficients for one in ensemble]))
    shape_input = ShapeInput(np.zeros(GRID * GRID * 3), None, np.ones(GRID * GRID * 3))
    trained = TrainedSimToReal(mean, ensemble, [], shape_input, [0.5], [10], 1.0, 1.5, 0.2)
    weights = export(network_of(robot, trained))
    card = make_sim_to_real_card(
        robot,
        simulated.model_copy(update={"weights_sha256": fk}) if fk else simulated,
        trained,
        FramesUsed(
            store="frames.zarr",
            via="scanner",
            source="virtual rig, reality default",
            seed=0,
            created="2026-01-01T00:00:00+00:00",
            git_revision="none",
            used=[0, 1, 2, 4],
            held_out=[7],
            left_out={3: "it is mirrored"},
            flagged={4: "the prediction folds"},
            points_per_frame=1000,
            coverage_mean=0.8,
        ),
        Training(
            recipe="default",
            seed=seed,
            best_epochs=[10],
            validation_mm=[0.5],
            seconds=1.0,
            threads=1,
            continues=None,
        ),
        HeldOutErrors(
            frames=1,
            before_mean=2.5,
            before_99_percentile=6.0,
            after_mean=0.5,
            after_99_percentile=1.5,
            noise_floor_mean=0.16,
            within_one_sigma=0.7,
            within_two_sigma=0.95,
        ),
        weights,
        "softform train s2r",
    )
    SIM_TO_REAL.save(folder, weights, card)
    return card


@pytest.fixture(scope="session", name="save_random_model")
def save_random_model_fixture() -> Callable[..., SurfaceSimToRealCard]:
    return save_random_model


@pytest.fixture(scope="session")
def membrane_weights() -> MlpWeights:
    return hand_made_membrane()


@pytest.fixture(scope="session")
def membrane(membrane_weights: MlpWeights) -> ForwardPipeline:
    return ForwardPipeline(membrane_weights, SHEET.samples(1000))


@pytest.fixture(scope="session")
def corrected_membrane() -> ForwardPipeline:
    return ForwardPipeline(hand_made_membrane(), SHEET.samples(1000), random_sim_to_real(5))


@pytest.fixture(scope="session")
def exact_membrane() -> ForwardPipeline:
    """`corrected_membrane` in double precision throughout, for finite differences."""
    return ForwardPipeline(hand_made_membrane(), SHEET.samples(1000), random_sim_to_real(5), precision=np.float64)


@pytest.fixture
def bounds() -> dict[str, Array]:
    return {"actuation_min": np.zeros(CHAMBERS), "actuation_max": np.full(CHAMBERS, PRESSURE_MAX)}


@pytest.fixture
def options(bounds: dict[str, Array]) -> IkOptions:
    """The defaults, but for the time: the first solve of a process may compile for longer."""
    return IkOptions(**bounds, max_seconds=120.0)
