"""Quality of a captured cloud: is it good enough to learn from, and which regions of the robot does it miss?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.shapes.validate import check_target
from softform_core.surface.feet import Feet, feet_on
from softform_core.surface.patch_set import PatchSet

COVERAGE_CELLS = 16
"""Cells along u and along v on which coverage is counted."""

MIN_COVERAGE = 0.4
"""Least coverage of a frame; the paper learns with up to 40 % of the data missing."""

MAX_OUTLIERS = 0.05
"""Largest share of outliers in a frame."""

MAX_STRAY = 0.05
"""Largest share of points beside the robot; above it the frame is unregistered, or of another robot."""

MAX_THICKNESS_RATIO = 0.5
"""Largest third over second principal extent of a neighbourhood: near 0 on a surface, near 1 in a volume of noise."""

_OFTEN, _OFTEN_PART = 20, 0.005
"""Repetitions of one place, and its share of the points, from which it stands for "not measured"."""

_MARGIN = 0.1
_OVER_RIM = 1e-6
_OUTLIER_DISTANCE = 0.01
_NEIGHBOURS = 24
_EXAMINED_POINTS = 4000


@dataclass(frozen=True)
class FrameQuality:
    """Quality of a cloud.

    Attributes:
        coverage: Share of the cells of the surface's parameters that hold a point, 0 … 1.
        covered: (n g, g) those cells, patch by patch, first index along u, second along v; False is a missing region.
        outliers: Estimated share of points off the surface of their neighbours.
        fault: Reason why the frame must not be learned from; empty if it may.
    """

    coverage: float
    covered: NDArray[np.bool_]
    outliers: float
    fault: str


@dataclass(frozen=True)
class MarkerQuality:
    """Quality of a frame of markers.

    Attributes:
        coverage: Share of the markers that is seen, 0 … 1.
        fault: Reason why the frame must not be learned from; empty if it may.
    """

    coverage: float
    fault: str


def measured_points(points: Array) -> Array:
    """Return points (M, 3) of a scan without one place that it holds over and over.

    It is what has become of the scanner's zeros, for "not measured", in a scan that was moved.
    """
    _, which, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    often = count > max(_OFTEN, _OFTEN_PART * len(points))
    return np.asarray(points[~often[which.ravel()]])


def unfit_cloud(robot: Robot, fault: str) -> FrameQuality:
    """Return the quality of a scan that shows nothing."""
    return FrameQuality(0.0, np.zeros((len(robot.surfaces) * COVERAGE_CELLS, COVERAGE_CELLS), dtype=bool), 0.0, fault)


def assess_cloud(points: NDArray[np.floating], robot: Robot, expected: Array | None = None) -> FrameQuality:
    """Judge one captured cloud.

    Args:
        points: (M, 3) m in the robot's frame, all finite.
        robot: Robot that was captured.
        expected: (P, 3) m over `robot.patches.samples(P)`, the shape that the robot should have; its rest shape by
            default, over which a clamped sheet stays and from which a tube may bend away.
    """
    surface = rest_surface(robot).points if expected is None else expected
    feet = feet_on(surface, robot.patches, np.asarray(points, dtype=np.float64))
    size = float(np.ptp(surface, axis=0).max())
    covered = covered_cells(feet, size, robot.patches)
    coverage = float(covered.mean())
    try:
        values = check_target(points, robot, "scan")
    except SoftformError as error:
        return FrameQuality(coverage, covered, 0.0, error.message)
    outliers, thickness = _roughness(values, _OUTLIER_DISTANCE * size)
    stray = float((feet.beyond_rim > _MARGIN * size).mean())
    fault = ""
    # First, since noise lies beside the robot as well, and no registration would make it a surface.
    if thickness > MAX_THICKNESS_RATIO:
        fault = "its points lie on no surface: it is noise."
    elif stray > MAX_STRAY:
        fault = f"{stray:.0%} of its points lie beside robot '{robot.name}': is the capture registered, and of it?"
    elif coverage < MIN_COVERAGE:
        fault = f"it covers {coverage:.0%} of the robot, less than {MIN_COVERAGE:.0%}."
    elif outliers > MAX_OUTLIERS:
        fault = f"{outliers:.0%} of its points are outliers, more than {MAX_OUTLIERS:.0%}."
    return FrameQuality(coverage, covered, outliers, fault)


def covered_cells(feet: Feet, size: float, patches: PatchSet) -> NDArray[np.bool_]:
    """Return which cells of a surface's parameters hold the foot of a captured point, (n g, g) of n patches."""
    cells, inside = cells_of(feet, size, patches)
    covered = np.zeros((len(patches) * COVERAGE_CELLS, COVERAGE_CELLS), dtype=bool)
    covered[cells[inside, 0], cells[inside, 1]] = True
    return covered


def cells_of(feet: Feet, size: float, patches: PatchSet) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the cells of N feet in the grids of a surface's parameters, (N, 2), and whether points lie over them."""
    place, local = patches.split(feet.uv)
    cells = np.minimum((local * COVERAGE_CELLS).astype(np.int64), COVERAGE_CELLS - 1)
    cells[:, 0] += COVERAGE_CELLS * place
    return cells, feet.beyond_rim <= _OVER_RIM * size


def _roughness(points: Array, distance: float) -> tuple[float, float]:
    """Return the share of points beyond `distance` (m) from their neighbours' plane, and the median thickness ratio."""
    step = max(1, len(points) // _EXAMINED_POINTS)
    examined = points[::step]
    _, neighbours = cKDTree(points).query(examined, k=min(_NEIGHBOURS + 1, len(points)))
    around = points[neighbours[:, 1:]]
    # The median is where the surface is, even if the examined point or a few neighbours are outliers.
    centred = around - np.median(around, axis=1, keepdims=True)
    variances, axes = np.linalg.eigh(np.einsum("nki,nkj->nij", centred, centred) / centred.shape[1])
    normals = axes[:, :, 0]
    offset = np.abs(np.einsum("ni,ni->n", examined - np.median(around, axis=1), normals))
    extents = np.sqrt(np.maximum(variances, 0.0))
    thickness = extents[:, 0] / np.maximum(extents[:, 1], np.finfo(float).tiny)
    return float((offset > distance).mean()), float(np.median(thickness))
