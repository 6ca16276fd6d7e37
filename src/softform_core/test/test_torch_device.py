"""Training and prediction on a device, a pretended one and a GPU: nothing is mixed, results are on the CPU."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from pretended_device import NAME, PretendedDevice
from test_training_sim_to_real import ROWS, SIMULATED, TINY, frames

from softform_core.errors import SoftformError
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.shapes_on_device import ShapesOnDevice
from softform_core.frames.frames import MarkerFrames
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_core.torch_device import checked_device
from softform_core.training.ensemble import TrainingRun
from softform_core.training.marker_learning import MARKERS, train_sim_to_real_from_markers
from softform_core.training.recipe import Recipe
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M

PATCHES = PatchSet.of(ROWS, ROWS)
SHORT = replace(TINY, epochs=3, patience=3)
RECIPES = [
    SHORT,
    replace(SHORT, confidence="learned", corrects_actuation=False),
    replace(SHORT, to_plane=False),
]

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU.")


def same(one: TrainedSimToReal, other: TrainedSimToReal) -> bool:
    pairs = zip(one.members, other.members, strict=True)
    layers = [pair for a, b in pairs for pair in zip(a.coefficients.weights, b.coefficients.weights, strict=True)]
    return one.validation_mm == other.validation_mm and all(np.array_equal(a, b) for a, b in layers)


@pytest.mark.long
@pytest.mark.parametrize("recipe", RECIPES)
def test_members_learn_from_scans_on_a_device(recipe: Recipe) -> None:
    with PretendedDevice() as device:
        there = train_sim_to_real(SIMULATED, frames(8), recipe, TrainingRun(0, PATCHES, device=NAME))
    assert device.operations > 1000
    assert same(there, train_sim_to_real(SIMULATED, frames(8), recipe, TrainingRun(0, PATCHES)))


def from_markers(device: str) -> TrainedSimToReal:
    uv, actuation = SHEET.samples(25), np.random.default_rng(0).uniform(0.0, 1000.0, (8, 2))
    positions = PATCHES.evaluate(SIMULATED.forward(actuation).reshape(8, -1, 3), uv) / MM_PER_M
    captured = MarkerFrames(actuation, [f"m{i}" for i in range(25)], uv, positions * [1.0, 1.0, 1.1])
    recipe = replace(MARKERS, epochs=6, components=2, members=2, folds=4)
    return train_sim_to_real_from_markers(SIMULATED, captured, recipe, TrainingRun(0, PATCHES, device=device))


def test_members_learn_from_markers_on_a_device() -> None:
    with PretendedDevice() as device:
        there = from_markers(NAME)
    assert device.operations > 100
    assert same(there, from_markers("cpu"))


@needs_gpu
@pytest.mark.parametrize("recipe", RECIPES)
def test_members_learn_from_scans_on_a_gpu_alike(recipe: Recipe) -> None:
    there, here = (
        train_sim_to_real(SIMULATED, frames(8), recipe, TrainingRun(0, PATCHES, device=device))
        for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(there.validation_mm, here.validation_mm, rtol=0.01)


@needs_gpu
def test_members_learn_from_markers_on_a_gpu_alike() -> None:
    np.testing.assert_allclose(from_markers("cuda").validation_mm, from_markers("cpu").validation_mm, rtol=0.01)


@pytest.mark.parametrize("name", ["membrane", "manipulator"])
@pytest.mark.parametrize("device_name", [NAME, pytest.param("cuda", marks=needs_gpu)])
def test_shapes_of_a_device_are_those_of_the_pipeline(name: str, device_name: str) -> None:
    robot = load_robot(name)
    models = LivePipeline(robot, 400, None, str(models_dir() / name / "rig_default"))
    random = np.random.default_rng(0)
    actuation = random.uniform(robot.actuation_min, robot.actuation_max, (20, len(robot.actuation_min)))
    with PretendedDevice() if device_name == NAME else nullcontext() as pretended:
        place = checked_device(device_name)
        simulated, nothing = ShapesOnDevice(models.simulated, None, place).predicted(actuation)
        points, sigma = ShapesOnDevice(models.current, models.models.uncertainty, place).predicted(actuation)
    assert nothing is None and sigma is not None
    assert pretended is None or pretended.operations > 20
    np.testing.assert_allclose(simulated, models.simulated.points(actuation), atol=1e-9)
    np.testing.assert_allclose(points, models.current.points(actuation), atol=1e-3)  # mm; its kernels are single
    np.testing.assert_allclose(sigma, models.models.uncertainty.along_normals(actuation), rtol=1e-3)


def test_a_device_that_is_not_there_is_named() -> None:
    run = TrainingRun(0, PATCHES, device="cuda:99")
    with pytest.raises(SoftformError, match="PyTorch cannot compute on 'cuda:99'.* Leave out --device"):
        train_sim_to_real(SIMULATED, frames(8), SHORT, run)
