"""Quality of a scan: how much of the robot it shows, how densely, and how much of it was false."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.simulated_body import rest_points
from softform_core.surface.mesh import doubled_areas

_RADIUS = 0.05
"""Radius of the discs by which area is counted, over the side of a square as large as the robot's surface."""
_EXAMINED_POINTS = 4000
_CM2_PER_M2 = 1e4


@dataclass(frozen=True)
class ScanQuality:
    """Figures of one scan.

    Attributes:
        coverage: Area that the points show over that of the robot's surface at rest, at most 1.
        density: Points on a square metre of what they show.
        outlier_share: Share of the points on the robot that were dropped as outliers.
    """

    coverage: float
    density: float
    outlier_share: float

    def values(self) -> dict[str, str]:
        """Return the values for diagnostics."""
        return {
            "coverage": f"{self.coverage:.2f}",
            "points_per_cm2": f"{self.density / _CM2_PER_M2:.1f}",
            "outlier_share": f"{self.outlier_share:.3f}",
        }


_areas: dict[str, tuple[float, float]] = {}


def rest_area(robot: Robot) -> tuple[float, float]:
    """Return the area of a robot's surface at rest, m^2; kept, as a robot's first one takes a second.

    For a body without a simulator, it is estimated from its extents.

    Returns:
        The sum over its triangles, and the area as it is counted on a complete scan, which is a little more where the
        surface has a rim.
    """
    key = robot.fingerprint()
    if key not in _areas:
        _areas[key] = _measured_area(robot) if robot.body.is_simulated else _described_area(robot)
    return _areas[key]


def scan_quality(points: Array, robot: Robot, outlier_share: float) -> ScanQuality:
    """Judge a cleaned scan, (N, 3) m in the robot's frame, of whose points `outlier_share` were dropped.

    Area is counted where the points are, so coverage does not depend on where the robot has bent to.
    """
    true, seen = rest_area(robot)
    share = _seen_area(points, true) / seen
    return ScanQuality(min(share, 1.0), len(points) / (share * true), outlier_share)


def _seen_area(points: Array, whole: float) -> float:
    """Return the area m^2 on which points (N, 3) m of a surface of area `whole` lie, however unevenly.

    Each point stands for a disc's area over the number of points in the disc around it. For random points the sum
    is the area itself if there are many in each disc, and less if there are so few that they leave gaps.
    """
    examined = Shape(points).sample(_EXAMINED_POINTS).points
    radius = _RADIUS * float(np.sqrt(whole))
    around = cKDTree(examined).query_ball_point(examined, radius, return_length=True)
    return float(np.pi * radius**2 * (1.0 / around).sum())


def _measured_area(robot: Robot) -> tuple[float, float]:
    body = robot.body.simulator()
    vertices = rest_points(body)
    own = np.any([robot.body.faces_of(one.patch, vertices, body.faces) for one in robot.surfaces], axis=0)
    mesh = Shape.from_mesh(vertices, body.faces[own])
    true = float(doubled_areas(vertices, body.faces[own]).sum()) / 2.0
    return true, _seen_area(mesh.sample(10 * _EXAMINED_POINTS).points, true)


def _described_area(robot: Robot) -> tuple[float, float]:
    width, length = robot.extent
    across = np.pi * (width + length) / 2.0  # of a tube along z
    area = float(across * robot.body.size if robot.body.goes_around else width * length)
    return area, area
