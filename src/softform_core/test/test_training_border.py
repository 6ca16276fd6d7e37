"""The border's misfit is least where evenly spread points end, and does not pull where nothing was captured."""

import numpy as np
import pytest
import torch

from softform_core.surface.patch_set import PatchSet
from softform_core.training.border import Border, BorderLine, border_misfit, border_neighbours
from softform_core.training.sim_to_real_losses import Clouds

SIDE = 15
SHEET = 140.0


def sheet(outward: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A flat square (1, P, 3) with its tangents, widened by `outward` mm at each side."""
    line = torch.linspace(0, 1, SIDE)
    u, v = torch.meshgrid(line, line, indexing="ij")
    half = SHEET / 2 + outward
    points = torch.stack([(2 * u - 1) * half, (2 * v - 1) * half, 0 * u], dim=-1).reshape(1, -1, 3)
    along = torch.zeros(2, 1, SIDE * SIDE, 3)
    along[0, ..., 0] = along[1, ..., 1] = SHEET
    return points, along[0], along[1]


def clouds(frames: int, keep=lambda points: np.full(len(points), True)) -> Clouds:
    random = np.random.default_rng(0)
    captured = [random.uniform(-SHEET / 2, SHEET / 2, (400, 3)) * [1, 1, 0] for _ in range(frames)]
    captured = [cloud[keep(cloud)] for cloud in captured]
    return Clouds.of(captured, [np.tile([0.0, 0, 1], (len(cloud), 1)) for cloud in captured])


def slope(offset: float, captured: Clouds) -> float:
    """Derivative of the misfit as the border moves outward from `offset` mm beyond the true one, per frame."""
    outward = torch.tensor(offset, requires_grad=True)
    frames = len(captured.points)
    points, slope_u, slope_v = (part.expand(frames, -1, -1) for part in sheet(outward))
    line = BorderLine.of(Border.of(PatchSet.of(), points[0].detach().numpy()), points, slope_u, slope_v)
    misfit = border_misfit(line, captured, border_neighbours(line, captured)).mean()
    (derivative,) = torch.autograd.grad(misfit, outward)
    return float(derivative)


def test_outward_tangents_leave_the_surface() -> None:
    points, slope_u, slope_v = sheet(torch.tensor(0.0))
    line = BorderLine.of(Border.of(PatchSet.of(), points[0].detach().numpy()), points, slope_u, slope_v)
    assert line.points.shape == (1, 4 * (SIDE - 2), 3)
    assert ((line.points * line.outward).sum(-1) == SHEET / 2).all()
    assert line.length.mean().item() == pytest.approx(SHEET / (SIDE - 1), rel=1e-5)


def test_the_misfit_is_least_at_the_border_of_the_points() -> None:
    captured = clouds(60)
    assert slope(1.5, captured) > 0.0
    assert slope(-1.5, captured) < 0.0
    offsets = np.linspace(-1.0, 1.0, 21)
    slopes = [slope(float(offset), captured) for offset in offsets]
    assert offsets[int(np.argmin(np.abs(slopes)))] == pytest.approx(0.0, abs=0.35)


def test_density_is_that_of_the_points_and_nothing_pulls_where_there_are_none() -> None:
    points, slope_u, slope_v = (part.expand(60, -1, -1) for part in sheet(torch.tensor(0.0)))
    line = BorderLine.of(Border.of(PatchSet.of(), points[0].detach().numpy()), points, slope_u, slope_v)
    found = border_neighbours(line, clouds(60))
    assert found.density.mean().item() == pytest.approx(400 / SHEET**2, rel=0.1)
    far_from_border = clouds(60, lambda cloud: np.abs(cloud).max(axis=1) < 0.5 * SHEET / 2)
    assert border_neighbours(line, far_from_border).density.max() == 0.0
    assert slope(1.0, far_from_border) == 0.0


def tube(outward: torch.Tensor) -> tuple[PatchSet, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A straight tube around z (1, P, 3), made longer by `outward` mm at each end, with its tangents."""
    patch = PatchSet.of(periodic=True)
    u, v = torch.from_numpy(patch.samples(SIDE * SIDE)).float().T
    angle, half = 2.0 * torch.pi * u, SHEET / 2 + outward
    radius = SHEET / (2.0 * torch.pi)
    around = torch.stack([torch.cos(angle), torch.sin(angle), 0 * u], dim=-1)
    points = radius * around + torch.stack([0 * u, 0 * u, (2 * v - 1) * half], dim=-1)
    slope_u = SHEET * torch.stack([-torch.sin(angle), torch.cos(angle), 0 * u], dim=-1)
    slope_v = torch.zeros_like(slope_u)
    slope_v[:, 2] = SHEET
    return patch, points[None], slope_u[None], slope_v[None]


def test_a_tube_ends_twice_and_its_ends_have_no_corner() -> None:
    patch, points, slope_u, slope_v = tube(torch.tensor(0.0))
    line = BorderLine.of(Border.of(patch, points[0].detach().numpy()), points, slope_u, slope_v)
    assert line.points.shape == (1, 2 * SIDE, 3)
    assert torch.allclose((line.points * line.outward).sum(-1), torch.tensor(SHEET / 2))
    assert line.length.sum().item() == pytest.approx(2 * SHEET, rel=1e-5)
    ramp = torch.arange(2.0 * SIDE)[None]
    sums = line.border.running_sum(ramp)[0]
    assert sums[0] == sum([12, 13, 14, 0, 1, 2, 3]) and sums[SIDE] == sum([27, 28, 29, 15, 16, 17, 18])


def test_the_misfit_is_least_at_the_ends_of_a_captured_tube() -> None:
    random = np.random.default_rng(0)
    radius = SHEET / (2.0 * np.pi)
    angles = random.uniform(0.0, 2.0 * np.pi, (60, 400))
    around = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=-1)
    heights = random.uniform(-SHEET / 2, SHEET / 2, (60, 400, 1)) * [0.0, 0.0, 1.0]
    captured = Clouds.of(list(radius * around + heights), list(around))

    def derivative(offset: float) -> float:
        outward = torch.tensor(offset, requires_grad=True)
        patch, *surface = tube(outward)
        line = BorderLine.of(
            Border.of(patch, surface[0][0].detach().numpy()), *(part.expand(60, -1, -1) for part in surface)
        )
        misfit = border_misfit(line, captured, border_neighbours(line, captured)).mean()
        return float(torch.autograd.grad(misfit, outward)[0])

    offsets = np.linspace(-1.0, 1.0, 21)
    slopes = [derivative(float(offset)) for offset in offsets]
    assert slopes[0] < 0.0 < slopes[-1]
    assert offsets[int(np.argmin(np.abs(slopes)))] == pytest.approx(0.0, abs=0.35)
