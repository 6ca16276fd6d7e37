"""Inverse kinematics: the actuation, and if wanted the target's pose, that bring the predicted shape onto a target.

Paper 000, Sec. IV-B: argmin over a, R, t of D (Eq. 15), by Levenberg-Marquardt, point to plane; coarse to fine. Far
from the target the quadratic model is what limits a step, not the number of points: a hundred of them show the way as
well as a thousand, in a fraction of the time.
Millimetres; actuations in the robot's unit.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from softform_core.forward.forward_model import ForwardModel
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import ClosestPoints, closest_points_on
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_monitor import IkIteration, Monitor
from softform_core.inverse.ik_options import IkOptions, Termination, check_options
from softform_core.inverse.ik_problem import Evaluation, Problem
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.levenberg_marquardt import LevenbergMarquardt
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape

__all__ = ["solve_inverse_kinematics", "solve_prepared"]

Solve: TypeAlias = Callable[[Problem, Monitor, Evaluation], tuple[Evaluation, Termination]]

_NEAR_PART = 0.001
"""Mean error over the robot's size below which a start is near: coarse steps would gain nothing."""

_DONE_PART = 0.0001
"""Mean error over the robot's size at which coarse steps end: few points tell no more."""

_MOST_ITERATIONS = 12
"""Most coarse iterations: those of sheets end before; a long arm takes more than six."""

_RELATIVE_DECREASE = 0.01
"""Relative decrease of the error that ends coarse steps where the target is out of reach."""


def solve_inverse_kinematics(
    pipeline: ForwardModel,
    target: Shape | None,
    options: IkOptions,
    on_iteration: Callable[[IkIteration], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    features: FeaturePoints | None = None,
) -> IkResult:
    """Find the actuation (and the target's pose) that minimises Eq. 15.

    A target with holes, or one that ends before the robot does, is first fitted as it is; then points that turn out to
    have no counterpart (`IkResult.covered`) are left out and the fit is repeated from there. With `options.partial`
    distances that stand out from the others then lose their weight, too.

    Args:
        pipeline: Forward kinematics.
        target: Mesh or cloud, metres; None: feature points alone.
        options: Bounds, pose and limits.
        on_iteration: Called with every iteration, the start included.
        should_stop: Asked before every evaluation; true ends the solve with the best so far.
        features: Feature points and where they are wanted, or None.

    Returns:
        The best found, whatever ended the solve.

    Raises:
        SoftformError: On a bad target, bad bounds or an actuation of the wrong size.
    """
    check_options(options, pipeline.degrees_of_freedom)
    started = time.perf_counter()
    search = None if target is None else closest_points_on(target)
    term = None if features is None else FeatureTerm.of(pipeline, features)
    prepare_seconds = time.perf_counter() - started
    return solve_prepared(pipeline, search, options, on_iteration, should_stop, term, prepare_seconds)


def solve_prepared(
    pipeline: ForwardModel,
    search: ClosestPoints | None,
    options: IkOptions,
    on_iteration: Callable[[IkIteration], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    features: FeatureTerm | None = None,
    prepare_seconds: float = 0.0,
) -> IkResult:
    """Solve like `solve_inverse_kinematics`, with a search structure that is built and options that are checked."""
    problem, monitor = Problem(pipeline, search, options, features), Monitor(options, on_iteration, should_stop)
    solver, stop, coarse_iterations = approach(problem, monitor)
    return finish(problem, monitor, solver.minimise, solver.best, stop, coarse_iterations, prepare_seconds)


def start_of(problem: Problem) -> Evaluation:
    """Return the evaluation where the options say; a free target that lies far away is first brought over the robot."""
    options = problem.options
    actuation = options.start()
    if options.fix_pose:
        return problem.evaluate(actuation, RigidTransform())
    given = problem.evaluate(actuation, options.initial_pose)
    shift = problem.centre_of_shape(given) - options.initial_pose.apply(problem.centre_of_target)
    pose = RigidTransform(options.initial_pose.rotation, options.initial_pose.translation + shift)
    centred = problem.reposed(given, pose)
    return centred if centred.merit < given.merit else given


def approach(problem: Problem, monitor: Monitor) -> tuple[LevenbergMarquardt, Termination | None, int]:
    """Start at few points, go towards the target there, and evaluate where that leads at all points.

    Args:
        problem: Problem at all points.
        monitor: Receives the start (at few points if it is far off) and the result of the coarse iterations.

    Returns:
        The method, its best the evaluation at all points to go on from; a reason to stop, if there is one; and the
        coarse iterations made.
    """
    if problem.target is None:
        start = start_of(problem)
        return LevenbergMarquardt(problem, start), monitor.iterated(start), 0
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
    solver.problem, solver.best = problem, approached
    return solver, monitor.iterated(approached), iterations


def finish(
    problem: Problem,
    monitor: Monitor,
    solve: Solve,
    best: Evaluation,
    stop: Termination | None,
    coarse_iterations: int,
    prepare_seconds: float,
) -> IkResult:
    """Solve from a start, unless there is a reason to stop, and once more without points that have no counterpart."""
    if stop is None:
        best, stop = solve(problem, monitor, best)
    if stop.finished and not problem.ignore_uncovered and (problem.options.partial or problem.lacks_parts(best)):
        trimmed = _trimmed(problem, best)
        if trimmed is not None:
            best = trimmed
            stop = monitor.iterated(best) or Termination.CONVERGED
            if stop is Termination.CONVERGED:
                best, stop = solve(problem, monitor, best)
    return IkResult(
        **vars(best),
        history=monitor.history,
        coarse_iterations=coarse_iterations,
        seconds=monitor.seconds,
        prepare_seconds=prepare_seconds,
        termination=stop,
        problem=problem,
    )


def _trimmed(problem: Problem, at: Evaluation) -> Evaluation | None:
    """Drop points without a counterpart from now on; None, and no change, if too few are left."""
    problem.ignore_uncovered, problem.trims = True, problem.options.partial
    trimmed = problem.rated_anew(at)
    if np.isfinite(trimmed.merit):
        return trimmed
    problem.ignore_uncovered = problem.trims = False
    problem.scale = np.inf
    return None
