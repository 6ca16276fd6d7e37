"""`softform train s2r`: from stores of captured frames to models that are judged, kept, continued or rejected."""

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from softform_core.cli.main import main
from softform_core.cli.refresh import refresh
from softform_core.cli.train import train
from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import simulated_shapes
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, load_sim_to_real
from softform_core.frames.frames import Frames
from softform_core.frames.marker_quality import MarkerQuality
from softform_core.frames.marker_store import create_marker_frames
from softform_core.frames.quality import COVERAGE_CELLS, FrameQuality
from softform_core.frames.store import create_frames, open_frames
from softform_core.halton import halton_actuations
from softform_core.robots import load_robot
from softform_core.surface.patch_set import SHEET
from softform_core.training import ensemble, frames_needed, learn_sim_to_real, loop, recorded_frames
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M

ROBOT = load_robot("membrane")
PROVENANCE = {"seed": 0, "source": "a taller membrane", "via": "scanner", "git_revision": "none", "created": "now"}
GOOD = FrameQuality(0.9, np.ones((COVERAGE_CELLS, COVERAGE_CELLS), dtype=bool), 0.0, "")
FRAMES = 24
TALLER = 1.12
MIRRORED, ELSEWHERE = 20, 22
QUICK = {
    "epochs": 20,
    "patience": 20,
    "learning_rate": 0.03,
    "kernels": 25,
    "surface_points": 225,
    "hidden": (16,),
    "members": 2,
}


def quick(patch):
    for name in ("RECIPES", "MARKER_RECIPES"):
        recipes = {key: replace(recipe, **QUICK) for key, recipe in getattr(learn_sim_to_real, name).items()}
        patch.setattr(learn_sim_to_real, name, recipes)


@pytest.fixture(autouse=True, scope="module")
def coarse():
    """Judge by coarser surfaces than the command does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded_frames, "SURFACE_POINTS", 1600)
        yield


def actuations(frames):
    return halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, frames, 0)


def captured(actuation, number, points=1500):
    """What a scanner sees of a membrane that rises higher than simulated: its simulated shape, stretched along z."""
    random = np.random.default_rng(number)
    surface = simulated_shapes(ROBOT, random.uniform(size=(points, 2))).points(actuation)
    return (surface * [1.0, 1.0, TALLER] + random.normal(0.0, 0.1, surface.shape)) / MM_PER_M


def fill(store, numbers, spoil=lambda cloud: cloud):
    for number in numbers:
        cloud = spoil(captured(store.actuation[number], number))
        store.write_captured(number, cloud, store.actuation[number], 100.0 + number, GOOD)


def run(store, output, *options):
    arguments = ["s2r", "--frames", str(store), "--output", str(output), *options]
    return CliRunner().invoke(train, arguments, env={"SOFTFORM_RUNS": str(output.parent / "runs")})


@dataclass
class Learned:
    """One real training by the command, which tests must not change."""

    store: Path
    output: Path
    result: Result
    frames: Frames
    trained: TrainedSimToReal

    @property
    def card(self):
        return load_sim_to_real(ROBOT, self.output).card


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    store = create_frames(folder / "frames.zarr", ROBOT, actuations(FRAMES), PROVENANCE)
    fill(store, set(range(FRAMES)) - {MIRRORED, ELSEWHERE})
    fill(store, [MIRRORED], lambda cloud: cloud * [-1.0, 1.0, 1.0])
    fill(store, [ELSEWHERE], lambda cloud: cloud + [0.0, 0.0, 0.05])
    seen = []
    train_sim_to_real = learn_sim_to_real.train_sim_to_real

    def watched(weights, frames, *rest):
        seen.append((frames, train_sim_to_real(weights, frames, *rest)))
        return seen[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        quick(patch)
        patch.setattr(learn_sim_to_real, "train_sim_to_real", watched)
        result = run(store.path, folder / "model")
    return Learned(store.path, folder / "model", result, *seen[0])


@pytest.mark.long
def test_an_interrupted_command_goes_on_to_the_same_model(learned, tmp_path, monkeypatch):
    quick(monkeypatch)
    monkeypatch.setattr(loop, "_CHECKPOINT_EPOCHS", 5)
    run_epoch, epochs = ensemble._MemberTask.run_epoch, []

    def watched(member, epoch):
        epochs.append(epoch)
        if len(epochs) == 33:  # the thirteenth of the second member
            raise KeyboardInterrupt
        return run_epoch(member, epoch)

    monkeypatch.setattr(ensemble._MemberTask, "run_epoch", watched)
    cut_off = run(learned.store, tmp_path / "model")
    assert cut_off.exit_code == 1 and not (tmp_path / "model").exists()
    epochs += [-1] * 100
    assert run(learned.store, tmp_path / "model").exit_code == 0
    assert epochs[133:] == list(range(10, 20))  # the first member was done
    whole, resumed = (load_sim_to_real(ROBOT, folder) for folder in (learned.output, tmp_path / "model"))
    for one, other in zip(whole.members, resumed.members, strict=True):
        for a, b in zip(one.coefficients.weights, other.coefficients.weights, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.long
def test_members_are_trained_on_the_device_that_is_named(learned, tmp_path, monkeypatch):
    quick(monkeypatch)
    assert run(learned.store, tmp_path / "model", "--device", "cpu").exit_code == 0
    card = load_sim_to_real(ROBOT, tmp_path / "model").card
    assert card.weights_sha256 == learned.card.weights_sha256 and card.command.endswith(" --seed 0 --device cpu")


@pytest.mark.parametrize("options", [[], ["--frames-needed"]])
def test_a_device_that_is_not_there_is_named(learned, tmp_path, monkeypatch, options):
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path / "runs"))
    arguments = ["train", "s2r", "--frames", str(learned.store), "--output", str(tmp_path / "model"), *options]
    result = CliRunner().invoke(main, [*arguments, "--device", "cuda:99"])
    assert result.exit_code == 2 and "PyTorch cannot compute on 'cuda:99'" in result.stderr
    assert not (tmp_path / "model").exists()


def raised(trained, millimetres):
    """The same transfer, its predictions raised: alpha_0 of Eq. 2 along z."""

    def higher(one):
        offset = one.coefficients.output_offset.copy()
        offset[2] += millimetres
        return replace(one, coefficients=replace(one.coefficients, output_offset=offset))

    members = [higher(member) for member in trained.members]
    return replace(trained, sim_to_real=higher(trained.sim_to_real), members=members)


@pytest.fixture
def grown(learned, tmp_path):
    """The learned store with eight more frames, and its model, to go on from."""
    shutil.copytree(learned.store, tmp_path / "frames.zarr")
    shutil.copytree(learned.output, tmp_path / "model")
    store = open_frames(tmp_path / "frames.zarr", ROBOT, writable=True)
    store.extend(actuations(FRAMES + 8))
    fill(store, range(FRAMES, FRAMES + 8))
    return store.path


def test_the_model_is_better_than_the_simulation_on_frames_that_it_has_never_seen(learned):
    assert learned.result.exit_code == 0, learned.result.output
    card, output = learned.card, learned.result.output
    assert card.frames.held_out == [7, 15, 23]
    left = [7, 15, 23, MIRRORED, ELSEWHERE]
    assert np.array_equal(learned.frames.actuation, np.delete(actuations(FRAMES), left, axis=0))
    errors = card.errors_mm
    assert errors.after_mean < 0.5 * errors.before_mean
    # 0.1 mm of Gaussian noise: 0.08 mm in the mean.
    assert errors.noise_floor_mean == pytest.approx(0.08, abs=0.03) and errors.noise_floor_mean < errors.after_mean
    for value in (errors.before_mean, errors.after_mean, errors.noise_floor_mean):
        assert f"{value:.3f}" in output
    assert "19 to learn from, 3 held out (7, 15, 23)" in output
    assert card.command == "softform train s2r --robot membrane --frames frames.zarr --output model --seed 0"
    for cloud, normals in zip(learned.frames.clouds, learned.frames.normals, strict=True):
        assert len(cloud) == 1000 and (normals[:, 2] > 0.0).mean() > 0.99


@pytest.mark.long
def test_frames_needed_are_said_from_parts_of_the_frames(grown, monkeypatch):
    monkeypatch.setattr(frames_needed, "DEFAULT", replace(frames_needed.DEFAULT, **QUICK))
    monkeypatch.setattr(frames_needed, "SURFACE_POINTS", 1600)
    result = run(grown, grown.parent / "new", "--frames-needed", "--json", "-")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["frames"] == [5, 10, 26] and found["held_out"] == 4
    assert found["error_mm"][0] > found["error_mm"][-1] > 0.08
    assert not (grown.parent / "new").exists()


@pytest.mark.parametrize("option", [("--jobs", "2"), ("--continue",), ("--recipe", "paper"), ("--cluster", "auto")])
def test_frames_needed_take_no_option_of_a_model(tmp_path, option):
    result = run(tmp_path / "frames.zarr", tmp_path / "model", "--frames-needed", *option)
    assert result.exit_code == 2 and f"{option[0]}: not with --frames-needed" in result.stderr


def test_frames_of_something_else_are_left_out_by_number(learned):
    left_out = learned.card.frames.left_out
    assert set(left_out) == {MIRRORED, ELSEWHERE}
    assert "mirrored" in left_out[MIRRORED] and "mm from the simulated surface" in left_out[ELSEWHERE]
    assert f"frame {MIRRORED} is left out" in learned.result.output


def test_a_second_training_says_what_it_replaces(learned, tmp_path, monkeypatch):
    shutil.copytree(learned.output, tmp_path / "model")
    monkeypatch.setattr(learn_sim_to_real, "train_sim_to_real", lambda *_: raised(learned.trained, 0.05))
    again = run(learned.store, tmp_path / "model")
    assert again.exit_code == 0, again.output
    assert f"Model {learned.card.weights_sha256[:12]}" in again.output and "will be replaced" in again.output
    assert load_sim_to_real(ROBOT, tmp_path / "model").card.weights_sha256 != learned.card.weights_sha256


@pytest.mark.long
def test_a_continued_model_that_is_worse_is_kept_aside_and_the_old_one_stays(learned, grown, monkeypatch):
    starts, output = [], grown.parent / "model"

    def worse(*arguments):
        starts.append(arguments[-1].start)
        return raised(learned.trained, 4.0)

    monkeypatch.setattr(learn_sim_to_real, "train_sim_to_real", worse)
    files = {file.name: file.read_bytes() for file in output.iterdir()}
    result = run(grown, output, "--continue")
    assert result.exit_code == 1 and "The new model is worse on the 4 held-out frames" in result.output
    assert {file.name: file.read_bytes() for file in output.iterdir() if file.is_file()} == files
    candidate = load_sim_to_real(ROBOT, output / "candidate").card
    assert candidate.errors_mm.after_mean > learned.card.errors_mm.after_mean
    for one, member in zip(starts[0], load_sim_to_real(ROBOT, output).members, strict=True):
        assert all(
            np.array_equal(a, b) for a, b in zip(one.coefficients.weights, member.coefficients.weights, strict=True)
        )


@pytest.mark.long
def test_a_continued_model_that_is_not_worse_is_taken(learned, grown, monkeypatch):
    output = grown.parent / "model"
    monkeypatch.setattr(learn_sim_to_real, "train_sim_to_real", lambda *_: learned.trained)
    result = run(grown, output, "--continue")
    assert result.exit_code == 0 and "earlier model" in result.output
    card = load_sim_to_real(ROBOT, output).card
    assert card.training.continues == learned.card.weights_sha256
    assert card.frames.held_out == [7, 15, 23, 31]
    assert set(card.frames.used) == set(learned.card.frames.used) | set(range(FRAMES, FRAMES + 7))


def test_a_new_copy_is_learned_from_five_scans(tmp_path, monkeypatch):
    quick(monkeypatch)
    store = create_frames(tmp_path / "five.zarr", ROBOT, actuations(5), PROVENANCE)
    fill(store, range(5))
    result = run(store.path, tmp_path / "model")
    assert result.exit_code == 0, result.output
    card = load_sim_to_real(ROBOT, tmp_path / "model").card
    assert card.frames.used == [0, 1, 2, 4] and card.frames.held_out == [3]
    assert card.errors_mm.after_mean < 0.6 * card.errors_mm.before_mean


def test_five_scans_refresh_a_model_whose_sensors_have_drifted(learned, tmp_path):
    shutil.copytree(learned.output, tmp_path / "model")
    store = create_frames(tmp_path / "new.zarr", ROBOT, actuations(5), PROVENANCE | {"created": "later"})
    for number, actuation in enumerate(store.actuation):
        cloud = captured(0.95 * actuation, number)  # with 0.85 the taller membrane would be the simulated one
        store.write_captured(number, cloud, actuation, 100.0 + number, GOOD)
    arguments = ["--frames", str(store.path), "--output", str(tmp_path / "model")]
    result = CliRunner().invoke(refresh, arguments, env={"SOFTFORM_RUNS": str(tmp_path / "runs")})
    assert result.exit_code == 0, result.output
    old, new = load_sim_to_real(ROBOT, learned.output), load_sim_to_real(ROBOT, tmp_path / "model")
    assert new.card.frames.used == [0, 1, 2, 4] and new.card.frames.held_out == [3]
    assert new.card.training.continues == old.card.weights_sha256

    earlier = re.search(r"earlier model +([0-9.]+)", result.output)
    assert new.card.errors_mm.after_mean < 0.6 * float(earlier[1]), result.output
    again = CliRunner().invoke(refresh, ["--frames", str(learned.store), "--output", str(learned.output)])
    assert "was made from" in str(again.exception)


def test_a_model_worse_than_the_simulation_is_kept_aside(learned, tmp_path, monkeypatch):
    monkeypatch.setattr(learn_sim_to_real, "train_sim_to_real", lambda *_: raised(learned.trained, 10.0))
    result = run(learned.store, tmp_path / "model")
    assert result.exit_code == 1 and "worse than the simulation alone" in result.output
    assert not (tmp_path / "model" / SIM_TO_REAL.card_file).exists()
    assert load_sim_to_real(ROBOT, tmp_path / "model" / "candidate").card.errors_mm.after_mean > 5.0


def test_what_cannot_be_learned_from_is_rejected(learned, tmp_path):
    few = create_frames(tmp_path / "few.zarr", ROBOT, actuations(4), PROVENANCE)
    empty = create_frames(tmp_path / "empty.zarr", ROBOT, actuations(6), PROVENANCE)
    fill(few, range(4))
    for store, options, reason in (
        (tmp_path / "nothing.zarr", [], "There is no"),
        (empty.path, [], "holds no frame that can be compared"),
        (few.path, [], "3 frames are left to learn from"),
        (learned.store, ["--continue"], "no sim-to-real model"),
        (learned.store, ["--recipe", "markers"], "cannot learn from frames by scanner"),
    ):
        result = run(store, tmp_path / "model", *options)
        assert isinstance(result.exception, SoftformError) and reason in str(result.exception), result.output
    assert not (tmp_path / "model").exists()


@pytest.mark.long
def test_a_model_continues_with_new_frames_of_its_own_store_only(learned, tmp_path):
    nothing_new = run(learned.store, learned.output, "--continue")
    assert "no frame that the model has not seen" in str(nothing_new.exception)
    other = create_frames(tmp_path / "frames.zarr", ROBOT, actuations(8), PROVENANCE | {"created": "later"})
    fill(other, range(8))
    result = run(other.path, learned.output, "--continue")
    assert "trained on other frames" in str(result.exception)
    mixed = run(learned.store, learned.output, "--continue", "--recipe", "paper")
    assert "cannot go on by 'paper'" in str(mixed.exception)


def test_markers_are_learned_from_and_exchanged_ones_left_out(tmp_path, monkeypatch):
    quick(monkeypatch)
    uv = 0.1 + 0.8 * SHEET.samples(36)
    names = [f"m{number + 1:02d}" for number in range(len(uv))]
    rest = np.column_stack([0.32 * (uv - 0.5), np.zeros(len(uv))])
    store = create_marker_frames(
        tmp_path / "frames.zarr", ROBOT, actuations(FRAMES), names, rest, PROVENANCE | {"via": "mocap"}
    )
    pipeline = simulated_shapes(ROBOT, uv)
    for number, actuation in enumerate(store.actuation):
        positions = pipeline.points(actuation) * [1.0, 1.0, TALLER] / MM_PER_M
        if number == 2:
            positions[[3, 4]] = positions[[4, 3]]
        positions[number % len(uv)] = np.nan
        store.write_captured(number, positions, actuation, 100.0 + number, MarkerQuality(0.97, ""))
    result = run(store.path, tmp_path / "model")
    assert result.exit_code == 0, result.output
    card = load_sim_to_real(ROBOT, tmp_path / "model").card
    assert card.training.recipe == "markers" and card.frames.via == "mocap"
    assert list(card.frames.left_out) == [2] and "m04, m05" in card.frames.left_out[2]
    assert card.errors_mm.after_mean < 0.5 * card.errors_mm.before_mean
    assert card.errors_mm.noise_floor_mean is None and "scanner noise" not in result.output
