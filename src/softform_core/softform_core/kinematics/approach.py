"""Coarse to fine: the first iterations of a solve from afar, at few points of the surface.

Far from the target the quadratic model is what limits a step, not the number of points: a hundred of them show the way
as well as a thousand, in a fraction of the time.
"""

from dataclasses import replace

from softform_core.kinematics.ik_monitor import Monitor
from softform_core.kinematics.ik_problem import Evaluation, Problem
from softform_core.kinematics.levenberg_marquardt import LevenbergMarquardt

_NEAR_PART = 0.001
"""A start with a mean error below this part of the robot's size is near: coarse steps would gain nothing."""

_MOST_ITERATIONS = 6
_RELATIVE_DECREASE = 0.1


def approach(problem: Problem, monitor: Monitor, start: Evaluation) -> tuple[Evaluation, int]:
    """Go towards the target at few points.

    Args:
        problem: At all points.
        monitor: Asked whether to stop.
        start: Where to begin.

    Returns:
        A better evaluation at all points, or `start` itself; and the coarse iterations made.
    """
    if problem.target is None or start.mean_error_mm <= _NEAR_PART * problem.size:
        return start, 0
    coarse = problem.coarse(replace(problem.options, relative_decrease=_RELATIVE_DECREASE))
    solver = LevenbergMarquardt(coarse, coarse.evaluate(start.actuation, start.pose))
    iterations = 0
    while iterations < _MOST_ITERATIONS:
        before = solver.best
        stop = solver.iterate(monitor.interrupted)
        iterations += solver.best is not before
        if stop is not None:
            break
    if iterations == 0 or monitor.interrupted() is not None:
        return start, iterations
    approached = problem.evaluate(solver.best.actuation, solver.best.pose)
    return (approached if approached.merit < start.merit else start), iterations
