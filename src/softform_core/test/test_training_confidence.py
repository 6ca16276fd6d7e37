"""N_conf finds the points without counterpart, and is not lost while all distances are large."""

from dataclasses import replace

import pytest
import torch

from softform_core.networks.sim_to_real import Confidence
from softform_core.training.confidence import fit_confidence
from softform_core.training.sim_to_real_recipes import DEFAULT

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
