"""Points without counterpart are found, by N_conf and by sight, however far the surfaces still are apart."""

from dataclasses import replace

import pytest
import torch

from softform_core.networks.sim_to_real import Confidence
from softform_core.training.recipe import DEFAULT
from softform_core.training.sim_to_real import fit_confidence, seen
from softform_core.training.sim_to_real_losses import Clouds, nearest_neighbours

RECIPE = replace(DEFAULT, confidence_steps=300)


def scene() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Points (4, 150, 3), shapes (4, 2), and which points lie in a hole that is elsewhere in each shape."""
    torch.manual_seed(0)
    shape = torch.tensor([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    points = 60.0 * (2.0 * torch.rand(4, 150, 3) - 1.0)
    hole = (points[..., :2] - 30.0 * shape[:, None]).norm(dim=-1) < 25.0
    return points, shape, hole


@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_confidence_is_low_in_holes_alone(scale: float) -> None:
    points, shape, hole = scene()
    network = Confidence(2, 60.0)
    squared = scale * torch.where(hole, 20.0, 0.1)
    fit_confidence(network, points, shape, squared, RECIPE)
    with torch.no_grad():
        confidence = network(points, shape)
    assert confidence[hole].mean() < 0.35
    assert confidence[~hole].mean() > 0.7


@pytest.mark.parametrize("gap", [0.0, 20.0])
def test_points_in_a_hole_of_the_scan_are_not_seen_whatever_the_gap(gap: float) -> None:
    torch.manual_seed(0)
    captured = torch.cat([200.0 * torch.rand(1500, 2), torch.full((1500, 1), gap)], dim=1)
    captured = captured[(captured[:, :2] - 100.0).norm(dim=1) > 40.0]
    up = torch.tensor([0.0, 0.0, 1.0])
    clouds = Clouds.of([captured.numpy()], [up.expand_as(captured).numpy()])
    line = torch.linspace(0.0, 200.0, 41)
    points = torch.stack([*torch.meshgrid(line, line, indexing="ij"), torch.zeros(41, 41)], dim=-1).reshape(1, -1, 3)
    weight = seen(points, up.expand_as(points), clouds, nearest_neighbours(points, clouds))[0]
    from_middle = (points[0, :, :2] - 100.0).norm(dim=1)
    assert not weight[from_middle < 28.0].any()
    assert weight[from_middle > 42.0].mean() > 0.98
