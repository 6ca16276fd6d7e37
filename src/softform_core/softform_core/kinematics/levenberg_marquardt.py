"""Levenberg-Marquardt on Eq. 15 with pressure bounds, the pose solved together with the actuation.

The residual of a point is its distance to the target, taken along p* - (R c* + t). Its gradient is exactly Eq. 16, for
the closest point moves only across that direction; and the step may slide along the target, as in point-to-plane
registration, which Algorithm 2 must creep along. The quadratic model is minimised within the box of pressures by an
active set. Variables: pressures as parts of their range, pose as a rotation times half the robot's size (mm) and a
translation (mm).
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.kinematics.ik_problem import Evaluation, Monitor, Problem, Termination
from softform_core.registration.rigid import RigidTransform

Array = NDArray[np.float64]

_SLIDE = 1e-3
"""Weight of motion along the target: keeps the pose determined on shapes that fit themselves when moved. Free poses
take 5 to 8 iterations with it, 11 with 0.01, 50 with 1 at the rim (point-to-point)."""

_FIRST_DAMPING = 1e-3
_LEAST_DAMPING = 1e-9
_MOST_DAMPING = 1e9


def levenberg_marquardt(problem: Problem, monitor: Monitor, start: Evaluation) -> tuple[Evaluation, Termination]:
    """Minimise from a start.

    Args:
        problem: Eq. 15.
        monitor: Limits and history.
        start: Where to begin, already in the history.

    Returns:
        The best found and why the method stopped.
    """
    options, best = problem.options, start
    damping, growth = _FIRST_DAMPING, 2.0
    while True:
        gradient, hessian, pivot = _quadratic_model(problem, best)
        scale = np.maximum(np.diag(hessian), 1e-9 * max(float(np.diag(hessian).max()), 1e-12))
        lower = (options.pressure_min - best.actuation) / problem.range
        upper = (options.pressure_max - best.actuation) / problem.range
        while True:
            step = box_minimum(hessian + damping * np.diag(scale), gradient, lower, upper)
            promised = -float(gradient @ step + 0.5 * step @ hessian @ step)
            if promised <= 1e-10 * best.merit:
                return best, Termination.CONVERGED
            stop = monitor.interrupted()
            if stop is not None:
                return best, stop
            trial = problem.evaluate(*_moved(problem, best, step, pivot))
            gain = (best.merit - trial.merit) / promised
            if gain > 1e-4:
                break
            damping *= growth
            growth *= 2.0
            if damping > _MOST_DAMPING:
                return best, Termination.STALLED
        # Nielsen 1999: the damping follows how well the model foretold the decrease.
        damping = max(damping * max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3), _LEAST_DAMPING)
        growth = 2.0
        decrease = (best.merit - trial.merit) / max(trial.merit, 1e-300)
        best = trial
        stop = monitor.iterated(best)
        if stop is not None:
            return best, stop
        if decrease <= options.relative_decrease:
            return best, Termination.CONVERGED


def _quadratic_model(problem: Problem, at: Evaluation) -> tuple[Array, Array, Array]:
    """Gradient and Gauss-Newton Hessian of the merit, and the point that the pose turns about."""
    covered = at.covered
    jacobian = problem.jacobian(at)[covered] * problem.range
    points, matches = at.points[covered], at.matches
    closest, distances = matches.points[covered], matches.distances[covered]
    pivot = points.mean(axis=0)
    if not problem.options.fix_pose:
        arm = (closest - pivot) * (2.0 / problem.size)
        turn = np.zeros((len(points), 3, 3))
        # d(p* - c)/d(rotation) = [c - pivot]x, since a small turn w moves c by w x (c - pivot).
        turn[:, 0, 1], turn[:, 0, 2], turn[:, 1, 2] = -arm[:, 2], arm[:, 1], -arm[:, 0]
        turn -= turn.swapaxes(1, 2)
        shift = np.broadcast_to(-np.eye(3), turn.shape)
        jacobian = np.concatenate([jacobian, turn, shift], axis=2)
    residual = points - closest
    apart = distances > 1e-9
    direction = np.where(apart[:, None], residual / np.maximum(distances, 1e-9)[:, None], matches.normals[covered])
    along = np.einsum("px,pxk->pk", direction, jacobian)
    every_direction = jacobian.reshape(-1, along.shape[1])
    hessian = (1.0 - _SLIDE) * (along.T @ along) + _SLIDE * (every_direction.T @ every_direction)
    factor = 2.0 / len(points)
    return factor * (along.T @ distances), factor * hessian, pivot


def _moved(problem: Problem, at: Evaluation, step: Array, pivot: Array) -> tuple[Array, RigidTransform]:
    k = len(at.actuation)
    actuation = problem.clip(at.actuation + step[:k] * problem.range)
    if problem.options.fix_pose:
        return actuation, at.pose
    return actuation, at.pose.moved(step[k : k + 3] * (2.0 / problem.size), step[k + 3 :], pivot)


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
