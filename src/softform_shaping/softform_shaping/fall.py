"""Down from a shape to a balance of less energy, however far away that is: what is slender buckles and snaps.

Newton's method with the Hessian shifted until it is positive definite (Levenberg and Marquardt); the shift is kept from
step to step, larger where the energy would rise. Thus no unstable balance holds it but the one that it begins in, and
that is left along the mode of least stiffness.
"""

from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.simulation.factor import Factor
from softform_core.simulation.hessian import Hessian
from softform_core.simulation.newton import RELATIVE_ROUNDING

__all__ = ["fallen", "stable_factor"]

_MOST = 300
_LEAST_SHIFT, _RATIO = 1e-12, 8.0
"""Of the mean diagonal: modes of a rope are ten orders softer than others; and ratio of the next shift to it."""
_LARGEST_SHIFT = 1e3
_MODE_STEPS = 30
_KICK = 1e-3
"""Largest move out of an unstable balance, of the longest step that the body may take."""


def fallen(body: Any, unknowns: Array, values: Array) -> tuple[Array, int, int] | None:
    """Unknowns (m,) of a stable balance under values (k,), down from `unknowns`, steps, and factors; else None."""
    x, values, factors = np.array(unknowns)[None], values[None], 0
    energy, tolerance, shift = body.energy(x, values)[0], body.tolerance(values)[0], 0.0
    for count in range(_MOST):
        gradient, hessian = body.derivatives(x, values)
        mean = float(hessian.mean_diagonal()[0])
        if not np.isfinite(energy) or not np.isfinite(mean):
            return None
        if np.linalg.norm(gradient) <= tolerance:
            factor, shift, tried = stable_factor(hessian)
            factors += tried
            if not shift:
                return x[0], count, factors
            if shift > _LARGEST_SHIFT * mean:
                return None
            step = _KICK * body.largest_step * _softest(factor, x.shape[1])
            reached = body.energy(x + step, values)[0]
        else:
            while True:
                factor, shift, tried = stable_factor(hessian, shift)
                factors += tried
                if shift > _LARGEST_SHIFT * mean:
                    return None
                step = -factor.solve(gradient[..., None])[..., 0]
                if np.abs(step).max() <= body.largest_step:
                    reached = body.energy(x + step, values)[0]
                    if reached <= energy + max(RELATIVE_ROUNDING * abs(energy), body.rounding):
                        break
                shift = max(_LEAST_SHIFT * mean, _RATIO * shift)
        x, energy = x + step, reached
        shift = shift / _RATIO if shift > _LEAST_SHIFT * mean else 0.0
    return None


def stable_factor(hessian: Hessian, shift: float = 0.0) -> tuple[Factor, float, int]:
    """The factor of a Hessian, shifted from `shift` on until it is positive definite; the shift, and the factors."""
    mean, count = float(hessian.mean_diagonal()[0]), 0
    while True:
        factor, count = (hessian.shifted(np.array([shift])) if shift else hessian).factorised(), count + 1
        if (factor.pivots > 0.0).all() or not shift <= _LARGEST_SHIFT * mean:
            return factor, shift, count
        shift = max(_LEAST_SHIFT * mean, _RATIO * shift)


def _softest(factor: Factor, size: int) -> Array:
    """The mode (1, m) of least stiffness, by the power method for the inverse; largest entry 1."""
    way = np.random.default_rng(0).standard_normal((1, size, 1))
    for _ in range(_MODE_STEPS):
        way = factor.solve(way)
        way /= np.abs(way).max()
    return np.asarray(way[..., 0])
