"""Calibration of `forward.surface_uncertainty` by the errors in frames that members were not trained on.

The members' spread is scaled until it explains these errors. What all members have in common (kernels too wide for a
kink, a reality that depends on more than the network sees) is in the floor; the scanner's noise is in neither.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_DEVIATIONS = 1.4826
"""Ratio of the standard deviation to the median absolute deviation of a Gaussian."""
_OUTLIER_DEVIATIONS = 5.0
_LEAST_FACTOR = 1e-3
_LEAST_FLOOR_MM = 1e-3


def measurement_noise(points: Array, distance: Array) -> float:
    """Return standard deviation, mm, of what is not shared by neighbours among distances (m,) mm at points (m, 3) mm.

    The prediction's error is smooth, a scanner's noise is not: half the squared difference between neighbours is
    noise. Its median bears outliers.
    """
    nearest = cKDTree(points).query(points, k=2)[1][:, 1]
    return float(_DEVIATIONS * np.median(np.abs(distance - distance[nearest])) / np.sqrt(2.0))


def calibrate(distance: Array, spread: Array, noise: Array) -> tuple[float, float]:
    """Return factor and floor (mm) that make the distances likeliest, outliers left out.

    Args:
        distance: (m,) mm, signed, of captured points to surfaces predicted by members not trained on their frames.
        spread: (m,) mm, of the members there.
        noise: (m,) mm, standard deviation of the measurement.

    Raises:
        SoftformError: If there is no finite distance.
    """
    if len(distance) == 0 or not np.isfinite(distance).all():
        raise SoftformError("There are no finite distances to calibrate by.", "Check the frames.")
    scale = _DEVIATIONS * float(np.median(np.abs(distance)))
    kept = np.abs(distance) <= max(_OUTLIER_DEVIATIONS * scale, 1e-9)
    squared, spread_squared, noise_squared = (np.square(part[kept]) for part in (distance, spread, noise))

    def unlikelihood(logarithms: Array) -> float:
        factor, floor = np.exp(2.0 * logarithms)
        variance = factor * spread_squared + floor + noise_squared
        return float(np.mean(np.log(variance) + squared / variance))

    start = np.log([1.0, max(scale, _LEAST_FLOOR_MM)])
    bounds = [(np.log(_LEAST_FACTOR), np.log(100.0)), (np.log(_LEAST_FLOOR_MM), np.log(100.0))]
    found = minimize(unlikelihood, start, method="L-BFGS-B", bounds=bounds)
    factor, floor = np.exp(found.x)
    return float(factor), float(floor)
