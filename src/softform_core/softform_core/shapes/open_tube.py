"""Whether a target goes all around, as the surface of a robot does that is a tube; half a tube does not fix its shape.

It is judged section by section across the target's own axis, so that bends, holes and the pose do not matter.
"""

import numpy as np
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import NEIGHBOURS, Shape

MOST_OPEN = np.radians(120.0)
"""A section that leaves more of the circle open is open. Half a tube leaves 180 degrees."""

OPEN_PART = 0.7
"""A target is open if more of its sections are. Of the shipped robots' shapes at 300 points 0.10 are at most, of those
that lack 40 % in patches 0.68; of halves, bent ones too, 0.78 at least."""

_SAMPLES = 1000
_SECTIONS = 50
_FEWEST_POINTS = 200  # of a target that can be judged
_FEWEST_IN_SECTION = 12
_THICKNESS = 0.25  # of a section to either side, of the tube's diameter
_REACH = 2.5  # of a section, of the diameter: that of half a tube is taken for half as large


def check_goes_around(target: Shape, robot: Robot) -> None:
    """Reject a target that is open along its side if the surface of `robot` is a tube.

    Raises:
        SoftformError: If it is.
    """
    if not robot.patches.has_tube:  # of its measured surfaces: a body may go around by a patch that nobody measures
        return
    gaps = open_angles(target)
    is_open = gaps > MOST_OPEN
    if is_open.sum() > OPEN_PART * len(gaps):
        raise SoftformError(
            f"The target is open: it leaves {np.degrees(np.median(gaps)):.0f} degrees of the circle around its axis "
            f"uncovered; the surface of '{robot.name}' is a tube, closed all around.",
            "Give the whole tube, or say that the target is partial (reach_shape); accept_unreachable of a goal takes "
            "it as it is.",
        )


def open_angles(target: Shape) -> Array:
    """Largest angle, rad, that each of some 50 sections leaves open, (n,); those of too few points are left out."""
    points = target.sample(_SAMPLES).points
    if len(points) < _FEWEST_POINTS:
        return np.zeros(0)
    distances, neighbours = cKDTree(points).query(points, NEIGHBOURS)
    around = points[neighbours] - points[neighbours].mean(axis=1, keepdims=True)
    normals = np.linalg.eigh(around.swapaxes(1, 2) @ around)[1][:, :, 0]
    # The area is that of the neighbourhoods over how many of them each point is in.
    area = np.pi * float((distances[:, -1] ** 2).sum()) / NEIGHBOURS
    centred = points - points.mean(axis=0)
    length = float(np.ptp(centred @ np.linalg.eigh(centred.T @ centred)[1][:, 2]))
    diameter = area / (np.pi * length)
    gaps = []
    for point in points[:: max(1, len(points) // _SECTIONS)]:
        away = points - point
        distance = np.linalg.norm(away, axis=1)
        # Normals of a tube, and of each half of it, lie across its axis.
        near = normals[distance <= diameter]
        axes = np.linalg.eigh(near.T @ near)[1]
        within = (distance <= _REACH * diameter) & (np.abs(away @ axes[:, 0]) <= _THICKNESS * diameter)
        if within.sum() >= _FEWEST_IN_SECTION:
            gaps.append(_largest_gap(away[within] @ axes[:, 1:]))
    return np.array(gaps)


def _largest_gap(section: Array) -> float:
    """Largest angle between two neighbours of (n, 2) as seen from the centre of the circle through them, rad."""
    equations = np.column_stack([2.0 * section, np.ones(len(section))])
    centre = np.linalg.lstsq(equations, (section**2).sum(axis=1))[0][:2]
    angles = np.sort(np.arctan2(*(section - centre).T))
    return float(np.diff(angles, append=angles[0] + 2.0 * np.pi).max())
