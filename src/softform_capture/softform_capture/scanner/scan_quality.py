"""How good a scan is: how much of the robot it shows, how densely, and how much of it was false."""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import Robot

_CELLS = 16
"""Cells along each side of the robot, by which coverage is counted."""
_CM2_PER_M2 = 1e4


@dataclass(frozen=True)
class ScanQuality:
    """Figures of one scan.

    Attributes:
        coverage: Share of the robot's area, seen from above, on which there are points.
        density: Points on a square metre of that area, median over what is covered.
        outlier_share: Share of the points on the robot that were dropped as outliers.
    """

    coverage: float
    density: float
    outlier_share: float

    def values(self) -> dict[str, str]:
        """For diagnostics."""
        return {
            "coverage": f"{self.coverage:.2f}",
            "points_per_cm2": f"{self.density / _CM2_PER_M2:.1f}",
            "outlier_share": f"{self.outlier_share:.3f}",
        }


def scan_quality(points: Array, robot: Robot, outlier_share: float) -> ScanQuality:
    """Judge a cleaned scan, (N, 3) m in the robot's frame, of whose points `outlier_share` were dropped."""
    half = robot.extent / 2.0
    span = [(-half[0], half[0]), (-half[1], half[1])]
    counts = np.histogram2d(points[:, 0], points[:, 1], bins=_CELLS, range=span)[0]
    covered = counts[counts > 0]
    cell = float(np.prod(robot.extent)) / _CELLS**2
    density = float(np.median(covered)) / cell if len(covered) else 0.0
    return ScanQuality(len(covered) / _CELLS**2, density, outlier_share)
