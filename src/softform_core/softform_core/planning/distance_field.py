"""Bounds of the distance to an obstacle that cost a look into a table; millimetres."""

from typing import Self

import numpy as np

from softform_core.arrays import Array
from softform_core.planning.obstacles import Obstacle

SPACING_MM = 8.0
MOST_NODES = 60_000


class DistanceField:
    """Distances at the nodes of a grid: a distance changes by no more than the way from the nearest node.

    Args:
        low: (3,) mm, a corner of the grid.
        spacing: Spacing of the grid, mm.
        distances: (nx, ny, nz) mm at the nodes.
    """

    def __init__(self, low: Array, spacing: float, distances: Array) -> None:
        self._low, self._spacing, self._distances = low, spacing, distances

    @classmethod
    def around(cls, region: Array, obstacle: Obstacle) -> Self:
        """Field over a box; the bounds hold outside it too, and are wider there.

        Args:
            region: (2, 3) mm, lowest and highest corner.
            obstacle: Obstacle to which distances are tabulated.
        """
        spacing = max(SPACING_MM, float(np.cbrt(np.prod(np.ptp(region, axis=0) + SPACING_MM) / MOST_NODES)))
        lines = [np.arange(low, high + spacing, spacing) for low, high in region.T]
        nodes = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        distances = obstacle.distances(nodes.reshape(-1, 3)).reshape(nodes.shape[:3])
        return cls(region[0], spacing, distances)

    def bounds(self, points: Array) -> tuple[Array, Array]:
        """Lowest and highest possible distance of each of (..., 3) mm to the obstacle, (...) mm each."""
        scaled = np.rint((points - self._low) / self._spacing).astype(np.int64)
        node = np.clip(scaled, 0, np.array(self._distances.shape) - 1)
        offset = points - (self._low + node * self._spacing)
        away = np.sqrt(np.einsum("...x,...x->...", offset, offset))
        at_node = self._distances[node[..., 0], node[..., 1], node[..., 2]]
        return at_node - away, at_node + away
