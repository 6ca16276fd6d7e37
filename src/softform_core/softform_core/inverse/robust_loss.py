"""Tukey's biweight: a loss that follows the square for small distances and is constant for those that stand out.

It is minimised by iteratively reweighted least squares (Holland and Welsch 1977). Beyond the scale a distance has no
weight: the loss trims, too.
"""

import math

import numpy as np

from softform_core.arrays import Array

_TUNING = 4.685
"""Tuning of Tukey's loss to 95 % efficiency on normally distributed residuals."""

_NORMAL = 1.4826
"""Ratio of the standard deviation to the median absolute value of a normal distribution."""


def tukey_scale(distances: Array, least: float) -> float:
    """Return the distance beyond which a point has no weight, mm, from the median of all.

    Args:
        distances: (P,) mm, not negative.
        least: mm; without it a fit in which most points are exact would throw out the others.
    """
    return max(least, _TUNING * _NORMAL * float(np.median(distances))) if len(distances) else least


def tukey_loss(distances: Array, scale: float) -> Array:
    """Return the loss of each distance, mm^2: d^2 for small ones, scale^2 / 3 beyond the scale; infinite scale: d^2."""
    if math.isinf(scale):
        return np.asarray(distances**2)
    inside = np.maximum(1.0 - (distances / scale) ** 2, 0.0)
    return np.asarray(scale**2 / 3.0 * (1.0 - inside**3))


def tukey_weights(distances: Array, scale: float) -> Array:
    """Return the weight of each squared distance, loss'(d) / 2d, 1 … 0."""
    if math.isinf(scale):
        return np.ones_like(distances)
    return np.asarray(np.maximum(1.0 - (distances / scale) ** 2, 0.0) ** 2)
