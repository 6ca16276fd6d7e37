"""Errors of a captured shape to its target.

Every captured point is measured to the target's surface (exactly on a mesh, by tangent planes on a cloud), not the
other way round, as a scan has holes. Each error is then replaced by the median over the point and the eight that are
measured nearest to it on the target: a stray point takes its surroundings' error, noise counts less, and neither mean
nor maximum hangs on single points; an error that spans more than a few points stays. Points without a counterpart on
the target (`inverse.counterpart`) have nothing to be compared with and are left out. The mean is taken over an even
selection of the points, so that each part of the target that was seen counts by its area, not by how densely the
scanner looked at it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SurfaceModel
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import closest_points_on, posed_query
from softform_core.inverse.counterpart import Footprint, RestingSurface
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

MIN_POINTS = 50
"""Fewest usable points of a capture; with fewer it shows too little of the robot."""

NEIGHBOURHOOD = 9
EVEN_PART = 0.015
"""Side of the cubes, over the target's size, of which each contributes one point to the mean."""


@dataclass(frozen=True)
class MeasuredErrors:
    """Captured points and their errors.

    Attributes:
        points: (M, 3) m, the captured points that were compared.
        errors: (M,) m, each the median of its neighbourhood.
        even: (E,) indices of points that are spread evenly over what was seen.
    """

    points: Array
    errors: Array
    even: NDArray[np.int64]

    @property
    def mean(self) -> float:
        """Mean error over the even selection, m."""
        return float(self.errors[self.even].mean())

    @property
    def maximum(self) -> float:
        """Largest error, m."""
        return float(self.errors.max())


def resting_surface(pipeline: SurfaceModel, robot: Robot) -> RestingSurface:
    """Return the surface of a robot at rest, as a pipeline over `PatchSet.samples` predicts it."""
    points = pipeline.points(robot.rest_actuation) / MM_PER_M
    return RestingSurface(Shape(points, None, pipeline.patches.triangles(len(points))))


def measure_errors(captured: Array, target: Shape, pose: RigidTransform, rest: RestingSurface) -> MeasuredErrors:
    """Compare a captured cloud with a target.

    Args:
        captured: (N, 3) m in the robot's frame; NaN rows are points without a return.
        target: m, in the robot's frame before the pose.
        pose: (R, t) in m, applied to the target.
        rest: The robot's resting surface: what has a counterpart is told over it.

    Raises:
        SoftformError: If fewer than `MIN_POINTS` points can be compared.
    """
    points = captured[np.isfinite(captured).all(axis=1)]
    if len(points) < MIN_POINTS:
        raise SoftformError(
            f"The captured cloud has {len(points)} points; at least {MIN_POINTS} are needed.",
            "Check that the scanner sees the robot.",
        )
    search = closest_points_on(target)
    in_mm = pose.scaled(MM_PER_M)
    matches = posed_query(search, in_mm, points * MM_PER_M)
    compared = ~Footprint(rest, search).lacks(points * MM_PER_M, matches, in_mm)
    if compared.sum() < MIN_POINTS:
        raise SoftformError(
            f"Only {int(compared.sum())} of {len(points)} captured points lie over the target.",
            "Check the scanner's registration, and that the target lies over the robot.",
        )
    points, errors = points[compared], matches.distances[compared] / MM_PER_M
    # Neighbours on the target: in space a stray's neighbours would be other strays.
    places = in_mm.apply_inverse(matches.points[compared])
    size = float(np.linalg.norm(np.ptp(search.vertices, axis=0)))
    neighbours = cKDTree(places).query(places, k=NEIGHBOURHOOD)[1]
    _, even = np.unique(np.floor(places / (EVEN_PART * size)), axis=0, return_index=True)
    return MeasuredErrors(points, np.median(errors[neighbours], axis=1), even)
