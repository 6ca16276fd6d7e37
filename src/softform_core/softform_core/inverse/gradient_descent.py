"""Algorithm 2 of paper 000: gradient descent with line search, alternating with ICP for the pose. The reference method.

Left open by the paper and chosen here: pressures are steered as parts of their range (otherwise the step would have the
unit Pa^2/mm^2); the line search is Armijo's backtracking with the projection on the bounds (Nocedal and Wright, Alg.
3.1), started at twice the last accepted step.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.inverse.icp import icp
from softform_core.inverse.ik_monitor import Monitor
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.ik_problem import Evaluation, Problem

Array = NDArray[np.float64]

_ARMIJO = 1e-4
_FIRST_MOVE = 0.1
"""The first step moves the steepest pressure by this part of its range."""

_SHORTEST = 1e-12


def gradient_descent(problem: Problem, monitor: Monitor, start: Evaluation) -> tuple[Evaluation, Termination]:
    """Minimise from a start; arguments and result as `levenberg_marquardt`."""
    options, best, length = problem.options, start, None
    while True:
        before = best.merit
        if not options.fix_pose:
            assert problem.target is not None
            pose, _ = icp(best.points[best.covered], problem.target, best.pose)
            posed = problem.reposed(best, pose)
            best = posed if posed.merit < best.merit else best
        slope = problem.gradient(best) * problem.range
        steepest = float(np.abs(slope).max())
        if steepest == 0.0:
            return best, Termination.CONVERGED
        length = _FIRST_MOVE / steepest if length is None else 2.0 * length
        while True:
            stop = monitor.interrupted()
            if stop is not None:
                return best, stop
            actuation = problem.clip(best.actuation - length * slope * problem.range)
            move = (actuation - best.actuation) / problem.range
            if float(np.abs(move).max()) < _SHORTEST:
                at_bound = (
                    float(np.abs(problem.clip(best.actuation - slope * problem.range) - best.actuation).max()) == 0.0
                )
                return best, Termination.CONVERGED if at_bound else Termination.STALLED
            trial = problem.evaluate(actuation, best.pose)
            if trial.merit <= best.merit + _ARMIJO * float(slope @ move):
                break
            length *= 0.5
        best = trial
        stop = monitor.iterated(best)
        if stop is not None:
            return best, stop
        if (before - best.merit) / max(best.merit, 1e-300) <= options.relative_decrease:
            return best, Termination.CONVERGED
