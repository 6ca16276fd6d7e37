"""N_conf's part of the loss (paper 000, Eqs. 6 and 8), minimised in turns with N_rbf's."""

import torch
from torch import Tensor

from softform_core.networks.sim_to_real import Confidence
from softform_core.training.recipe import Recipe
from softform_core.training.sim_to_real_losses import confidence_regularization

_FRAMES, _SHARE = 8, 5
"""Frames of a step; one sample in so many of each."""
_TYPICAL = 0.5
"""Where squared distances are larger than this share of omega_cr in the middle, all of them are scaled down to it."""
_FAR = 4.0
"""Squared distances beyond so many omega_cr (w = 0 from two on) say no more than these."""


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
    for step in range(recipe.confidence_steps):
        batch = torch.randperm(len(shape), generator=generator)[:_FRAMES]
        some = slice(step % _SHARE, None, _SHARE)
        confidence = network(points[batch, some], shape[batch])
        regularization = confidence_regularization(confidence, recipe.mean_confidence)
        if not recipe.mean_confidence:
            regularization = _SHARE * regularization
        loss = (confidence * squared[batch, some]).mean(dim=1) + omega * regularization
        optimiser.zero_grad(set_to_none=True)
        loss.mean().backward()
        optimiser.step()
