"""Losses of sim-to-real learning (paper 000, Sec. III), one value a frame; millimetres.

Nearest neighbours are found exactly, by KD-trees on the CPU; distances are taken in torch, so gradients flow through
the points but not through the choice of neighbours. Sums over frames (Eqs. 7, 8, 9, 11) are left to the caller.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from softform_core.arrays import Array


@dataclass(frozen=True)
class Clouds:
    """Captured surfaces S_j^p of several frames, padded to one length.

    Attributes:
        points: (n, M, 3) mm.
        normals: (n, M, 3).
        weight: (n, M); 1 for a captured point, 0 for padding and for points that are left out.
    """

    points: Tensor
    normals: Tensor
    weight: Tensor

    @classmethod
    def of(cls, points: Sequence[Array], normals: Sequence[Array]) -> "Clouds":
        """Pad n clouds (m_j, 3) mm and their normals."""
        longest = max(len(cloud) for cloud in points)
        padded = torch.zeros(2, len(points), longest, 3)
        weight = torch.zeros(len(points), longest)
        for place, (cloud, normal) in enumerate(zip(points, normals, strict=True)):
            padded[0, place, : len(cloud)] = torch.from_numpy(np.asarray(cloud))
            padded[1, place, : len(cloud)] = torch.from_numpy(np.asarray(normal))
            weight[place, : len(cloud)] = 1.0
        return cls(padded[0], padded[1], weight)

    def part(self, chosen: Tensor) -> "Clouds":
        """Return clouds of the selected frames."""
        return Clouds(self.points[chosen], self.normals[chosen], self.weight[chosen])


@dataclass(frozen=True)
class Neighbours:
    """Exact nearest neighbours between predicted and captured surfaces.

    Attributes:
        in_cloud: (n, P) captured point nearest to each predicted one.
        on_surface: (n, M) predicted point nearest to each captured one, c(x).
    """

    in_cloud: Tensor
    on_surface: Tensor

    def part(self, chosen: Tensor) -> "Neighbours":
        """Select the rows of some frames."""
        return Neighbours(self.in_cloud[chosen], self.on_surface[chosen])


def nearest_neighbours(predicted: Tensor, clouds: Clouds) -> Neighbours:
    """Return nearest neighbours both ways between predicted (n, P, 3) mm and captured points of weight above zero."""
    in_cloud, on_surface = [], []
    for surface, points, weight in zip(
        predicted.detach().cpu().numpy(), clouds.points.cpu().numpy(), clouds.weight.cpu().numpy(), strict=True
    ):
        used = np.flatnonzero(weight)
        in_cloud.append(used[cKDTree(points[used]).query(surface)[1]])
        on_surface.append(cKDTree(surface).query(points)[1])
    return Neighbours(*(torch.from_numpy(np.array(found)).to(predicted.device) for found in (in_cloud, on_surface)))


def gathered(values: Tensor, indices: Tensor) -> Tensor:
    """Return rows (n, Q, 3) of values (n, P, 3) at indices (n, Q)."""
    return torch.gather(values, 1, indices[..., None].expand(-1, -1, 3))


def squared_distances(difference: Tensor, normals: Tensor | None, tangential: float) -> Tensor:
    """Return |d|^2, or with normals (d . n)^2 + tangential |d|^2, for d (n, Q, 3) mm; (n, Q) mm^2."""
    squared = difference.square().sum(-1)
    if normals is None:
        return squared
    return (difference * normals).sum(-1).square() + tangential * squared


def mean_normals(one: Tensor, other: Tensor) -> Tensor:
    """Return unit normals halfway between those of two neighbours (n, Q, 3), no gradient.

    The distance along one of them is off by s^2 / 2R between points s apart on a surface of curvature radius R, always
    to the same side; along the mean of both it is exact on spheres (Rusinkiewicz, A Symmetric Objective Function for
    ICP, 2019).
    """
    return torch.nn.functional.normalize((one + other).detach(), dim=-1)


def chamfer_parts(
    predicted: Tensor, clouds: Clouds, neighbours: Neighbours, normals: Tensor | None = None, tangential: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return the squared distances of Eq. 6, (n, P) from predicted to captured points and (n, M) back, mm^2.

    Args:
        predicted: (n, P, 3) mm, p*.
        clouds: Captured surfaces.
        neighbours: Nearest neighbours of these.
        normals: (n, P, 3) unit normals of the predicted surface, to measure along the normals (`mean_normals`), which
            has no floor from sparse samples; None for full distances, as printed.
        tangential: Share of the full squared distance that is added to the point-to-plane one.
    """
    forth_normals = back_normals = None
    if normals is not None:
        forth_normals = mean_normals(normals, gathered(clouds.normals, neighbours.in_cloud))
        back_normals = mean_normals(clouds.normals, gathered(normals, neighbours.on_surface))
    there = gathered(clouds.points, neighbours.in_cloud)
    forth = squared_distances(predicted - there, forth_normals, tangential)
    back = squared_distances(clouds.points - gathered(predicted, neighbours.on_surface), back_normals, tangential)
    return forth, back


def weighted_chamfer(forth: Tensor, back: Tensor, weight: Tensor, confidence: Tensor) -> Tensor:
    """Return the weighted Chamfer distance, Eq. 6, (n,) mm^2, of `chamfer_parts`, weights (n, M) and w_c (n, P)."""
    return (confidence * forth).mean(dim=1) + (weight * back).sum(dim=1) / weight.sum(dim=1)


def confidence_regularization(confidence: Tensor, mean: bool = False) -> Tensor:
    """Eq. 8: sum over the points of (1 - w_c)^2, (n, P) -> (n,); or the mean (docs/notes/sim-to-real-as-printed.md)."""
    squared = (1.0 - confidence).square()
    return squared.mean(dim=1) if mean else squared.sum(dim=1)


def normal_compatibility(surface_normals: Tensor, clouds: Clouds, neighbours: Neighbours) -> Tensor:
    """Eq. 9: sum over captured points of 1 - n(x) . n(c(x)), for normals (n, P, 3) of the predicted surface; (n,)."""
    cosine = (clouds.normals * gathered(surface_normals, neighbours.on_surface)).sum(-1)
    return (clouds.weight * (1.0 - cosine)).sum(dim=1)


def geometric_regularization(gamma: Tensor, centers: Tensor) -> Tensor:
    """Eq. 11: squared violation, (n,), of Eq. 10 by gamma (n, N + 4, 3) with centers (n, N, 3) mm."""
    beta = gamma[:, 4:]
    moments = centers.transpose(1, 2) @ beta
    return beta.sum(dim=1).square().sum(dim=1) + moments.square().sum(dim=(1, 2))


def surface_normals(along_u: Tensor, along_v: Tensor) -> Tensor:
    """Return unit normals du x dv (n, P, 3) from the tangents of the predicted surface."""
    return torch.nn.functional.normalize(torch.linalg.cross(along_u, along_v), dim=-1)
