"""Levenberg-Marquardt on the merit of inverse kinematics, with actuation bounds; the pose is solved with the actuation.

The quadratic model is minimised within the actuation bounds by scipy's bounded-variable least squares.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import lsq_linear

from softform_core.arrays import Array
from softform_core.inverse.ik_monitor import Monitor
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.ik_problem import Evaluation, Problem
from softform_core.inverse.quadratic_model import moved, quadratic_model

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
