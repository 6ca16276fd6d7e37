"""Losses between clouds (paper 004, Sec. IV): Chamfer, Earth Mover's Distance, and their blend; lengths in mm.

    C(a, b) = sum_x min_y |x - y|^2 + sum_y min_x |x - y|^2            mm^2
    E(a, b) = min over bijections xi of sum_x |x - xi(x)|              mm
    L_tendon = C + lambda E                                            lambda in mm

The paper has lambda = 1 with lengths in metres, which is 1000 mm here: then E outweighs C by far. E is found by
Sinkhorn's iteration at a small temperature, whose potentials are kept from one epoch to the next; tests compare it with
SciPy's assignment.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from torch import Tensor

from softform_core.arrays import Array
from softform_core.units import MM_PER_M

_TEMPERATURE = 2.0
"""Of Sinkhorn's iteration, mm."""
_LEAST, _MOST = 1e-18, 1e18
"""Bounds of its factors in single precision; the potentials grow past them from one call to the next."""


def chamfer(first: Array, second: Array) -> float:
    """Return C of two clouds (M, 3) mm, in mm^2."""
    square = cdist(first, second, "sqeuclidean")
    return float(square.min(axis=1).sum() + square.min(axis=0).sum())


def earth_movers(first: Array, second: Array) -> float:
    """Return E of two clouds (M, 3) mm, in mm: the best bijection, exactly."""
    distance = cdist(first, second)
    return float(distance[linear_sum_assignment(distance)].sum())


def whole_skin_floor_m2(area: float) -> float:
    """Return C, in m^2, that two random samples of one surface of `area` mm^2 have, whatever their number: 2 A / pi."""
    return 2.0 * area / np.pi / MM_PER_M**2


def seen_floor_m2(clouds: NDArray[np.floating]) -> float:
    """Return C, in m^2, that two random samples of what cameras saw have; their number matters for noise alone.

    It is that of both halves of each cloud (n, M, 3) mm, whose points are in random order; the mean of all.
    """
    return float(np.mean([chamfer(one[::2], one[1::2]) for one in clouds])) / MM_PER_M**2


@dataclass
class Potentials:
    """Potentials of Sinkhorn's iteration over clouds of N shapes, kept between epochs.

    Attributes:
        predicted: (N, M) mm, of predicted points.
        measured: (N, M) mm, of measured points.
    """

    predicted: Tensor
    measured: Tensor

    @classmethod
    def of(cls, shapes: int, points: int) -> "Potentials":
        """Return those to begin with."""
        return cls(torch.zeros(shapes, points), torch.zeros(shapes, points))


def transport(distance: Tensor, predicted: Tensor, measured: Tensor, rounds: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the transport plan (B, P, M) of Sinkhorn's iteration, and the potentials (B, P) and (B, M) behind it.

    Args:
        distance: (B, P, M) mm. Rows carry 1 each, columns P / M.
        predicted: (B, P) potentials to begin with, mm.
        measured: (B, M) potentials to begin with, mm.
        rounds: Number of iterations.
    """
    share = distance.shape[1] / distance.shape[2]
    kernel = ((predicted[:, :, None] + measured[:, None] - distance) / _TEMPERATURE).exp().clamp(_LEAST, _MOST)
    column = torch.ones_like(measured)[:, :, None]
    for _ in range(rounds):
        row = 1.0 / (kernel @ column).clamp(_LEAST, _MOST)
        column = share / (kernel.mT @ row).clamp(_LEAST, _MOST)
    plan = row * kernel * column.mT
    predicted = predicted + _TEMPERATURE * row[..., 0].log()
    return plan, predicted, measured + _TEMPERATURE * column[..., 0].log()


def tendon_loss(
    predicted: Tensor,
    measured: Tensor,
    rows: Tensor,
    points: Tensor,
    potentials: Potentials,
    weight: float,
    rounds: int,
) -> Tensor:
    """Return the mean of L_tendon over shapes, over the number of points: mm^2.

    Args:
        predicted: (B, M, 3) mm.
        measured: (B, m, 3) mm, some points of each measured cloud.
        rows: (B,) of the potentials.
        points: (m,) of the measured clouds, of the potentials.
        potentials: They are moved on.
        weight: lambda, mm; 0 of Chamfer's loss alone.
        rounds: Of Sinkhorn's iteration.
    """
    distance = torch.cdist(predicted, measured, compute_mode="use_mm_for_euclid_dist")
    loss = (distance.min(dim=2).values ** 2).mean() + (distance.min(dim=1).values ** 2).mean()
    if weight > 0.0:
        fixed = distance.detach()
        plan, one, other = transport(fixed, potentials.predicted[rows], potentials.measured[rows][:, points], rounds)
        potentials.predicted[rows] = one
        potentials.measured[rows[:, None], points[None]] = other
        loss = loss + weight * (plan * distance).sum(dim=(1, 2)).mean() / distance.shape[1]
    return loss
