"""Keeps of a scan what belongs to the robot: a crop to its surroundings, and the removal of stray points."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.robots import Robot

Array = NDArray[np.float64]

NEIGHBOURS = 8
"""Points that a point is compared with."""

LONELY = 4.0
"""A point is stray if it is lonelier than the median by more than this many spreads."""

OFF_PLANE = 0.4
"""A point is stray if it is further from its neighbours' plane than this share of its mean distance from them.

On the virtual scanner this keeps 99 % of the true points and 2 % of the false ones that are more than 2 mm off."""

DEPTH_BELOW = 0.25
"""Depth of the robot's box below its resting surface, of its longer side: a soft sheet sags."""

HEIGHT_ABOVE = 0.5
"""Height of the robot's box above its resting surface, of its longer side."""


def robot_box(robot: Robot, margin: float) -> tuple[Array, Array]:
    """Box around a robot in its frame that holds every shape it can take.

    Args:
        robot: Whose box.
        margin: Added on every side, m.

    Returns:
        Lower and upper corner, each (3,) m.
    """
    half, longer = robot.extent / 2.0, float(robot.extent.max())
    low = np.array([-half[0], -half[1], -DEPTH_BELOW * longer])
    high = np.array([half[0], half[1], HEIGHT_ABOVE * longer])
    return low - margin, high + margin


def inside_box(points: Array, box: tuple[Array, Array]) -> NDArray[np.bool_]:
    """Which of the points (N, 3) lie in the box, (N,)."""
    low, high = box
    return np.all((points >= low) & (points <= high), axis=1)


def not_stray(points: Array) -> NDArray[np.bool_]:
    """Which points belong to a surface: neither lonely nor off the plane of their neighbours.

    Loneliness is the mean distance to the neighbours, as in the statistical outlier removal of Rusu 2008, but against
    robust statistics: the median of all points and 1.4826 times the median absolute deviation (at least a quarter of
    the median, as an even grid has none). That alone misses what lies a few spacings off the surface; so the distance
    from the plane of the neighbours must be small against their distance too.

    Args:
        points: (N, 3) m.

    Returns:
        (N,) true for the points to keep.
    """
    if len(points) <= NEIGHBOURS:
        return np.ones(len(points), dtype=bool)
    distances, indices = cKDTree(points).query(points, k=NEIGHBOURS + 1)
    loneliness = distances[:, 1:].mean(axis=1)
    median = float(np.median(loneliness))
    spread = max(1.4826 * float(np.median(np.abs(loneliness - median))), 0.25 * median)
    near = points[indices[:, 1:]]
    centre = near.mean(axis=1)
    near -= centre[:, None]
    normals = np.linalg.eigh(np.einsum("nki,nkj->nij", near, near))[1][:, :, 0]
    off_plane = np.abs(np.einsum("ni,ni->n", points - centre, normals))
    return (loneliness <= median + LONELY * spread) & (off_plane <= OFF_PLANE * loneliness)
