"""Minimum of a quadratic function within a box, by an active set: a step within actuation bounds."""

import numpy as np

from softform_core.arrays import Array


def box_minimum(hessian: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    """Minimise g.s + s.H s / 2 with the first variables within bounds, by an active set (Nocedal and Wright, ch. 16).

    Args:
        hessian: (m, m) positive definite.
        gradient: (m,).
        lower: (k,) not positive, k <= m: the variables after the k-th are free.
        upper: (k,) not negative.

    Returns:
        (m,) step, within the bounds.
    """
    size = len(gradient)
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    low[: len(lower)], high[: len(upper)] = lower, upper
    step = np.linalg.solve(hessian, -gradient)
    if (step >= low).all() and (step <= high).all():
        return np.asarray(step)
    step, free = np.zeros(size), np.ones(size, dtype=bool)
    tolerance = 1e-12 * (1.0 + float(np.abs(gradient).max()))
    for _ in range(4 * size):
        change = np.zeros(size)
        change[free] = np.linalg.solve(hessian[np.ix_(free, free)], -(gradient + hessian @ step)[free])
        bound = np.where(change > 0.0, high, low)
        room = np.divide(bound - step, change, out=np.full(size, np.inf), where=change != 0.0)
        nearest = int(room.argmin())
        step = np.clip(step + min(max(float(room[nearest]), 0.0), 1.0) * change, low, high)
        if room[nearest] < 1.0:
            step[nearest], free[nearest] = bound[nearest], False
            continue
        slope = gradient + hessian @ step
        inward = np.where(free, -np.inf, np.where(step <= low, -slope, slope))
        steepest = int(inward.argmax())
        if inward[steepest] <= tolerance:
            break
        free[steepest] = True
    return np.asarray(step)
