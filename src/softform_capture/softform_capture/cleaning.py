"""Keeps of a scan what belongs to the robot: a crop to its surroundings, and the removal of stray points."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.robots import Robot

Array = NDArray[np.float64]

NEIGHBOURS = 12
"""Points whose mean distance tells how lonely a point is."""

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


def not_stray(points: Array, ratio: float, neighbours: int = NEIGHBOURS) -> NDArray[np.bool_]:
    """Which points are not stray: statistical outlier removal as in Rusu 2008, with robust statistics.

    A point is stray if its mean distance to its neighbours exceeds the median of all points' by more than `ratio` times
    their spread: 1.4826 times the median absolute deviation, but at least a quarter of the median, as an even grid has
    none.

    Args:
        points: (N, 3) m.
        ratio: Spreads; smaller removes more.
        neighbours: Points of a neighbourhood.

    Returns:
        (N,) true for the points to keep.
    """
    if len(points) <= neighbours:
        return np.ones(len(points), dtype=bool)
    loneliness = cKDTree(points).query(points, k=neighbours + 1)[0][:, 1:].mean(axis=1)
    median = float(np.median(loneliness))
    spread = max(1.4826 * float(np.median(np.abs(loneliness - median))), 0.25 * median)
    return loneliness <= median + ratio * spread
