"""Minimum of a quadratic function within a box, by an active set: a step under pressure bounds."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def box_minimum(hessian: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    """Minimise g.s + s.H s / 2 with the first variables within bounds, by an active set.

    Args:
        hessian: (m, m) positive definite.
        gradient: (m,).
        lower: (k,) not positive, k <= m: the variables after the k-th are free.
        upper: (k,) not negative.

    Returns:
        (m,) step, within the bounds.
    """
    free_variables = len(gradient) - len(lower)
    low = np.concatenate([lower, np.full(free_variables, -np.inf)])
    high = np.concatenate([upper, np.full(free_variables, np.inf)])
    step = np.zeros_like(gradient)
    free = np.ones(len(gradient), dtype=bool)
    for _ in range(4 * len(gradient)):
        slope = gradient + hessian[:, ~free] @ step[~free]
        wanted = step.copy()
        wanted[free] = np.linalg.solve(hessian[np.ix_(free, free)], -slope[free])
        change = wanted - step
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(change > 0.0, (high - step) / change, np.where(change < 0.0, (low - step) / change, np.inf))
        room[~free] = np.inf
        nearest = int(np.argmin(room))
        if room[nearest] < 1.0:
            step = np.clip(step + max(room[nearest], 0.0) * change, low, high)
            step[nearest] = high[nearest] if change[nearest] > 0.0 else low[nearest]
            free[nearest] = False
            continue
        step = wanted
        slope = gradient + hessian @ step
        inward = np.where(free, 0.0, np.where(step <= low, -slope, slope))
        release = int(np.argmax(inward))
        if inward[release] <= 1e-12 * (1.0 + float(np.abs(gradient).max())):
            break
        free[release] = True
    return step
