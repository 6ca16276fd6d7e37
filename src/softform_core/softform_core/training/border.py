"""Fit of the captured surface's border: distances along normals do not see a surface slide past its border.

A scanner's points are spread over the surface like a Poisson process: of some density up to the border, none beyond
it. The border of the predicted surface is where that is likeliest: each captured point beyond it pulls it outward, the
density of points inside pulls it inward everywhere (where nothing was captured, nothing pulls). With s the distance
of a captured point from the border, outward and along the surface, sigma its blur and rho the density,

    -log likelihood = -sum_x log Phi(-s(x) / sigma) + integral over the border of rho * outward shift.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn.functional import conv1d, normalize, pad

from softform_core.arrays import Array
from softform_core.surface.patch_set import PatchSet
from softform_core.training.sim_to_real_losses import Clouds, gathered

BLUR_MM = 0.4
"""Blur sigma, mm: the scanner's noise and what the samples' straight pieces of border leave out."""
_STRIP = 2.0
"""Width of the strip inside the border whose points count, in spacings of the surface's samples."""
_BEYOND = 0.4
"""Largest distance of a point outside the border, in spacings; those further off are outliers."""
_HEIGHT = 0.6
"""Largest distance of a point off the surface, in spacings; those further off are outliers, too."""
_INNER_MM = 1.0
"""Least distance inside the border, mm, of points that the density is taken from; they stay inside during the fit."""
_WINDOW = 3
"""Samples of the border on both sides that the density is averaged over."""


@dataclass(frozen=True)
class Border:
    """The sides at which the surface ends as samples of its grids, without the corners.

    Along a side where two patches meet the surface goes on: it is left out.

    Attributes:
        index: (R,) place of each sample in the grids, side by side.
        along_u: (R,) whether the border runs across u, so that u leaves the surface there.
        sign: (R,) direction in which that parameter leaves.
        step: (R,) part of the side that a sample stands for.
        groups: For each patch: samples on all of its sides, number of sides, and whether each is a circle, an end of a
            tube.
    """

    index: Tensor
    along_u: Tensor
    sign: Tensor
    step: Tensor
    groups: tuple[tuple[int, int, bool], ...]

    @classmethod
    def of(cls, patches: PatchSet, points: Array) -> "Border":
        """Return the border of the samples of `patches.samples(P)`, which lie at points (P, 3) on a typical shape."""
        own = len(points) // len(patches)
        none = torch.empty(0)
        parts, groups = [[none.long(), none.bool(), none, none]], []
        for place, patch in enumerate(patches.patches):
            first, steps, before = place * own, patch.spacing(own), len(parts)
            others = np.delete(points, slice(first, first + own), axis=0)
            for side in patch.sides:
                number = first + patch.side_samples(own, side)
                if _meets(points[number], others):
                    continue
                index = torch.from_numpy(number)
                leaves_by_u, outwards, length = side.axis == 0, 2.0 * side.end - 1.0, steps[1 - side.axis]
                parts.append([index, *(torch.full(index.shape, value) for value in (leaves_by_u, outwards, length))])
            if len(parts) > before:
                samples = sum(len(part[0]) for part in parts[before:])
                groups.append((samples, len(parts) - before, patch.periodic))
        index, along_u, sign, step = (torch.cat(values) for values in zip(*parts, strict=True))
        return cls(index, along_u, sign, step, tuple(groups))

    def running_sum(self, values: Tensor) -> Tensor:
        """Return the sum (n, R) over a window along each of the sides."""
        sums = []
        parts = values.split([samples for samples, _, _ in self.groups], dim=1)
        for part, (_, sides, closed) in zip(parts, self.groups, strict=True):
            padded = pad(
                part.reshape(len(part) * sides, 1, -1), (_WINDOW, _WINDOW), "circular" if closed else "constant"
            )
            sums.append(conv1d(padded, padded.new_ones(1, 1, 2 * _WINDOW + 1)).reshape(part.shape))
        return torch.cat(sums, dim=1)


def _meets(side: Array, others: Array) -> bool:
    """Return whether samples (S, 3) of a side are, in the median, nearer to other patches than to each other."""
    if not len(others):
        return False
    spacing = np.median(np.linalg.norm(np.diff(side, axis=0), axis=1))
    return bool(np.median(cKDTree(others).query(side)[0]) < spacing)


@dataclass(frozen=True)
class BorderLine:
    """Border of predicted surfaces: points (n, R, 3) mm, unit tangents along it, unit outward tangents across it.

    Attributes:
        points: (n, R, 3) mm.
        along: (n, R, 3) unit tangents of the border.
        outward: (n, R, 3) unit tangents of the surface, out of it.
        length: (n, R) mm of border that a sample stands for.
        border: Samples of the surface on its border.
    """

    points: Tensor
    along: Tensor
    outward: Tensor
    length: Tensor
    border: Border

    @classmethod
    def of(cls, border: Border, points: Tensor, slope_u: Tensor, slope_v: Tensor) -> "BorderLine":
        """Make it from points and tangents (n, P, 3) of surfaces sampled on a grid."""
        tangent_u, tangent_v = slope_u[:, border.index], slope_v[:, border.index]
        leaves_by_u = border.along_u[:, None]
        along = torch.where(leaves_by_u, tangent_v, tangent_u)
        across = torch.where(leaves_by_u, tangent_u, tangent_v) * border.sign[:, None]
        length = along.norm(dim=-1) * border.step
        along = normalize(along, dim=-1)
        outward = normalize(across - (across * along).sum(-1, keepdim=True) * along, dim=-1)
        return cls(points[:, border.index], along, outward, length, border)


@dataclass(frozen=True)
class BorderNeighbours:
    """Captured points near the border.

    Attributes:
        sample: (n, M) nearest sample of the border.
        near: (n, M); 1 for points that are near enough to count.
        density: (n, R) captured points a mm^2 inside the border.
    """

    sample: Tensor
    near: Tensor
    density: Tensor

    def part(self, chosen: Tensor) -> "BorderNeighbours":
        """Return the neighbours in the chosen frames."""
        return BorderNeighbours(self.sample[chosen], self.near[chosen], self.density[chosen])


def border_neighbours(line: BorderLine, clouds: Clouds) -> BorderNeighbours:
    """Find the captured points near the border of predicted surfaces."""
    spacing = line.length.mean(dim=1, keepdim=True)
    sample = torch.cdist(clouds.points, line.points).argmin(dim=-1)
    difference = clouds.points - gathered(line.points, sample)
    normal = torch.linalg.cross(line.along, line.outward)
    outside, height, aside = (
        (difference * gathered(part, sample)).sum(-1) for part in (line.outward, normal, line.along)
    )
    near = (
        (clouds.weight > 0.0)
        & (outside > -_STRIP * spacing)
        & (outside < _BEYOND * spacing)
        & (height.abs() < _HEIGHT * spacing)
        & (aside.abs() < 1.2 * spacing)
    )
    inside = (near & (outside < -_INNER_MM)).float()
    count = torch.zeros_like(line.length).scatter_add_(1, sample, inside)
    area = line.length * (_STRIP * spacing - _INNER_MM)
    return BorderNeighbours(sample, near.float(), line.border.running_sum(count) / line.border.running_sum(area))


def border_misfit(line: BorderLine, clouds: Clouds, neighbours: BorderNeighbours) -> Tensor:
    """Return the negative log-likelihood (n,) of the captured points near the border, but for a constant."""
    outward = line.outward.detach()
    difference = clouds.points - gathered(line.points, neighbours.sample)
    outside = (difference * gathered(outward, neighbours.sample)).sum(-1)
    points = -(neighbours.near * torch.special.log_ndtr(-outside / BLUR_MM)).sum(dim=1)
    # Zero in value: only its gradient, the density that an outward shift would have to fill, counts.
    shift = ((line.points - line.points.detach()) * outward).sum(-1)
    return points + (neighbours.density * line.length.detach() * shift).sum(dim=1)
