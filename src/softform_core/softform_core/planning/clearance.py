"""Clearance of a predicted surface beyond its margin; millimetres.

spare = min over all points x of the triangulated surface of (distance to the obstacle - allowance(x)) - clearance
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.planning.obstacles import Obstacle
from softform_core.planning.surface_margins import SurfaceStates

SPACING_MM = 8.0
MOST_NODES = 60_000


class DistanceField:
    """Distances on a grid over a box, (2, 3) mm: a distance changes by no more than the way from the nearest node.

    The bounds hold outside the box too, and are wider there.
    """

    def __init__(self, region: Array, obstacle: Obstacle) -> None:
        self._low = region[0]
        self._spacing = max(SPACING_MM, float(np.cbrt(np.prod(np.ptp(region, axis=0) + SPACING_MM) / MOST_NODES)))
        lines = [np.arange(low, high + self._spacing, self._spacing) for low, high in region.T]
        nodes = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        self._distances = obstacle.distances(nodes.reshape(-1, 3)).reshape(nodes.shape[:3])

    def bounds(self, points: Array) -> tuple[Array, Array]:
        """Return the lowest and highest possible distance of each of (..., 3) mm to the obstacle, (...) mm each."""
        scaled = np.rint((points - self._low) / self._spacing).astype(np.int64)
        node = np.clip(scaled, 0, np.array(self._distances.shape) - 1)
        offset = points - (self._low + node * self._spacing)
        away = np.sqrt(np.einsum("...x,...x->...", offset, offset))
        at_node = self._distances[node[..., 0], node[..., 1], node[..., 2]]
        return at_node - away, at_node + away


FAR_MM = 40.0
"""Clearance above which a surface is not measured more precisely, mm."""


class ClearanceGauge:
    """Measures surfaces of faces (F, 3), most of them in a box (2, 3) mm, against an obstacle, with a clearance."""

    def __init__(self, obstacle: Obstacle, region: Array, faces: NDArray[np.int64], clearance: float) -> None:
        self._obstacle, self._faces, self.clearance = obstacle, faces, clearance
        self._field = DistanceField(region, obstacle)
        edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
        self._edges = np.unique(np.sort(edges, axis=1), axis=0)

    def spare(self, states: SurfaceStates) -> Array:
        """Return the room of each surface, (n,) mm; negative where the margin is not kept.

        Every value is a lower bound of the spare that is defined above: exact but for the allowance, which near the
        closest place is taken at its largest, and but for surfaces further than `FAR_MM`. For a surface in the margin
        only the sign is right.
        """
        return self._least(states, self.clearance) - self.clearance

    def distances(self, states: SurfaceStates) -> Array:
        """Return the distance of each triangulated surface to the obstacle, (n,) mm, without any margin."""
        return self._least(SurfaceStates(states.points, np.zeros_like(states.allowance)), 0.0)

    def _least(self, states: SurfaceStates, enough: float) -> Array:
        """Return distance less allowance at each surface's closest place, (n,) mm; coarse if below `enough`."""
        lowest, highest = self._field.bounds(states.points)
        lowest -= states.allowance
        highest -= states.allowance
        reaches = self._reaches(states)
        least = lowest.min(axis=1) - reaches
        for index in np.flatnonzero(least < FAR_MM):
            near = lowest[index] < highest[index].min() + reaches[index]
            points, allowance = states.points[index], states.allowance[index]
            least[index] = self._measured(points, allowance, near, float(reaches[index]), enough)
        return least

    def _measured(self, points: Array, allowance: Array, near: NDArray[np.bool_], reach: float, enough: float) -> float:
        """Measure `_least` of one surface (P, 3) mm whose closest place is around the points marked `near`."""
        at_points = np.full(len(points), np.inf)
        at_points[near] = self._obstacle.distances(points[near]) - allowance[near]
        least = float(at_points.min())
        if least < enough:
            return least  # whatever the triangles between are
        triangles = self._faces[(at_points[self._faces] < least + reach).any(axis=1)]
        return self._obstacle.distance_to_triangles(points[triangles]) - float(allowance[triangles].max())

    def _reaches(self, states: SurfaceStates) -> Array:
        """Return by how much the spare inside a triangle may be less than at its nearest corner, (n,) mm.

        No point of a triangle is further from the nearest corner than the longest edge over sqrt(3).
        """
        one, other = self._edges.T
        edges = states.points[:, one] - states.points[:, other]
        longest = np.sqrt(np.einsum("nex,nex->ne", edges, edges).max(axis=1))
        steepest = np.abs(states.allowance[:, one] - states.allowance[:, other]).max(axis=1)
        return np.asarray(longest / np.sqrt(3.0) + steepest)
