"""How a tendon or cable takes up its tension: it pulls and never pushes, and its stiffness rises continuously.

Its energy over its stiffness k is phi(d) of the stretch d: zero for d <= 0, d^2 / 2 less a constant slope for d >= w,
and between these a cubic that makes the stiffness continuous. Newton's method would swing to and fro at a kink.
"""

import numpy as np

from softform_core.arrays import Array

TAKE_UP = 2e-5
"""Stretch w over which a slack tendon takes up its stiffness, m."""


def taut_energy(stretch: Array) -> Array:
    """Values phi (…) m^2 of stretches (…) m."""
    taut = np.maximum(stretch, 0.0)
    past = taut - 0.5 * TAKE_UP
    return np.where(taut < TAKE_UP, taut**3 / (6.0 * TAKE_UP), 0.5 * past * past + TAKE_UP**2 / 24.0)


def taut_slopes(stretch: Array) -> tuple[Array, Array]:
    """Derivatives phi' (…) m, and phi'' (…), of stretches (…) m."""
    taut = np.maximum(stretch, 0.0)
    slope = np.where(taut < TAKE_UP, taut * taut / (2.0 * TAKE_UP), taut - 0.5 * TAKE_UP)
    return slope, np.minimum(taut / TAKE_UP, 1.0)
