"""Levenberg-Marquardt on the merit of inverse kinematics, with actuation bounds; the pose is solved with the actuation.

The quadratic model of the merit has its gradient and its Gauss-Newton Hessian. The residual of a point is its distance
to the target, taken along p* - (R c* + t): point-to-plane. Its gradient is exactly Eq. 16, for the closest point moves
only across that direction; and the step may slide along the target, as in point-to-plane registration, which
Algorithm 2 must creep along (it is point-to-point). Only d . dp*/da is needed of the pipeline (`jacobian_along`). The
model is minimised within the actuation bounds by scipy's bounded-variable least squares.

Variables: actuation as parts of its range; pose as a rotation times half the robot's size, and a translation, mm.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform, centroid
from softform_core.inverse.feature_term import FeatureMatches, FeatureTerm
from softform_core.inverse.ik_monitor import Monitor
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.ik_problem import Evaluation, Problem

_SLIDE = 1e-3
"""Weight of the pose's motion along the target: determines the pose on shapes that fit themselves when moved."""

_APART = 1e-9
"""Distance above which the direction to the closest point is used, mm; below it, the target's normal."""

_AXES = np.eye(3)


class QuadraticModel(NamedTuple):
    """merit(step) = merit + gradient . step + step . hessian step / 2.

    Attributes:
        gradient: (m,) mm^2, m = k, or k + 6 with the pose.
        hessian: (m, m) mm^2.
        pivot: (3,) mm, what the pose turns about.
    """

    gradient: Array
    hessian: Array
    pivot: Array


def quadratic_model(problem: Problem, at: Evaluation) -> QuadraticModel:
    """Return the quadratic model of `problem` about the evaluation `at`."""
    rows, residuals, pivot = weighted_rows(problem, at)
    # The merit is the sum of squares of the residuals, without the one half of the textbooks.
    gradient, hessian = 2.0 * (rows.T @ residuals), 2.0 * (rows.T @ rows)
    k = len(at.actuation)
    if not problem.options.fix_pose and at.covered.any():
        hessian *= 1.0 - _SLIDE
        hessian[k:, k:] += _SLIDE * _pose_motion(problem, at, pivot)
    if problem.cost.curvature > 0.0:
        gradient[:k] += problem.cost.gradient(at.actuation)
        hessian[range(k), range(k)] += problem.cost.curvature
    return QuadraticModel(gradient, hessian, pivot)


def weighted_rows(problem: Problem, at: Evaluation) -> tuple[Array, Array, Array]:
    """Return the residuals of target and feature points; their squares sum to their part of the merit.

    Returns:
        Their Jacobian (n, m) mm, the residuals (n,) mm, and the point (3,) mm that the pose turns about.
    """
    pivot = _pivot(problem, at)
    parts = []
    if at.covered.any():
        parts.append(_surface_rows(problem, at, pivot))
    if at.features is not None and problem.features is not None:
        parts.append(_feature_rows(problem, problem.features, at.features, pivot))
    if not parts:
        variables = len(at.actuation) + (0 if problem.options.fix_pose else 6)
        return np.zeros((0, variables)), np.zeros(0), pivot
    if len(parts) == 1:
        return *parts[0], pivot
    rows, residuals = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    return rows, residuals, pivot


def moved(problem: Problem, at: Evaluation, step: Array, pivot: Array) -> tuple[Array, RigidTransform]:
    """Return the actuation, within the bounds, and pose after a step of the model's variables."""
    k = len(at.actuation)
    actuation = problem.clip(at.actuation + step[:k] * problem.range)
    if problem.options.fix_pose:
        return actuation, at.pose
    return actuation, at.pose.moved(step[k : k + 3] * (2.0 / problem.size), step[k + 3 :], pivot)


def _pivot(problem: Problem, at: Evaluation) -> Array:
    """Return the point that the pose turns about: the mean of the points that count."""
    if problem.options.fix_pose:
        return np.zeros(3)
    places = at.points if at.covered.all() else at.points[at.covered]
    if at.features is not None:
        places = np.concatenate([places, at.features.points])
    return centroid(places) if len(places) else np.zeros(3)


def _surface_rows(problem: Problem, at: Evaluation, pivot: Array) -> tuple[Array, Array]:
    """Return weighted rows along p* - (R c* + t), or the target's normal where that is nil; zero if uncovered."""
    matches, distances = at.matches, at.matches.distances[:, None]
    roots = np.sqrt(np.where(at.covered, at.weights, 0.0) / max(1, np.count_nonzero(at.covered)))
    apart = distances > _APART
    directions = np.where(apart, at.points - matches.points, matches.normals)
    directions *= roots[:, None] / np.where(apart, distances, 1.0)
    rows = _rows(problem, problem.jacobian_along(at, directions), directions, matches.points, pivot)
    return rows, roots * matches.distances


def _rows(problem: Problem, along: Array, directions: Array, matched: Array, pivot: Array) -> Array:
    """Return derivatives of d . (p - c) by parts of the actuation's range, from d . dp*/da (P, k), and by a pose.

    A small turn w moves c by w x arm, and d . (p - c) the other way.
    """
    by_actuation = along * problem.range
    if problem.options.fix_pose:
        return by_actuation
    arms = (matched - pivot) * (2.0 / problem.size)
    return np.concatenate([by_actuation, np.cross(directions, arms), -directions], axis=1)


def _feature_rows(problem: Problem, term: FeatureTerm, features: FeatureMatches, pivot: Array) -> tuple[Array, Array]:
    count = len(term)
    roots = np.repeat(np.sqrt(term.features.weights / count), 3)
    directions, wanted = np.tile(_AXES, (count, 1)), np.repeat(features.wanted, 3, axis=0)
    rows = _rows(problem, term.jacobian(features).reshape(3 * count, -1), directions, wanted, pivot)
    return rows * roots[:, None], (features.points - features.wanted).ravel() * roots


def _pose_motion(problem: Problem, at: Evaluation, pivot: Array) -> Array:
    """Return the Hessian of the mean squared motion of the matched points under the pose, (6, 6) mm^2."""
    arms = (at.matches.points[at.covered] - pivot) * (2.0 / problem.size)
    x, y, z = centroid(arms)
    spread = arms.T @ arms / len(arms)
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    motion = np.empty((6, 6))
    motion[:3, :3] = np.trace(spread) * _AXES - spread
    motion[:3, 3:], motion[3:, :3] = across, across.T
    motion[3:, 3:] = _AXES
    return 2.0 * motion


_FIRST_DAMPING = 1e-3
_LEAST_DAMPING = 1e-6
_LEAST_DAMPING_WITH_COST = 1e-9
_MOST_DAMPING = 1e9
_LEAST_PROMISE = 1e-10

_RESOLVED_PART = 0.004
"""Least distance that the paper's relative decrease refers to, over the robot's size. The last steps towards what the
sampling of a target leaves, some 0.01 mm, are large parts of little."""

_MOST_RELATIVE = 1e-3
"""Largest relative decrease that the resolution may end; coarse steps have a larger one, and end no sooner."""


class LevenbergMarquardt:
    """A solve under way, one iteration at a time.

    Attributes:
        problem: Problem that is minimised.
        best: The best found so far; a new object after each iteration that lowered the merit.
    """

    def __init__(self, problem: Problem, start: Evaluation) -> None:
        self.problem, self.best = problem, start
        # A cost of the actuation makes the Hessian regular by itself, and alone chooses among those of one shape: the
        # damping stays below its curvature, or it would bias that choice.
        has_cost = problem.cost.curvature > 0.0
        self._least_damping = _LEAST_DAMPING_WITH_COST if has_cost else _LEAST_DAMPING
        self._damping = self._least_damping if has_cost else _FIRST_DAMPING

    def iterate(self, interrupted: Callable[[], Termination | None]) -> Termination | None:
        """Make one iteration: one model, and trials until one lowers the merit.

        Args:
            interrupted: Asked before every trial; a reason ends the iteration with `best` as it was.

        Returns:
            Why to stop, or None: `best` is better than before, and may get better still.
        """
        problem, best, growth = self.problem, self.best, 2.0
        gradient, hessian, pivot = quadratic_model(problem, best)
        diagonal = hessian.diagonal()
        scale = np.maximum(diagonal, 1e-9 * max(float(diagonal.max()), 1e-12))
        lower = problem.parts(problem.low - best.actuation)
        upper = problem.parts(problem.high - best.actuation)
        while True:
            damped = hessian.copy()
            np.fill_diagonal(damped, diagonal + self._damping * scale)
            step = box_minimum(damped, gradient, lower, upper)
            promised = -float(gradient @ step + 0.5 * step @ hessian @ step)
            # What is not even promised need not be tried: near a noise floor each trial would be rejected.
            if promised <= self._least_decrease(max(problem.options.relative_decrease, _LEAST_PROMISE)):
                return Termination.CONVERGED
            stop = interrupted()
            if stop is not None:
                return stop
            trial = problem.evaluate(*moved(problem, best, step, pivot))
            gain = (best.merit - trial.merit) / promised
            if gain > 1e-4:
                break
            self._damping *= growth
            growth *= 2.0
            if self._damping > _MOST_DAMPING:
                return Termination.STALLED
        # Nielsen 1999: the damping follows how well the model predicted the decrease.
        self._damping = max(self._damping * max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3), self._least_damping)
        is_done = best.merit - trial.merit <= self._least_decrease(problem.options.relative_decrease)
        self.best = problem.rated_anew(trial) if problem.trims else trial
        return Termination.CONVERGED if is_done else None

    def minimise(self, problem: Problem, monitor: Monitor, start: Evaluation) -> tuple[Evaluation, Termination]:
        """Minimise from a start, which is in the history already, with no more damping than was needed so far.

        Args:
            problem: The one before, at other points or with other rules of what counts.
            monitor: Receives the iterations.
            start: State to begin with.

        Returns:
            The best found, and why the method stopped.
        """
        self.problem, self.best = problem, start
        self._damping = min(self._damping, _FIRST_DAMPING)
        while True:
            before = self.best
            stop = self.iterate(monitor.interrupted)
            if self.best is not before:
                stop = monitor.iterated(self.best) or stop
            if stop is not None:
                return self.best, stop

    def _least_decrease(self, relative: float) -> float:
        """Return the decrease of the merit from `best`, mm^2, that is worth a step: d(r^2) = 2 r dr of its root r."""
        merit = self.best.merit
        # What a cost of the actuation is worth is little beside what distances are.
        resolved = 0.0 if self.problem.cost.curvature > 0.0 else _RESOLVED_PART * self.problem.size
        return max(relative * merit, 2.0 * math.sqrt(merit) * min(relative, _MOST_RELATIVE) * resolved)


def box_minimum(hessian: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    """Minimise g.s + s.H s / 2 with the first variables within bounds, as bounded least squares (Stark, Parker 1995).

    Args:
        hessian: (m, m) positive definite.
        gradient: (m,).
        lower: (k,) not positive, k <= m: the variables after the k-th are free.
        upper: (k,) not negative; a variable whose bounds are both zero stays.

    Returns:
        (m,) step, within the bounds.
    """
    low, high = np.full(len(gradient), -np.inf), np.full(len(gradient), np.inf)
    low[: len(lower)], high[: len(upper)] = lower, upper
    step = np.linalg.solve(hessian, -gradient)
    if (step >= low).all() and (step <= high).all():
        return np.asarray(step)
    moves = low < high
    root = np.linalg.cholesky(hessian[np.ix_(moves, moves)])
    wanted = -np.linalg.solve(root, gradient[moves])
    step = np.zeros(len(gradient))
    step[moves] = lsq_linear(root.T, wanted, (low[moves], high[moves]), method="bvls").x
    return np.clip(step, low, high)
