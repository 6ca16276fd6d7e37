"""Where a solve begins: coarse to fine. Far from the target the first iterations are made at few points of the surface.

There the quadratic model is what limits a step, not the number of points: a hundred of them show the way as well as a
thousand, in a fraction of the time.
"""

from dataclasses import replace

from softform_core.inverse.ik_monitor import Monitor
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.ik_problem import Evaluation, Problem
from softform_core.inverse.levenberg_marquardt import LevenbergMarquardt
from softform_core.registration.rigid import RigidTransform

_NEAR_PART = 0.001
"""A start with a mean error below this part of the robot's size is near: coarse steps would gain nothing."""

_DONE_PART = 0.0001
"""Coarse steps end below this part of the robot's size: few points tell no more."""

_MOST_ITERATIONS = 6
_RELATIVE_DECREASE = 0.1


def start_of(problem: Problem) -> Evaluation:
    """The evaluation where the options say; a free target that lies far away is first brought over the robot."""
    options = problem.options
    actuation = options.start()
    if options.fix_pose:
        return problem.evaluate(actuation, RigidTransform())
    given = problem.evaluate(actuation, options.initial_pose)
    shift = problem.centre_of_shape(given) - options.initial_pose.apply(problem.centre_of_target)
    pose = RigidTransform(options.initial_pose.rotation, options.initial_pose.translation + shift)
    centred = problem.reposed(given, pose)
    return centred if centred.merit < given.merit else given


def approach(problem: Problem, monitor: Monitor) -> tuple[Evaluation, Termination | None, int]:
    """Start at few points, go towards the target there, and evaluate where that leads at all points.

    Args:
        problem: Problem at all points.
        monitor: Receives the start (at few points if it is far off) and the result of the coarse iterations.

    Returns:
        The evaluation at all points to go on from, a reason to stop if there is one, and the coarse iterations made.
    """
    if problem.target is None:
        start = start_of(problem)
        return start, monitor.iterated(start), 0
    coarse = problem.coarse(replace(problem.options, relative_decrease=_RELATIVE_DECREASE))
    afar = start_of(coarse)
    solver = LevenbergMarquardt(coarse, afar)
    iterations = 0
    if afar.mean_error_mm > max(_NEAR_PART * problem.size, problem.options.tolerance_mm):
        while iterations < _MOST_ITERATIONS and solver.best.mean_error_mm > _DONE_PART * problem.size:
            before = solver.best
            stop = solver.iterate(monitor.interrupted)
            iterations += solver.best is not before
            if stop is not None:
                break
    approached = problem.evaluate(solver.best.actuation, solver.best.pose)
    if iterations > 0 and not approached.merit < afar.merit:
        # What helps at few points does not at all points.
        approached, iterations = problem.evaluate(afar.actuation, afar.pose), 0
    if iterations > 0:
        monitor.iterated(afar, share=len(afar.points) / len(approached.points))
    return approached, monitor.iterated(approached), iterations
