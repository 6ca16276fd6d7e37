"""Obstacles that distances between surfaces do not show: one around the robot, one inside its body; millimetres."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.inverse.closest_points import MeshSearch
from softform_core.planning.obstacles import Obstacle

_MOST_VERTICES = 5000
_FEW = 10


def encloses(obstacle: Obstacle, points: Array) -> bool:
    """Return whether all surface points (P, 3) mm lie in the obstacle's inside."""
    middle = len(points) // 2
    few = points[:: max(1, len(points) // _FEW)]
    return bool(obstacle.contains(points[middle : middle + 1]).all() and obstacle.contains(few).all())


def lies_within_body(obstacle: Obstacle, surface: Array, resting: Array, faces: NDArray[np.int64]) -> bool:
    """Return whether part of the obstacle lies between the present surface and the resting one, (P, 3) mm of (F, 3).

    That is in the robot's body, whether it is a sheet that has risen or an arm that has bent. Where an arm has left its
    resting place it is not.
    """
    both = np.concatenate([surface, resting])
    vertices = obstacle.vertices
    vertices = vertices[((vertices >= both.min(axis=0)) & (vertices <= both.max(axis=0))).all(axis=1)]
    if len(vertices) == 0 or np.allclose(surface, resting, atol=1e-6):
        return False
    vertices = vertices[:: max(1, len(vertices) // _MOST_VERTICES)]
    return bool(((_side(vertices, surface, faces) < 0.0) & (_side(vertices, resting, faces) > 0.0)).any())


def _side(points: Array, surface: Array, faces: NDArray[np.int64]) -> Array:
    """Return 1 over a surface (where its normal points), -1 under it, 0 beside it."""
    matches = MeshSearch(surface, faces).query(points)
    above = np.einsum("px,px->p", points - matches.points, matches.normals)
    return np.where(matches.on_border, 0.0, np.sign(above))
