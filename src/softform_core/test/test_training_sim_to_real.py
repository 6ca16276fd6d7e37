"""A tiny robot whose reality is known in closed form: training finds it, repeats itself, goes on where it stopped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.executors import ProcessPool
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.bspline import basis_matrix, derivative_matrices
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_core.training import ensemble
from softform_core.training.ensemble import TrainingRun
from softform_core.training.recipe import DEFAULT, PAPER, Recipe
from softform_core.training.sim_to_real import train_sim_to_real

ROWS = COLS = 6
TINY = replace(
    DEFAULT,
    epochs=40,
    patience=40,
    learning_rate=1e-2,
    batch_size=4,
    kernels=16,
    surface_points=100,
    components=2,
    hidden=(16, 16),
    members=2,
    confidence_steps=5,
    folds=4,
)


def kinematics(height: float) -> MlpWeights:
    """Two pressures bend a sheet of 200 mm into two waves of this height, mm."""
    u, v = np.meshgrid(np.linspace(0, 1, ROWS), np.linspace(0, 1, COLS), indexing="ij")
    rest = np.stack([200 * u - 100, 200 * v - 100, 0 * u], axis=-1)
    modes = np.zeros((2, ROWS, COLS, 3))
    modes[0, ..., 2] = height * np.sin(np.pi * u) * np.sin(np.pi * v)
    modes[1, ..., 2] = 0.7 * height * np.sin(2 * np.pi * u) * np.sin(np.pi * v)
    zero, one = np.zeros(rest.size), np.ones(rest.size)
    ends = (np.full(2, 500.0), np.full(2, 500.0), rest.ravel(), one)
    return MlpWeights([np.eye(2), modes.reshape(2, -1).T], [np.ones(2), zero], "relu", *ends)


SIMULATED, REAL = kinematics(30.0), kinematics(36.0)


def frames(count: int, seed: int = 0, hole: bool = True) -> Frames:
    random = np.random.default_rng(seed)
    actuation = random.uniform(0, 1000, (count, 2))
    clouds, normals = [], []
    for shape in REAL.forward(actuation):
        uv = random.uniform(0, 1, (400, 2))
        if hole:
            uv = uv[np.linalg.norm(uv - random.uniform(0.2, 0.8, 2), axis=1) > 0.2]
        along_u, along_v = (m @ shape.reshape(-1, 3) for m in derivative_matrices(uv, ROWS, COLS))
        normal = np.cross(along_u, along_v)
        normals.append(normal / np.linalg.norm(normal, axis=1, keepdims=True))
        points = basis_matrix(uv, ROWS, COLS) @ shape.reshape(-1, 3)
        clouds.append(0.001 * (points + random.normal(0, 0.1, points.shape)))
    return Frames(actuation, clouds, normals)


def train(captured: Frames, recipe: Recipe = TINY, folder: Path | None = None, start=None):
    return train_sim_to_real(SIMULATED, captured, recipe, TrainingRun(0, PatchSet.of(ROWS, COLS), folder, start=start))


def held_out_gap(sim_to_real) -> float:
    """Mean height error (mm) at actuations that no frame shows; the true surface is the simulated one scaled in z."""
    actuation = np.random.default_rng(99).uniform(0, 1000, (10, 2))
    uv = SHEET.samples(100)
    predicted = ForwardPipeline(SIMULATED, uv, sim_to_real, PatchSet.of(ROWS, COLS)).points(actuation)
    return float(
        np.abs(predicted - ForwardPipeline(REAL, uv, None, PatchSet.of(ROWS, COLS)).points(actuation))[..., 2].mean()
    )


def test_training_lowers_the_gap_at_held_out_actuations() -> None:
    trained = train(frames(16))
    assert held_out_gap(trained.sim_to_real) < 0.5 * held_out_gap(None)
    assert len(trained.members) == 2
    assert trained.confidence == []
    learned = train(frames(16), replace(TINY, confidence="learned", corrects_actuation=False, epochs=5, patience=5))
    assert len(learned.confidence) == 2
    assert trained.flags == ()


def test_a_frame_of_another_actuation_is_named() -> None:
    captured = frames(16)
    actuation = captured.actuation.copy()
    actuation[5] = actuation[5] * 0.5 + [0.0, 200.0]
    trained = train(Frames(actuation, captured.clouds, captured.normals), replace(TINY, members=1))
    assert [flag.frame for flag in trained.flags] == [5]


def test_the_same_seed_gives_the_same_network_and_an_interrupted_run_goes_on_to_it(tmp_path: Path, monkeypatch) -> None:
    captured, recipe = frames(8), replace(TINY, members=1)
    whole = train(captured, recipe)
    run_epoch = ensemble._MemberTask.run_epoch

    def interrupted(self, epoch: int) -> float:
        if epoch == 30:
            raise KeyboardInterrupt
        return run_epoch(self, epoch)

    monkeypatch.setattr(ensemble._MemberTask, "run_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(captured, recipe, tmp_path)
    epochs = []

    def counted(self, epoch: int) -> float:
        epochs.append(epoch)
        return run_epoch(self, epoch)

    monkeypatch.setattr(ensemble._MemberTask, "run_epoch", counted)
    resumed = train(captured, recipe, tmp_path)
    assert epochs == list(range(25, 40))
    for ours, theirs in zip(
        whole.sim_to_real.coefficients.weights, resumed.sim_to_real.coefficients.weights, strict=True
    ):
        assert np.array_equal(ours, theirs)


@pytest.mark.long
def test_processes_train_the_same_members_and_finished_ones_are_kept(tmp_path: Path, monkeypatch) -> None:
    captured, recipe = frames(8), replace(TINY, members=2, epochs=4)
    here = train(captured, recipe)
    shared = TrainingRun(0, PatchSet.of(ROWS, COLS), executor=ProcessPool(2))
    there = train_sim_to_real(SIMULATED, captured, recipe, shared)
    for ours, theirs in zip(here.members, there.members, strict=True):
        assert np.array_equal(ours.coefficients.weights[-1], theirs.coefficients.weights[-1])
    assert (here.validation_mm, here.best_epochs) == (there.validation_mm, there.best_epochs)

    run_epoch, trained = ensemble._MemberTask.run_epoch, []

    def interrupted(self, epoch: int) -> float:
        trained.append(epoch)
        if len(trained) == recipe.epochs + 2:
            raise KeyboardInterrupt
        return run_epoch(self, epoch)

    monkeypatch.setattr(ensemble._MemberTask, "run_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(captured, recipe, tmp_path)
    resumed = train(captured, recipe, tmp_path)
    assert trained[recipe.epochs + 2 :] == list(range(recipe.epochs)), "the first member was trained again"
    assert np.array_equal(resumed.members[0].coefficients.weights[-1], here.members[0].coefficients.weights[-1])
    assert not list(tmp_path.rglob("*.pt"))


def test_training_goes_on_from_an_earlier_model() -> None:
    captured = frames(16)
    earlier = train(captured)
    start = earlier.members
    unchanged = train(captured, replace(TINY, epochs=1, learning_rate=1e-12), start=start)
    assert held_out_gap(unchanged.sim_to_real) == pytest.approx(held_out_gap(earlier.sim_to_real), rel=1e-2)
    with pytest.raises(SoftformError, match="other layers"):
        train(captured, replace(TINY, hidden=(8, 8)), start=start)


def test_the_papers_recipe_trains_and_does_not_diverge() -> None:
    recipe = replace(PAPER, epochs=40, kernels=16, surface_points=144, folds=4, batch_size=4)
    assert held_out_gap(train(frames(12, hole=False), recipe).sim_to_real) < held_out_gap(None)


def test_frames_that_cannot_be_trained_on_are_rejected_with_their_number() -> None:
    good = frames(6)
    for spoil in (lambda cloud: cloud * 1000.0 * 200.0, lambda cloud: cloud * np.nan, lambda cloud: cloud[:10]):
        clouds = [*good.clouds[:3], spoil(good.clouds[3]), *good.clouds[4:]]
        normals = [*good.normals[:3], good.normals[3][: len(clouds[3])], *good.normals[4:]]
        with pytest.raises(SoftformError, match="Frame 3"):
            Frames(good.actuation, clouds, normals)
    with pytest.raises(SoftformError, match="folds"):
        train(good.part(np.arange(3)))
    with pytest.raises(SoftformError, match="takes 2 values"):
        train(Frames(np.zeros((6, 5)), good.clouds, good.normals))
