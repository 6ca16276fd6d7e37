"""Errors of a surface to a target: distances of its points, and the figures that sum them up."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.errors import SoftformError
from softform_core.inverse.closest_points import closest_points_on
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M


@dataclass(frozen=True)
class ErrorSummary:
    """Figures of a set of distances, all in millimetres.

    Attributes:
        count: Number of points.
        mean_mm: Mean.
        rms_mm: Root of the mean square.
        median_mm: Median.
        p90_mm: 90th percentile.
        p99_mm: 99th percentile; unlike the maximum it does not hang on one stray point.
        max_mm: Maximum.
    """

    count: int
    mean_mm: float
    rms_mm: float
    median_mm: float
    p90_mm: float
    p99_mm: float
    max_mm: float


def distances_to_shape(points: ArrayLike, target: Shape) -> NDArray[np.float64]:
    """Return distances, MILLIMETRES, of (P, 3) m from a target in metres: exact to a mesh, by planes to a cloud.

    The inverse kinematics measures with the same search (`inverse.closest_points`), so its errors and these agree.

    Raises:
        SoftformError: If `points` is empty, not (P, 3) or not finite, or the target is unusable.
    """
    queries = np.asarray(points, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != 3 or len(queries) == 0:
        raise SoftformError(
            f"Distances need points of shape (P, 3) with P > 0, got {queries.shape}.", "Give points in metres."
        )
    if not np.isfinite(queries).all():
        raise SoftformError("The points to be measured have NaN or infinite coordinates.", "Remove these points first.")
    return closest_points_on(target).query(queries * MM_PER_M).distances


def summarise_errors(errors_mm: ArrayLike) -> ErrorSummary:
    """Return the mean, RMS, median, percentiles and maximum of distances, (P,) mm.

    Raises:
        SoftformError: If there are none, or one is not finite.
    """
    values = np.asarray(errors_mm, dtype=np.float64).ravel()
    if len(values) == 0 or not np.isfinite(values).all():
        raise SoftformError(
            "Errors can only be summed up if there are some and all are finite.", "Check what was measured."
        )
    median, p90, p99 = np.percentile(values, [50.0, 90.0, 99.0])
    return ErrorSummary(
        count=len(values),
        mean_mm=float(values.mean()),
        rms_mm=float(np.sqrt(np.mean(values**2))),
        median_mm=float(median),
        p90_mm=float(p90),
        p99_mm=float(p99),
        max_mm=float(values.max()),
    )
