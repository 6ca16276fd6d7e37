"""From tips to models: what the fits reach, what the files hold, what is rejected."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from equilibria import simulate_tips

from softform_core.cli.train import train
from softform_core.errors import SoftformError
from softform_core.forward.tip_model import load_tip_model
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.model_files import ModelError
from softform_core.networks.store import TIP_KINEMATICS
from softform_core.networks.tip import TipNetwork
from softform_core.paths import models_of
from softform_core.robots import load_robot
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import grid, grid_actuations
from softform_core.stores.past import pasts
from softform_core.training.least_squares import fit
from softform_core.training.split import split_rows
from softform_core.training.tip_samples import TipSamples, read_tip_samples, write_tip_samples
from softform_core.training.tips import train_kinematics, train_tip_transfer

ROBOT = load_robot("three_chamber", "tip")
KINEMATICS = extract_mlp(TIP_KINEMATICS.load(models_of("three_chamber"), ROBOT)[0].forward_kinematics)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A store of 6 values of each actuation, and N_fk and N_J trained on it for a moment."""
    store = generate(ROBOT, grid(ROBOT, 6), tmp_path_factory.mktemp("rods") / "tips.zarr", jobs=1, progress=False)
    data = store.converged()
    return (
        store,
        data,
        train_kinematics(ROBOT, *data, 0, forward_kinematics_steps=150, jacobian_steps=50, progress=False),
    )


def test_a_small_fit_is_below_the_papers_errors_already(small):
    _, (actuations, tips, jacobians), trained = small
    assert trained.forward_kinematics.hidden == trained.jacobian.hidden == [35, 35]
    assert trained.forward_kinematics.test_mean_percent < 0.34
    assert trained.jacobian.test_mean_percent < 2.0
    rows = trained.split.test
    predicted = extract_mlp(trained.network.forward_kinematics).forward(actuations[rows])
    errors = np.linalg.norm(predicted - 1000.0 * tips[rows], axis=1)
    assert errors.mean() == pytest.approx(
        trained.forward_kinematics.test_mean_percent * trained.workspace_width_mm / 100.0
    )
    flat = extract_mlp(trained.network.jacobian).forward(actuations[rows]).reshape(-1, 3, 3)
    assert np.abs(flat - 1000.0 * jacobians[rows]).max() < 0.1 * np.abs(1000.0 * jacobians).max()


def test_the_split_has_the_papers_shares_and_no_row_twice():
    split = split_rows(4096, seed=0)
    assert (len(split.train), len(split.validation), len(split.test)) == (2867, 819, 410)
    assert len(np.unique(np.concatenate([split.train, split.validation, split.test]))) == 4096


def test_a_fit_ends_with_the_weights_of_least_validation_error():
    rng = np.random.default_rng(0)
    x, noise = torch.from_numpy(rng.uniform(-1, 1, (40, 1))), torch.from_numpy(rng.normal(0.0, 0.3, (40, 1)))
    network = TipNetwork(x, torch.sin(3 * x) + noise, [30], one_scale=True)
    split = split_rows(40, 0)
    done = fit(network, x, torch.sin(3 * x) + noise, split, 1000, patience=300, label="noisy", progress=False)
    assert done.best_step < done.steps < 1000  # it would go on to fit the noise


def test_the_commands_write_models_that_fit_and_reject_others(tmp_path, small, monkeypatch):
    store = small[0]
    monkeypatch.setattr("softform_core.training.tips.FORWARD_KINEMATICS_STEPS", 50)
    folder = tmp_path / "models"
    options = ["--robot", "three_chamber", "--data", str(store.path), "--output", str(folder)]
    monkeypatch.setattr("softform_core.training.tips.train_kinematics", lambda *args, **options: small[2])
    done = CliRunner().invoke(train, ["fk", *options])
    assert done.exit_code == 0, done.output
    assert "N_fk  mean" in done.output
    card = json.loads((folder / "forward_kinematics.json").read_text())
    assert card["data"]["samples"] == 216
    assert (folder / "README.md").read_text() == TIP_KINEMATICS.load(folder, ROBOT)[1].to_markdown()
    model = load_tip_model(ROBOT, folder)
    predicted = model.tip(small[1][0])
    assert np.linalg.norm(predicted - 1000.0 * small[1][1], axis=1).mean() < 0.0034 * model.workspace_width_mm
    with pytest.raises(ModelError, match="trained for robot 'three_chamber'"):
        load_tip_model("planar_fingers", folder)
    rejected = CliRunner().invoke(train, ["fk", *options, "--recipe", "paper"])
    assert rejected.exit_code == 2
    assert "--recipe does not fit the robot" in rejected.output


@pytest.mark.long
def test_sim_to_real_learns_a_turned_and_stretched_reality_from_few_tips(tmp_path):
    actuations = np.random.default_rng(2).uniform(ROBOT.actuation_min, ROBOT.actuation_max, (120, 3))
    longer = ROBOT.body.section.model_copy(update={"length": 1.05 * ROBOT.body.section.length})
    turned = ROBOT.body.reality_type()(base_turn=(0.1415, 0.0, 0.0))
    problem = ROBOT.body.model_copy(update={"section": longer}).real_simulator(turned)
    tips = simulate_tips(problem, ROBOT, actuations)
    path = tmp_path / "tips.zarr"
    write_tip_samples(path, ROBOT, TipSamples(actuations, tips), {"source": "a test", "created": "now"})
    folder = tmp_path / "real"
    done = CliRunner().invoke(
        train, ["s2r", "--robot", "three_chamber", "--frames", str(path), "--output", str(folder)]
    )
    assert done.exit_code == 0, done.output
    simulated, real = load_tip_model(ROBOT), load_tip_model(ROBOT, sim_to_real=folder)
    fresh = np.random.default_rng(3).uniform(ROBOT.actuation_min, ROBOT.actuation_max, (50, 3))
    truth = 1000.0 * simulate_tips(problem, ROBOT, fresh)
    before, after = (np.linalg.norm(m.tip(fresh) - truth, axis=1).mean() for m in (simulated, real))
    assert after < 0.01 * real.workspace_width_mm < before
    # Eq. 4: diff(N_s2r) J^s, where J^s is of N_J and not the derivative of N_fk.
    here, change = fresh[0], np.array([300.0, -200.0, 100.0])
    ahead, behind = (
        real.sim_to_real.values(
            np.concatenate(
                [simulated.tip(here) + sign * simulated.tip_and_jacobian(here)[1] @ change, here + sign * change]
            )[None]
        )[0]
        for sign in (1.0, -1.0)
    )
    step = 0.5 * (ahead - behind)
    np.testing.assert_allclose(real.tip_and_jacobian(here)[1] @ change, step, atol=1e-3 * np.abs(step).max())
    np.testing.assert_array_equal(real.without_sim_to_real.tip(fresh), simulated.tip(fresh))


def test_a_transfer_beside_another_n_fk_is_rejected(tmp_path, small, monkeypatch):
    monkeypatch.setattr("softform_core.training.tips.train_kinematics", lambda *args, **options: small[2])
    other = tmp_path / "other"
    CliRunner().invoke(train, ["fk", "--robot", "three_chamber", "--data", str(small[0].path), "--output", str(other)])
    actuations = grid_actuations(ROBOT.actuation_min, ROBOT.actuation_max, 3)
    path = tmp_path / "tips.zarr"
    tips, told = small[0].converged()[1][:27], {"source": "a test", "created": "now"}
    write_tip_samples(path, ROBOT, TipSamples(actuations, tips), told)
    CliRunner().invoke(train, ["s2r", "--robot", "three_chamber", "--frames", str(path), "--output", str(other)])
    with pytest.raises(ModelError, match="trained with another N_fk"):
        load_tip_model(ROBOT, other, sim_to_real=other)


def test_captured_tips_that_are_few_or_of_another_robot_are_rejected(tmp_path):
    path, few = tmp_path / "tips.zarr", TipSamples(np.zeros((5, 3)), np.zeros((5, 3)))
    write_tip_samples(path, ROBOT, few, {"source": "a test", "created": "now"})
    with pytest.raises(SoftformError, match="5 samples are too few"):
        train_tip_transfer(ROBOT, KINEMATICS, read_tip_samples(path, ROBOT)[0], 100.0, 0, progress=False)
    with pytest.raises(SoftformError, match="was made for robot 'three_chamber'"):
        read_tip_samples(path, load_robot("planar_fingers", "tip"))
    with pytest.raises(SoftformError, match="is there already"):
        write_tip_samples(path, ROBOT, few, {"source": "a test", "created": "now"})


def test_what_was_commanded_before_tips_comes_back_from_disk(tmp_path):
    actuations = np.random.default_rng(0).uniform(ROBOT.actuation_min, ROBOT.actuation_max, (6, 3))
    samples, told = TipSamples(actuations, np.zeros((6, 3)), pasts(actuations)), {"source": "a test", "created": "now"}
    write_tip_samples(tmp_path / "tips.zarr", ROBOT, samples, told)
    read, origin = read_tip_samples(tmp_path / "tips.zarr", ROBOT)
    for ours, theirs in zip(samples, read, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert origin == told and np.isnan(read.past[0]).all()
    with pytest.raises(SoftformError, match="Row 0"):
        write_tip_samples(tmp_path / "other.zarr", ROBOT, samples._replace(past=np.full((6, 1, 3), np.inf)), told)
