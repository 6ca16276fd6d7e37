"""Rotations of many elements at once, with what first and second derivatives need."""

from math import factorial
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.geometry.rigid import hat

TANGENT = np.array([0.0, 0.0, 1.0])
"""Along an element, in its directors."""

_TERMS = 16
_EYE = np.eye(3)
_ONCE_TWICE = np.array([1.0, 2.0])[:, None, None]

_TANGENT_HAT = hat(TANGENT)
_TWICE_BY_PHI = np.array([hat(np.cross(axis, TANGENT)) + hat(axis) @ _TANGENT_HAT for axis in _EYE]).reshape(3, 9)
"""Less the derivative of phi x (phi x d3) over phi, for a unit of each component of phi."""


def _series_matrix() -> Array:
    """Coefficients (9, terms) over the powers of tau of `series`."""
    found = np.zeros((3, 3, _TERMS))
    for first in range(3):
        for i in range(_TERMS):
            value = (-1.0) ** i / factorial(2 * i + first + 1)
            found[first, 0, i] = value
            if i > 0:
                found[first, 1, i - 1] = value * i
            if i > 1:
                found[first, 2, i - 2] = value * i * (i - 1)
    return found.reshape(9, _TERMS)


_SERIES = _series_matrix()


def series(tau: Array) -> Array:
    """sin(t)/t, (1 - cos t)/t² and (t - sin t)/t³ with two derivatives by tau = t² (…) each, (3, 3, …)."""
    powers = np.empty((_TERMS, tau.size))
    powers[0], powers[1:] = 1.0, tau.ravel()
    return (_SERIES @ np.multiply.accumulate(powers)).reshape(3, 3, *tau.shape)


class Turns(NamedTuple):
    """Rotations by phi.

    Attributes:
        phi: (…, 3) rad.
        series: (3, 3, …), `series` of |phi|².
        once: (…, 3, 3), `hat` of phi.
        twice: (…, 3, 3), its square.
        turn: (…, 3, 3), exp(phi).
        mean: (…, 3, 3), V(phi): the mean of exp(s phi) for s = 0 … 1, the left Jacobian of SO(3).
    """

    phi: Array
    series: Array
    once: Array
    twice: Array
    turn: Array
    mean: Array


def turns_by(phi: Array) -> Turns:
    """Rotations by phi (…, 3)."""
    of, once = series(np.vecdot(phi, phi)), hat(phi)
    twice = once @ once
    turn, mean = _EYE + of[:2, 0, ..., None, None] * once + of[1:, 0, ..., None, None] * twice
    return Turns(phi, of, once, twice, turn, mean)


def one_after_another(first: Array, turns: Array) -> Array:
    """`first` (3, 3) followed by ever more of turns (n, E, 3, 3): (n, E + 1, 3, 3)."""
    found = np.empty((len(turns), turns.shape[1] + 1, 3, 3))
    found[:, 0], found[:, 1:] = first, turns
    reach = 1
    while reach < found.shape[1]:  # each is the product of up to `reach` turns that end with it
        found[:, reach:] = found[:, :-reach] @ found[:, reach:]
        reach *= 2
    return found


def mean_tangent_derivative(turns: Turns) -> Array:
    """Derivative of V(phi) d3 over phi, (…, 3, 3)."""
    (a, b), (da, db) = turns.series[1:, 0, ..., None, None], 2.0 * turns.series[1:, 1, ..., None]
    changed: Array = (da * turns.once[..., 2] + db * turns.twice[..., 2])[..., None] * turns.phi[..., None, :]
    return changed - a * _TANGENT_HAT - b * (turns.phi @ _TWICE_BY_PHI).reshape(changed.shape)


def turned_hessian(of: Array, u: Array, w: Array, phi: Array) -> Array:
    """Second derivatives (n, E, 3, 3) over phi of the sum over k of u . X_k(phi) w_k, where X_0 is exp and X_1 V.

    With q and r, of numbers k and k + 1 of `series`, u . X w is u . w (1 - r tau) + q phi . (w x u) + r (u . phi)
    (w . phi).

    Args:
        of: (K + 1, 3, n, E), what is needed of `series`.
        u: (n, E, 3).
        w: (K, n, E, 3).
        phi: (n, E, 3).
    """
    q, r = of[:-1], of[1:]
    c = crossed(w, u)
    up, wp, cp, uw, tau = (np.vecdot(*pair) for pair in ((u, phi), (w, phi), (c, phi), (u, w), (phi, phi)))
    by_tau = q[:, 1:] * cp[:, None] + r[:, 1:] * (up * wp - tau * uw)[:, None] - _ONCE_TWICE * r[:, :2] * uw[:, None]
    once, twice = by_tau.sum(0)[..., None]
    mixed = (q[:, 1, ..., None] * c + (r[:, 1] * up)[..., None] * w).sum(0)
    mixed += (r[:, 1] * wp).sum(0)[..., None] * u + twice * phi
    half = phi[..., None] * (2.0 * mixed)[..., None, :] + u[..., None] * (r[:, 0, ..., None] * w).sum(0)[..., None, :]
    return half + half.swapaxes(-1, -2) + (2.0 * once)[..., None] * _EYE


def crossed(u: Array, v: Array) -> Array:
    """Cross products u x v (…, 3): of many short vectors as products of matrices, quicker than `np.cross`."""
    found: Array = (u[..., None, :] @ hat(v))[..., 0, :]
    return found
