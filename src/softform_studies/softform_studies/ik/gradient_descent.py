"""Algorithm 2 of paper 000: gradient descent with line search, alternating with ICP for the pose.

Left open by the paper and chosen here: the actuation is varied as parts of its range (otherwise the step would have the
unit Pa^2/mm^2); the line search is Armijo's backtracking with the projection on the bounds (Nocedal and Wright, Alg.
3.1), started at twice the last accepted step.
"""

from collections.abc import Callable

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.geometry.rigid import RigidTransform, kabsch
from softform_core.inverse.closest_points import ClosestPoints
from softform_core.inverse.ik_monitor import IkIteration, Monitor
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.ik_problem import Evaluation, Problem
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.inverse import finish, start_of

_ARMIJO = 1e-4
_FIRST_MOVE = 0.1
"""Part of its range by which the first step moves the steepest value."""

_SHORTEST = 1e-12


def descend(
    model: ForwardModel,
    search: ClosestPoints,
    options: IkOptions,
    on_iteration: Callable[[IkIteration], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> IkResult:
    """Descend like `solve_prepared`, for a target alone: without features and costs of the actuation."""
    problem, monitor = Problem(model, search, options), Monitor(options, on_iteration, should_stop)
    start = start_of(problem)
    stop = monitor.iterated(start)
    return finish(problem, monitor, gradient_descent, start, stop, 0, 0.0)


def gradient_descent(problem: Problem, monitor: Monitor, start: Evaluation) -> tuple[Evaluation, Termination]:
    """Minimise from a start; arguments and result as `LevenbergMarquardt.minimise`."""
    options, best, length = problem.options, start, None
    while True:
        before = best.merit
        if not options.fix_pose:
            assert problem.target is not None
            pose, _ = icp(best.points[best.covered], problem.target, best.pose)
            posed = problem.reposed(best, pose)
            best = posed if posed.merit < best.merit else best
        by_actuation = problem.pipeline.objective_gradient(best.state, best.residuals)  # Eq. 16
        slope = by_actuation / max(1, int(best.covered.sum())) * problem.range
        steepest = float(np.abs(slope).max())
        if steepest == 0.0:
            return best, Termination.CONVERGED
        length = _FIRST_MOVE / steepest if length is None else 2.0 * length
        while True:
            stop = monitor.interrupted()
            if stop is not None:
                return best, stop
            actuation = problem.clip(best.actuation - length * slope * problem.range)
            move = problem.parts(actuation - best.actuation)
            if float(np.abs(move).max()) < _SHORTEST:
                at_bound = np.array_equal(problem.clip(best.actuation - slope * problem.range), best.actuation)
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


def icp(
    points: Array,
    target: ClosestPoints,
    pose: RigidTransform,
    max_iterations: int = 10,
    relative_decrease: float = 1e-4,
) -> tuple[RigidTransform, int]:
    """Run ICP (Besl and McKay 1992): returns a pose of the target nearer to the points, or the given one.

    Args:
        points: (P, 3) mm, of the predicted shape.
        target: The target before any pose.
        pose: Initial.
        max_iterations: Most matchings.
        relative_decrease: Stop when the squared error falls by less than this part of itself.

    Returns:
        The pose and the number of matchings made.
    """
    best, best_error = pose, np.inf
    for iteration in range(1, max_iterations + 1):
        matches = target.query(pose.apply_inverse(points))
        error = float(matches.distances @ matches.distances)
        if error >= best_error * (1.0 - relative_decrease):
            return (pose if error < best_error else best), iteration
        best, best_error = pose, error
        pose = kabsch(matches.points, points)
    return best, max_iterations
