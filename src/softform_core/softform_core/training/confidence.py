"""Confidence that predicted points have a counterpart in the scan: N_conf (paper 000, Eqs. 6 and 8), or sight."""

import itertools

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from softform_core.networks.sim_to_real import Confidence
from softform_core.training.loop import run_batches
from softform_core.training.recipe import Recipe
from softform_core.training.sim_to_real_losses import (
    Clouds,
    Neighbours,
    confidence_regularization,
    gathered,
    mean_normals,
)

_FRAMES, _SHARE = 8, 5
"""Frames of a step, and the step between the samples that each contributes."""
_TYPICAL = 0.5
"""Largest median of squared distances, as a share of omega_cr; larger ones are all scaled down to it."""
_AROUND = 2.8
"""Radius in median distances between the cloud's neighbours: of random points, one in 300 misses all others by more."""
_FAR = 4.0
"""Squared distances over omega_cr beyond which they are cut off (w = 0 from two on)."""


def seen(points: Tensor, normals: Tensor, clouds: Clouds, neighbours: Neighbours) -> Tensor:
    """Return 1 for predicted points (n, P, 3) mm that captured ones lie around, else 0; (n, P), no gradient.

    What counts is how far the nearest captured point lies aside, along the surface, over the spacing of the captured
    points. How far the surfaces are apart, which is what is being learned, says nothing about holes.
    """
    difference = gathered(clouds.points, neighbours.in_cloud) - points
    between = mean_normals(normals, gathered(clouds.normals, neighbours.in_cloud))
    aside = (difference - (difference * between).sum(-1, keepdim=True) * between).norm(dim=-1)
    frames = zip(clouds.points.cpu(), clouds.weight.cpu(), strict=True)
    spacing = torch.tensor([_spacing(*frame) for frame in frames]).to(points.device)
    return (aside < _AROUND * spacing[:, None]).float()


def _spacing(cloud: Tensor, weight: Tensor) -> float:
    used = cloud[weight > 0.0].numpy()
    return float(np.median(cKDTree(used).query(used, k=2)[0][:, 1]))


def fit_confidence(network: Confidence, points: Tensor, shape: Tensor, squared: Tensor, recipe: Recipe) -> None:
    """Take steps of Adam down Eq. 6 plus omega_cr Eq. 8 with the predicted surface held.

    Per point the minimum is w = 1 - d^2 / (2 omega) for means; N_conf smooths it over the surface and over shapes. As
    long as the surfaces do not fit yet, all distances are far above omega: w = 0 everywhere, from where the sigmoid
    has no gradient back. Distances are scaled so that the middle one never is.

    Args:
        network: N_conf.
        points: (n, P, 3) mm, simulated.
        shape: (n, r) normalised shapes.
        squared: (n, P) mm^2, from predicted points to captured ones.
        recipe: Steps, learning rate, weight.
    """
    omega = recipe.confidence_weight
    typical = _TYPICAL * omega
    squared = (squared * min(1.0, typical / max(float(squared.median()), 1e-12))).clamp(max=_FAR * omega)
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.confidence_rate)
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randperm(len(shape), generator=generator)[:_FRAMES] for _ in range(recipe.confidence_steps)]
    shares = itertools.cycle(range(_SHARE))

    def loss_of(batch: Tensor) -> Tensor:
        some = slice(next(shares), None, _SHARE)
        confidence = network(points[batch, some], shape[batch])
        regularization = confidence_regularization(confidence, recipe.mean_confidence)
        if not recipe.mean_confidence:
            regularization = _SHARE * regularization
        return ((confidence * squared[batch, some]).mean(dim=1) + omega * regularization).mean()

    run_batches(optimiser, loss_of, batches, lambda _: recipe.confidence_rate)
