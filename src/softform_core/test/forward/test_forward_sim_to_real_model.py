"""The sim-to-real model file: the same function in TorchScript and in kinematics; rejected where it does not fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import ActuationCorrection
from softform_core.forward.sim_to_real_export import SimToRealNetwork
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, load_sim_to_real, members_of
from softform_core.forward.surface_uncertainty import SurfaceUncertainty, members_spread
from softform_core.networks.mlp_weights import extract_mlp, perceptron_of
from softform_core.networks.model_files import ModelError
from softform_core.networks.saved_network import SavedNetwork, export
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot


def gains(gain: np.ndarray, offset: np.ndarray) -> ActuationCorrection:
    """The correction gain * a + offset of each actuation by itself."""
    return ActuationCorrection(perceptron_of([np.diag(gain)], [offset], "tanh"))


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory, save_random_model):
    folder = tmp_path_factory.mktemp("model")
    save_random_model(folder, seed=0)
    return folder


@pytest.fixture
def copied(tmp_path, model_folder):
    for file in model_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_the_file_warps_like_the_pipeline_of_kinematics(robot, model_folder):
    model = load_sim_to_real(robot, model_folder)
    script = torch.jit.load(model_folder / SIM_TO_REAL.weights_file)
    weights = extract_mlp(load_forward_kinematics(robot)[0])
    # The file takes the normal at the nearest of its 61 x 61 samples: exact on these, close by elsewhere.
    on_samples = np.random.default_rng(0).integers(0, 61, (200, 2)) / 60.0
    uv = np.concatenate([on_samples, np.random.default_rng(0).uniform(size=(200, 2))])
    pipeline = ForwardPipeline(weights, uv, model.sim_to_real)
    simulated = ForwardPipeline(weights, uv)
    actuation = np.random.default_rng(1).uniform(0.0, 5000.0, (4, 9))
    warped, sigma = script(
        torch.from_numpy(simulated.control_points(actuation).reshape(4, -1)),
        torch.from_numpy(simulated.points(actuation)),
    )
    assert np.abs(warped.numpy() - simulated.points(actuation)).max() > 1.0
    assert np.abs(warped.numpy() - pipeline.points(actuation)).max() < 1e-6
    exact = SurfaceUncertainty(pipeline, model.members, model.spread_factor, model.spread_floor_mm)
    relative = np.abs(sigma.numpy() / exact.along_normals(actuation) - 1.0)
    assert relative[:, :200].max() < 1e-6
    assert np.median(relative[:, 200:]) < 0.05


def test_single_precision_in_gives_single_precision_out(model_folder):
    script = torch.jit.load(model_folder / SIM_TO_REAL.weights_file)
    warped, sigma = script(torch.zeros(1, 2700), torch.zeros(1, 5, 3))
    assert warped.dtype == sigma.dtype == torch.float32


def test_members_come_back_as_they_were(random_sim_to_real):
    members = [random_sim_to_real(seed, kernels=16) for seed in range(2)]
    back = members_of(SavedNetwork(export(SimToRealNetwork(members, 1.0, 0.1))))
    shapes = np.random.default_rng(0).normal(0.0, 50.0, (3, 2700))
    for one, other in zip(members, back, strict=True):
        assert np.abs(one.coefficients.forward(shapes) - other.coefficients.forward(shapes)).max() < 1e-9
        assert one.width == other.width


def test_the_memory_comes_back_as_it_was(random_sim_to_real):
    several = np.linspace(10.0, 90.0, 18).reshape(2, 9), np.full((2, 9), 0.4)
    memory = PrandtlIshlinskii(*several, np.array([0.5]), np.full((1, 9), 0.02))
    correction = replace(gains(np.full(9, 1.1), np.zeros(9)), memory=memory)
    for actuation in (correction, replace(correction, memory=None)):
        member = replace(random_sim_to_real(0, kernels=16), actuation=actuation)
        back = members_of(SavedNetwork(export(SimToRealNetwork([member], 1.0, 0.1))))[0]
        assert (back.memory is None) == (actuation.memory is None)
        past, commanded = np.zeros((1, 2, 9)), np.full((1, 9), 1000.0)
        assert np.array_equal(back.effective_after(past, commanded), member.effective_after(past, commanded))


def test_a_memory_of_an_earlier_kind_is_not_passed_over(random_sim_to_real):
    network = SimToRealNetwork([random_sim_to_real(0, kernels=16)], 1.0, 0.1)
    network.register_buffer("play_width", torch.empty(0))
    assert members_of(network)[0].memory is None
    network.play_width = torch.full((9,), 100.0)
    with pytest.raises(ModelError, match="play_width"):
        members_of(network)


def test_members_of_different_ensembles_are_rejected(random_sim_to_real):
    with pytest.raises(SoftformError, match="differ"):
        SimToRealNetwork([random_sim_to_real(0, 16), random_sim_to_real(1, 25)], 1.0, 0.1)
    with pytest.raises(SoftformError, match="without members"):
        SimToRealNetwork([], 1.0, 0.1)


def test_networks_of_other_kinds_are_no_transfer(robot):
    network, _ = load_forward_kinematics(robot)
    with pytest.raises(SoftformError, match="no sim-to-real transfer"):
        members_of(network)


def test_the_card_speaks_to_people(model_folder, robot):
    card = load_sim_to_real(robot, model_folder).card
    page = (model_folder / SIM_TO_REAL.page_file).read_text()
    for word in (
        card.weights_sha256,
        "frame 3 is left out: it is mirrored",
        "look at frame 4: the prediction folds",
        "0.500",
        "rejected beside any other",
    ):
        assert word in page
    assert "| memory |" not in page
    remembers = card.model_copy(update={"transfer": card.transfer.model_copy(update={"play": 0.031})})
    assert "| memory | the body stays up to 3.1% of the range behind" in remembers.to_markdown()


def test_a_model_beside_another_n_fk_is_rejected(robot, tmp_path, save_random_model):
    save_random_model(tmp_path, seed=0, fk="another")
    with pytest.raises(ModelError, match=r"another N_fk .another.*softform train s2r --robot membrane"):
        load_sim_to_real(robot, tmp_path)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: (folder / "sim_to_real.json").unlink(), "no sim-to-real model"),
        (lambda folder: (folder / "sim_to_real.pt").unlink(), "cannot be read"),
        (lambda folder: (folder / "sim_to_real.pt").write_bytes(b"half"), "corrupt or truncated"),
        (lambda folder: (folder / "sim_to_real.json").write_text("{"), "cannot be read"),
    ],
)
def test_missing_and_damaged_files_are_rejected(robot, copied, spoil, reason):
    spoil(copied)
    with pytest.raises(ModelError, match=reason):
        load_sim_to_real(robot, copied)


def test_a_model_of_another_robot_is_rejected(robot, model_folder):
    thicker = robot.model_copy(update={"body": robot.body.model_copy(update={"thickness": 0.003})})
    with pytest.raises(ModelError, match="trained for robot 'membrane'"):
        load_sim_to_real(thicker, model_folder)


def test_spread_by_hand():
    predictions = np.array([[[0.0, 0.0, 1.0]], [[0.0, 5.0, 3.0]]])
    spread = members_spread(predictions, np.array([[0.0, 0.0, 1.0]]))
    assert spread == pytest.approx(np.sqrt(2.0))
