import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from softform_core.cli.main import main
from softform_core.cli.train import train
from softform_core.errors import SoftformError
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.model_files import ModelError
from softform_core.networks.store import FORWARD_KINEMATICS, load_forward_kinematics
from softform_core.robots import Robot, load_robot
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations
from softform_core.simulation.store import create_simulation
from softform_core.training.forward_kinematics import DEFAULT, PAPER, train_forward_kinematics
from softform_core.training.loop import CHECKPOINT_FILE, DivergedError
from softform_core.training.shapes import TrainingShapes, load_training_shapes

SAMPLES = 40
DESCRIPTION = """
name: little
title: A coarse membrane over four chambers
source: test
body: {kind: membrane, width: 0.2, length: 0.2, thickness: 0.002, rows: 2, columns: 2, cells: 8, density: 1080.0,
       material: {law: yeoh, coefficients: [160000.0, 1000.0, 4000.0]}, wall_stiffness: 2000.0}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
surfaces: [{patch: sheet, rows: 6, columns: 6, degree: 3}]
devices: [{name: board, channels: [0, 1, 2, 3]}]
"""
QUICK = replace(DEFAULT, epochs=60, batch_size=32, hidden=(24, 24), components=12)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a robot's description and a store of really simulated shapes."""
    folder = tmp_path_factory.mktemp("little")
    (folder / "little.yaml").write_text(DESCRIPTION)
    robot = load_robot(folder / "little.yaml")
    generate(robot, inflations(robot, SAMPLES, seed=0), folder / "little.zarr", jobs=1, progress=False)
    return folder


@pytest.fixture(scope="module")
def robot(place) -> Robot:
    return load_robot(place / "little.yaml")


@pytest.fixture(scope="module")
def shapes(place, robot) -> TrainingShapes:
    return load_training_shapes(robot, place / "little.zarr")


@pytest.fixture(scope="module")
def model(place) -> Path:
    """A model made by the command, which tests must not change."""
    folder = place / "model"
    arguments = ["fk", "--robot", str(place / "little.yaml"), "--data", str(place / "little.zarr")]
    result = CliRunner().invoke(
        train,
        [*arguments, "--output", str(folder), "--epochs", "20"],
        env={"SOFTFORM_RUNS": str(place / "runs")},
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    for word in ("the floor", "validation", "test", "mean shape alone"):
        assert word in result.output
    return folder


def _copy(model: Path, folder: Path) -> Path:
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_shapes_are_fitted_in_millimetres(shapes):
    assert shapes.control_points.shape == (SAMPLES, 36, 3)
    assert np.abs(shapes.control_points[..., 0]).max() == pytest.approx(100.0, abs=1.0)  # half of the width
    assert 0.0 < shapes.fit.mean.mean() < shapes.fit.max.max() < 20.0
    assert 0.0 < shapes.between < 20.0


@pytest.mark.parametrize("recipe", [QUICK, replace(PAPER, epochs=250, batch_size=8, hidden=(24, 24))])
def test_training_beats_the_mean_shape_and_logs_a_falling_loss(tmp_path, robot, shapes, recipe):
    trained = train_forward_kinematics(robot, shapes, recipe, 0, tmp_path, progress=False)
    split = trained.split
    off_mean = shapes.control_points[split.test] - shapes.control_points[split.train].mean(axis=0)
    assert trained.errors[split.test].mean() < 0.6 * np.linalg.norm(off_mean, axis=-1).mean()
    assert trained.epochs == recipe.epochs
    log = EventAccumulator(str(next(tmp_path.iterdir()))).Reload()
    losses = [event.value for event in log.Scalars("loss/train")]
    assert len(losses) == recipe.epochs
    assert losses[-1] < 0.3 * losses[0]
    assert {"error_mm/validation_mean", "error_mm/validation_max"} <= set(log.Tags()["scalars"])


def test_reported_errors_are_those_of_the_exported_network(tmp_path, robot, shapes):
    trained = train_forward_kinematics(robot, shapes, QUICK, 0, tmp_path, progress=False)
    with torch.no_grad():
        predicted = trained.network(torch.from_numpy(shapes.actuation).float()).numpy()
    errors = np.linalg.norm(predicted - shapes.control_points, axis=-1).reshape(SAMPLES, -1)
    np.testing.assert_allclose(trained.errors, errors, atol=1e-3)


def test_best_validation_epoch_is_kept_and_patience_ends_training(tmp_path, robot, shapes):
    restless = replace(QUICK, epochs=400, learning_rate=0.05, cosine=False, patience=20)
    trained = train_forward_kinematics(robot, shapes, restless, 0, tmp_path, progress=False)
    assert trained.epochs < 400
    assert trained.epochs - trained.best_epoch == 20
    log = EventAccumulator(str(next(tmp_path.iterdir()))).Reload()
    best = min(log.Scalars("error_mm/validation_mean"), key=lambda event: event.value)
    assert best.step == trained.best_epoch
    assert trained.errors[trained.split.validation].mean() == pytest.approx(best.value, rel=1e-4)


def test_components_change_nothing_but_the_way(tmp_path, robot, shapes):
    # All components of the offsets span them exactly, so only the path of the optimiser differs.
    plain = train_forward_kinematics(robot, shapes, replace(QUICK, components=None), 0, tmp_path, progress=False)
    rotated = train_forward_kinematics(robot, shapes, replace(QUICK, components=108), 0, tmp_path, progress=False)
    part = plain.split.validation
    assert rotated.errors[part].mean() == pytest.approx(plain.errors[part].mean(), rel=0.5)
    assert extract_mlp(rotated.network).weights[-1].shape == (108, 24)


@pytest.mark.parametrize("device", ["cuda:99", "abacus"])
def test_a_device_that_is_not_there_is_named(tmp_path, robot, shapes, device):
    with pytest.raises(SoftformError, match=f"PyTorch cannot compute on '{device}'"):
        train_forward_kinematics(robot, shapes, QUICK, 0, tmp_path, device=device, progress=False)


def test_the_command_computes_where_it_is_told(tmp_path, place, model, monkeypatch):
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path / "runs"))
    arguments = ["train", "fk", "--robot", str(place / "little.yaml"), "--data", str(place / "little.zarr")]
    arguments += ["--output", str(tmp_path), "--epochs", "20", "--device"]
    assert CliRunner().invoke(main, [*arguments, "cpu"], catch_exceptions=False).exit_code == 0
    cards = [json.loads((folder / FORWARD_KINEMATICS.card_file).read_text()) for folder in (model, tmp_path)]
    assert cards[0]["weights_sha256"] == cards[1]["weights_sha256"]
    absent = CliRunner().invoke(main, [*arguments, "cuda:99"])
    assert absent.exit_code == 2 and "PyTorch cannot compute on 'cuda:99'" in absent.stderr


KILLED_IN_A_CHECKPOINT = """
import os, signal, sys
from pathlib import Path
from softform_core.robots import load_robot
from softform_core.training.loop import DivergedError
from softform_core.training.shapes import load_training_shapes
from softform_core.training.forward_kinematics import train_forward_kinematics
from test_training_forward_kinematics import QUICK

place, folder = map(Path, sys.argv[1:])
robot = load_robot(place / "little.yaml")
replaced, checkpoints = os.replace, []

def replace_until_killed(source, target):
    checkpoints.append(target)
    if len(checkpoints) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    replaced(source, target)

shapes = load_training_shapes(robot, place / "little.zarr")
os.replace = replace_until_killed
train_forward_kinematics(robot, shapes, QUICK, 5, folder, progress=False)
"""


def test_a_run_killed_while_it_writes_a_checkpoint_ends_like_one_that_was_not(tmp_path, place, robot, shapes):
    # The third checkpoint, at epoch 50, is written but not put in place: the next run begins at epoch 25.
    command = [sys.executable, "-c", KILLED_IN_A_CHECKPOINT, str(place), str(tmp_path / "killed")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert torch.load(next(tmp_path.rglob(CHECKPOINT_FILE)), weights_only=True)["epoch"] == 25

    resumed = train_forward_kinematics(robot, shapes, QUICK, 5, tmp_path / "killed", progress=False)
    uninterrupted = train_forward_kinematics(robot, shapes, QUICK, 5, tmp_path / "other", progress=False)
    logs = [EventAccumulator(str(file)).Reload() for file in (tmp_path / "killed").rglob("events*")]
    assert len(logs) == 2
    assert {event.step for log in logs for event in log.Scalars("loss/train")} == set(range(1, QUICK.epochs + 1))
    for name, tensor in uninterrupted.network.state_dict().items():
        assert torch.equal(resumed.network.state_dict()[name], tensor), name


def test_a_loss_that_diverges_is_an_error_and_leaves_the_last_good_state(tmp_path, robot, shapes):
    wild = replace(QUICK, learning_rate=1e30, cosine=False)
    with pytest.raises(DivergedError, match="The good state of epoch 0 is kept"):
        train_forward_kinematics(robot, shapes, wild, 0, tmp_path, progress=False)
    kept = torch.load(next(tmp_path.rglob(CHECKPOINT_FILE)), weights_only=True)
    assert all(torch.isfinite(tensor).all() for tensor in kept["nets"].values())


def test_shapes_with_nan_and_damaged_checkpoints_are_rejected(tmp_path, robot, shapes):
    broken = shapes.control_points.copy()
    broken[3, 13, 0] = np.nan
    with pytest.raises(SoftformError, match="NaN"):
        train_forward_kinematics(robot, replace(shapes, control_points=broken), QUICK, 0, tmp_path, progress=False)
    with pytest.raises(DivergedError):
        train_forward_kinematics(robot, shapes, replace(QUICK, learning_rate=1e30), 0, tmp_path, progress=False)
    checkpoint = next(tmp_path.rglob(CHECKPOINT_FILE))
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(SoftformError, match="is damaged"):
        train_forward_kinematics(robot, shapes, replace(QUICK, learning_rate=1e30), 0, tmp_path, progress=False)


def test_command_leaves_a_model_that_loads_and_a_card_for_people(model, robot, shapes):
    _, card = load_forward_kinematics(robot, model)
    actuation = torch.tensor(shapes.actuation[:3], dtype=torch.float32)
    assert torch.jit.load(model / FORWARD_KINEMATICS.weights_file)(actuation).shape == (3, 36, 3)
    assert card.actuators == [one.name for one in card.actuations] == ["c1", "c2", "c3", "c4"]
    assert card.split.train + card.split.validation + card.split.test == SAMPLES
    # The robot is described outside config/robots: its name alone would not find it.
    described = model.parent / "little.yaml"
    assert card.command == f"softform train fk --robot {described} --recipe default --epochs 20 --seed 0"
    page = (model / "README.md").read_text()
    assert card.weights_sha256 in page
    assert f"{card.errors_mm.test_mean:.3f}" in page


def test_missing_models_are_rejected(tmp_path, robot):
    with pytest.raises(ModelError, match=r"no forward-kinematics model.*softform train fk --robot \S+/little\.yaml"):
        load_forward_kinematics(robot, tmp_path)


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-100], lambda data: data[:500] + b"x" + data[501:], lambda _: b""]
)
def test_corrupt_and_truncated_weights_are_rejected(tmp_path, model, robot, spoil):
    weights = _copy(model, tmp_path) / "forward_kinematics.pt"
    weights.write_bytes(spoil(weights.read_bytes()))
    with pytest.raises(ModelError, match="corrupt or truncated"):
        load_forward_kinematics(robot, tmp_path)
    weights.unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        load_forward_kinematics(robot, tmp_path)


def test_models_of_other_robots_are_rejected(model, robot):
    with pytest.raises(
        ModelError,
        match=r"trained for robot 'little' with the actuations c1, c2, c3, c4 .*not for 'membrane' with c1, c2",
    ):
        load_forward_kinematics("membrane", model)
    thicker = robot.model_copy(update={"body": robot.body.model_copy(update={"thickness": 0.003})})
    with pytest.raises(ModelError, match="trained for robot 'little'"):
        load_forward_kinematics(thicker, model)


def test_cards_of_other_schemas_and_damaged_cards_are_rejected(tmp_path, model, robot):
    path = _copy(model, tmp_path) / "forward_kinematics.json"
    card = json.loads(path.read_text())
    for content, reason in (
        (json.dumps(card | {"schema_version": 3}), "schema softform/model version 3"),
        (json.dumps(card | {"schema_name": "other"}), "schema other"),
        ("[]", "schema None"),
        (json.dumps({k: v for k, v in card.items() if k != "weights_sha256"}), "damaged: weights_sha256"),
        (path.read_text()[:200], "cannot be read"),
    ):
        path.write_text(content)
        with pytest.raises(ModelError, match=reason):
            load_forward_kinematics(robot, tmp_path)


def test_weights_are_never_saved_with_the_card_of_others(tmp_path, model, robot):
    _, card = load_forward_kinematics(robot, model)
    with pytest.raises(ModelError, match="does not describe"):
        FORWARD_KINEMATICS.save(tmp_path / "new", b"other weights", card)
    assert not (tmp_path / "new").exists()


def test_training_needs_enough_shapes_of_this_robot(tmp_path, place, robot):
    with pytest.raises(SoftformError, match="There is no simulation"):
        load_training_shapes(robot, tmp_path / "nothing.zarr")
    with pytest.raises(SoftformError, match="made for robot 'little'"):
        load_training_shapes(load_robot("membrane"), place / "little.zarr")
    body, provenance = robot.body.sampled(), {"seed": 0, "command": "test", "git_revision": "none", "created": "now"}
    create_simulation(
        tmp_path / "few.zarr", robot, np.zeros((3, 4)), body.output_shapes(4), body.constants, 1, provenance
    )
    with pytest.raises(SoftformError, match=r"holds 0 converged shapes.*softform simulate"):
        load_training_shapes(robot, tmp_path / "few.zarr")
