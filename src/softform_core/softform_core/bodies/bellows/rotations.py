"""Rotations of many elements at once, with what first and second derivatives need."""

from math import factorial

import numpy as np

from softform_core.arrays import Array
from softform_core.geometry.rigid import hat

TANGENT = np.array([0.0, 0.0, 1.0])
"""Along an element, in its directors."""

_TERMS = 16


def _series_matrix() -> Array:
    """Coefficients (terms, 3, 3) over the powers of tau of `series`."""
    found = np.zeros((_TERMS, 3, 3))
    for first in range(3):
        for i in range(_TERMS):
            value = (-1.0) ** i / factorial(2 * i + first + 1)
            found[i, first, 0] = value
            if i > 0:
                found[i - 1, first, 1] = value * i
            if i > 1:
                found[i - 2, first, 2] = value * i * (i - 1)
    return found


_SERIES = _series_matrix().reshape(_TERMS, 9)


def series(tau: Array) -> Array:
    """sin(t)/t, (1 - cos t)/t² and (t - sin t)/t³ with two derivatives by tau = t² (…) each, (3, 3, …)."""
    powers = np.vander(tau.ravel(), _TERMS, increasing=True)
    return np.moveaxis((powers @ _SERIES).reshape(*tau.shape, 3, 3), (-2, -1), (0, 1))


def rotations(phi: Array, of: Array) -> tuple[Array, Array]:
    """exp(phi) and its mean V(phi) over the element, (…, 3, 3) each; `of` is `series` of |phi|²."""
    once = hat(phi)
    twice, (s, a, b) = once @ once, of[:, 0, ..., None, None]
    return np.eye(3) + s * once + a * twice, np.eye(3) + a * once + b * twice


def mean_tangent_derivative(phi: Array, of: Array) -> Array:
    """Derivative of V(phi) d3 over phi, (…, 3, 3); `of` is `series` of |phi|²."""
    once = np.cross(phi, TANGENT)
    twice, (a, b), (da, db) = np.cross(phi, once), of[1:, 0, ..., None, None], 2.0 * of[1:, 1, ..., None]
    changed: Array = (da * once + db * twice)[..., None] * phi[..., None, :]
    return changed - a * hat(TANGENT) - b * (hat(once) + hat(phi) @ hat(TANGENT))


def turned_hessian(q: Array, r: Array, u: Array, w: Array, phi: Array) -> Array:
    """Second derivatives (…, 3, 3) over phi of u . w (1 - r tau) + q phi . (w x u) + r (u . phi)(w . phi).

    q and r (3, …) are functions of tau = |phi|², each given by its value and first two derivatives; u, w and phi are
    (…, 3).
    """
    c = np.cross(w, u)
    up, wp, cp, uw, tau = ((one * other).sum(-1) for one, other in ((u, phi), (w, phi), (c, phi), (u, w), (phi, phi)))
    first = uw * (-r[0] - r[1] * tau) + q[1] * cp + r[1] * up * wp
    second = uw * (-2.0 * r[1] - r[2] * tau) + q[2] * cp + r[2] * up * wp
    mixed = 2.0 * q[1][..., None] * c + 2.0 * r[1][..., None] * (u * wp[..., None] + w * up[..., None])
    half = phi[..., :, None] * (mixed + 2.0 * second[..., None] * phi)[..., None, :]
    half += r[0][..., None, None] * u[..., :, None] * w[..., None, :]
    return half + half.swapaxes(-1, -2) + 2.0 * first[..., None, None] * np.eye(3)
