"""Stick and slip of a tendon in a hole.

A tendon that slides through a hole in which it is turned by theta keeps its tensions on both sides in the ratio of the
capstan, T_in / T_out = e^(mu theta); while it sticks, they may be any within e^(-mu theta) and e^(mu theta), so that
their difference is bounded by F = (1 - e^(-mu theta)) max(T_in, T_out) and the drag F_0 of the hole. In a step the
bound is held, and is brought up to date until it no longer changes: then the step has a potential (Huber's) in the way
x = s - a of the tendon from its anchor a. It yields elastically by F / k before it slides, and draws its anchor along.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_BOUND_SHARE, _BOUND_FORCE = 0.02, 0.01
MOST_UPDATES = 40
"""Updates of the bounds in a step, until they no longer change."""
FINEST = 6
"""Most times that a step is halved where Newton's method fails."""


def capstan_bounds(inner: Array, outer: Array, wraps: Array, coefficient: float, drag: float) -> Array:
    """Return the largest difference F, N, of the tensions (...) on both sides of holes wrapped by (...) rad."""
    return np.asarray(drag - np.expm1(-coefficient * wraps) * np.maximum(inner, outer))


def off_bounds(newer: Array, held: Array) -> NDArray[np.bool_]:
    """Return which bounds (...) that are held in a step are farther from newer ones, N, than they may be at its end."""
    return ~(np.abs(newer - held) <= _BOUND_SHARE * newer + _BOUND_FORCE)


def drawn_along(anchors: Array, slips: Array, bounds: Array, stiffness: float) -> Array:
    """Return where anchors (...) m are after a step: no farther from the tendon, at slips (...) m, than it yields."""
    free = bounds / stiffness
    return np.clip(anchors, slips - free, slips + free)


def check_pulls(pulls: Array, before: Array, what: str) -> None:
    """Check pulls (n, k) m of what is pulled, such as "tendons", against those before.

    Raises:
        SoftformError: If they are not finite or of another number.
    """
    if pulls.shape != before.shape or not np.isfinite(pulls).all():
        raise SoftformError(
            f"Pulls {pulls.tolist()} are not finite pulls of {before.shape[-1]} {what}.", "Give one for each, in m."
        )


def stick_slip_energy(way: Array, bound: Array, stiffness: float) -> Array:
    """Return Huber's potential (...), J, of ways x (...) m under bounds F (...) N; stiffness k in N/m."""
    size = np.abs(way)
    free = bound / stiffness
    return np.where(size <= free, 0.5 * stiffness * size**2, bound * (size - 0.5 * free))


def stick_slip_force(way: Array, bound: Array, stiffness: float) -> tuple[Array, Array]:
    """Return the force (...) N that holds the tendon, and its derivative N/m: zero where it slides."""
    force = stiffness * way
    return np.clip(force, -bound, bound), np.where(np.abs(force) < bound, stiffness, 0.0)
