"""Minimum of a quadratic function within a box, by an active set: a step under pressure bounds."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


# Compiled when this is imported, by their signatures: no solve pays for it out of its time.


@njit("f8[::1](f8[:,::1], f8[::1], i8[::1])", cache=True, nogil=True)
def _newton_step(hessian: Array, slope: Array, variables: NDArray[np.int64]) -> Array:  # pragma: no cover - compiled
    """Step of these variables to where their slope is zero, the others held, by Cholesky's factors; (m,)."""
    count = len(variables)
    factor, step = np.zeros((count, count)), np.zeros(len(slope))
    solved = np.empty(count)
    for row in range(count):
        for column in range(row + 1):
            rest = hessian[variables[row], variables[column]]
            for inner in range(column):
                rest -= factor[row, inner] * factor[column, inner]
            if row == column:
                factor[row, row] = np.sqrt(max(rest, 1e-300))
            else:
                factor[row, column] = rest / factor[column, column]
    for row in range(count):
        rest = -slope[variables[row]]
        for inner in range(row):
            rest -= factor[row, inner] * solved[inner]
        solved[row] = rest / factor[row, row]
    for row in range(count - 1, -1, -1):
        for inner in range(row + 1, count):
            solved[row] -= factor[inner, row] * solved[inner]
        solved[row] /= factor[row, row]
        step[variables[row]] = solved[row]
    return step


@njit("f8[::1](f8[:,::1], f8[::1], f8[::1], f8[::1])", cache=True, nogil=True)
def _active_set(hessian: Array, gradient: Array, lower: Array, upper: Array) -> Array:  # pragma: no cover - compiled
    size = len(gradient)
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    low[: len(lower)], high[: len(upper)] = lower, upper
    step = np.zeros(size)
    free = np.ones(size, dtype=np.bool_)
    tolerance = 1e-12 * (1.0 + np.abs(gradient).max())
    for _ in range(4 * size):
        variables = np.flatnonzero(free)
        change = _newton_step(hessian, gradient + hessian @ step, variables)
        nearest, room = -1, 1.0
        for variable in range(size):
            bound = high[variable] if change[variable] > 0.0 else low[variable]
            if change[variable] != 0.0 and (bound - step[variable]) / change[variable] < room:
                nearest, room = variable, (bound - step[variable]) / change[variable]
        step = np.minimum(np.maximum(step + max(room, 0.0) * change, low), high)
        if nearest >= 0:
            step[nearest] = high[nearest] if change[nearest] > 0.0 else low[nearest]
            free[nearest] = False
            continue
        slope = gradient + hessian @ step
        release, steepest = -1, tolerance
        for variable in range(size):
            inward = -slope[variable] if step[variable] <= low[variable] else slope[variable]
            if not free[variable] and inward > steepest:
                release, steepest = variable, inward
        if release < 0:
            break
        free[release] = True
    return step


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
    return np.asarray(_active_set(*(np.ascontiguousarray(each) for each in (hessian, gradient, lower, upper))))
