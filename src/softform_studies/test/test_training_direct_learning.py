"""Direct learning: Eqs. 18-20 against a plain computation, a known reality learned, the surface follows the points."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, directed_hausdorff

from softform_core.equations import measures
from softform_core.errors import SoftformError
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.bspline import basis_matrix
from softform_core.surface.patch import Patch
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_core.training.ensemble import TrainingRun
from softform_core.training.sim_to_real_losses import Clouds
from softform_studies.sim_to_real.direct_learning import AS_PRINTED, direct_loss, train_direct

SIDE = 6
TINY = replace(AS_PRINTED, hidden=(16, 16), steps=80, learning_rate=1e-2, batch_size=4)


def kinematics(height: float) -> MlpWeights:
    """One pressure lifts a sheet of 200 mm into a dome of up to twice this height, mm."""
    u, v = np.meshgrid(np.linspace(0, 1, SIDE), np.linspace(0, 1, SIDE), indexing="ij")
    rest = np.stack([200 * u - 100, 200 * v - 100, 0 * u], axis=-1)
    lift = np.zeros_like(rest)
    lift[..., 2] = height * np.sin(np.pi * u) * np.sin(np.pi * v)
    zero, one = np.zeros(rest.size), np.ones(rest.size)
    ends = (np.full(1, 500.0), np.full(1, 500.0), rest.ravel(), one)
    return MlpWeights([np.eye(1), lift.reshape(1, -1).T], [np.ones(1), zero], "relu", *ends)


def frames(count: int) -> Frames:
    random = np.random.default_rng(0)
    actuation = random.uniform(0, 1000, (count, 1))
    clouds = [
        0.001 * basis_matrix(random.uniform(0, 1, (600, 2)), SIDE, SIDE) @ shape.reshape(-1, 3)
        for shape in kinematics(40.0).forward(actuation)
    ]
    return Frames(actuation, clouds, [np.tile([0.0, 0.0, 1.0], (600, 1)) for _ in clouds])


def test_the_loss_is_hausdorff_plus_five_chamfer() -> None:
    random = np.random.default_rng(1)
    predicted, cloud = random.normal(0, 30, (200, 3)), random.normal(5, 30, (350, 3))
    distance = cdist(predicted, cloud)
    chamfer = (distance.min(axis=1) ** 2).mean() + (distance.min(axis=0) ** 2).mean()
    hausdorff = max(directed_hausdorff(predicted, cloud)[0], directed_hausdorff(cloud, predicted)[0])
    # A second, shorter cloud: padding must not count.
    clouds = Clouds.of([cloud, cloud[:120]], [cloud, cloud[:120]])
    loss = direct_loss(torch.from_numpy(np.stack([predicted, predicted])).float(), clouds)
    assert loss[0].item() == pytest.approx(hausdorff + 5.0 * chamfer, rel=1e-4)
    short = cdist(predicted, cloud[:120])
    expected = max(short.min(axis=1).max(), short.min(axis=0).max())
    expected += 5.0 * ((short.min(axis=1) ** 2).mean() + (short.min(axis=0) ** 2).mean())
    assert loss[1].item() == pytest.approx(expected, rel=1e-4)


def test_it_learns_a_dome_and_the_surface_passes_through_the_points() -> None:
    trained = train_direct(kinematics(10.0), frames(10), TINY, TrainingRun(0, PatchSet.of(SIDE, SIDE)))
    actuation, uv = np.array([[150.0], [850.0]]), SHEET.samples(225)
    true = np.array([basis_matrix(uv, SIDE, SIDE) @ s.reshape(-1, 3) for s in kinematics(40.0).forward(actuation)])
    mean = basis_matrix(uv, SIDE, SIDE) @ kinematics(10.0).output_offset.reshape(-1, 3)
    error = np.abs(trained.points(actuation, uv) - true)[..., 2].mean()
    assert error < 0.5 * np.abs(mean - true)[..., 2].mean()
    assert trained.handles(actuation).shape == (2, 200, 3)
    assert np.allclose(trained.points(actuation, trained.handle_uv), trained.handles(actuation), atol=1e-6)


def test_the_same_seed_learns_the_same_and_too_few_frames_are_rejected() -> None:
    short = replace(TINY, steps=5)
    first, second = (
        train_direct(kinematics(10.0), frames(6), short, TrainingRun(3, PatchSet.of(SIDE, SIDE))) for _ in range(2)
    )
    actuation = np.array([[400.0]])
    assert np.array_equal(first.handles(actuation), second.handles(actuation))
    with pytest.raises(SoftformError, match="folds"):
        train_direct(kinematics(10.0), frames(4), TINY, TrainingRun(0, PatchSet.of(SIDE, SIDE)))


def test_the_loss_is_eq_20():
    predicted, captured = np.random.default_rng(1).normal(size=(2, 30, 3)).astype(np.float32)
    loss = direct_loss(torch.from_numpy(predicted)[None], Clouds.of([captured], [captured]))
    assert float(loss) == pytest.approx(measures.direct_loss(predicted, captured), rel=1e-6)


def test_of_a_tube_both_sides_of_the_seam_are_one_handle() -> None:
    tube = PatchSet((Patch(rows=SIDE, cols=SIDE, periodic=True),))
    turn, height = np.meshgrid(2.0 * np.pi * np.arange(SIDE) / SIDE, np.linspace(0.0, 200.0, SIDE), indexing="ij")
    rest = np.stack([50.0 * np.cos(turn), 50.0 * np.sin(turn), height], axis=-1)
    zero, one = np.zeros((rest.size, 1)), np.ones(rest.size)
    ends = (np.full(1, 500.0), np.full(1, 500.0), rest.ravel(), one)
    fixed = MlpWeights([np.eye(1), zero], [np.ones(1), zero[:, 0]], "relu", *ends)
    uv = tube.samples(900)
    cloud = 0.001 * tube.evaluate(rest.reshape(-1, 3), uv)
    captured = Frames(np.linspace(0.0, 1000.0, 5)[:, None], [cloud] * 5, [np.tile([0.0, 0.0, 1.0], (len(uv), 1))] * 5)
    trained = train_direct(fixed, captured, replace(TINY, steps=2), TrainingRun(0, tube))
    assert trained.handles(captured.actuation).shape == (5, 190, 3)
    assert np.isfinite(trained.points(captured.actuation, uv)).all()
