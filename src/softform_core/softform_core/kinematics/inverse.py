"""Inverse kinematics: the actuation, and if wanted the target's pose, that bring the predicted shape onto a target.

Paper 000, Sec. IV-B: argmin over a, R, t of D (Eq. 15). Two methods behind one function: Levenberg-Marquardt (ours) and
the gradient descent of Algorithm 2 (the reference). Millimetres and Pa.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.kinematics.closest_points import closest_points_on
from softform_core.kinematics.gradient_descent import gradient_descent
from softform_core.kinematics.ik_problem import (
    Evaluation,
    ForwardModel,
    IkIteration,
    IkOptions,
    Monitor,
    Problem,
    Termination,
)
from softform_core.kinematics.levenberg_marquardt import levenberg_marquardt
from softform_core.registration.rigid import RigidTransform
from softform_core.shapes.target import TargetShape

Array = NDArray[np.float64]
Method = Literal["levenberg_marquardt", "gradient_descent"]

METHODS = {"levenberg_marquardt": levenberg_marquardt, "gradient_descent": gradient_descent}


@dataclass(frozen=True)
class IkResult:
    """Outcome of `solve_inverse_kinematics`.

    Attributes:
        pressures: (k,) Pa, within the bounds.
        pose: (R, t) in mm, applied to the target.
        points: (P, 3) mm, the predicted shape.
        distances: (P,) mm to the posed target.
        covered: (P,) points that have a counterpart on the target; errors are taken over these.
        mean_error_mm: Mean of the distances of covered points.
        max_error_mm: Largest of them.
        objective: D of Eq. 15 over covered points, mm^2.
        iterations: Iterations made.
        history: One entry an iteration, the start first.
        forward_evaluations: Evaluations of the forward pipeline.
        jacobian_evaluations: Evaluations of its Jacobian or gradient.
        closest_point_queries: Searches for all closest points.
        seconds: Wall-clock time of the solve, without building the search tree of the target.
        prepare_seconds: Time to build that tree.
        method: Which method.
        termination: Why it stopped.
    """

    pressures: Array
    pose: RigidTransform
    points: Array
    distances: Array
    covered: NDArray[np.bool_]
    mean_error_mm: float
    max_error_mm: float
    objective: float
    iterations: int
    history: list[IkIteration]
    forward_evaluations: int
    jacobian_evaluations: int
    closest_point_queries: int
    seconds: float
    prepare_seconds: float
    method: Method
    termination: Termination


def solve_inverse_kinematics(
    pipeline: ForwardModel,
    target: TargetShape,
    options: IkOptions,
    method: Method = "levenberg_marquardt",
    on_iteration: Callable[[IkIteration], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> IkResult:
    """Find the actuation (and the target's pose) that minimises Eq. 15.

    A target with holes, or one that ends before the robot does, is first fitted as it is; then points that turn out to
    have no counterpart (`IkResult.covered`) are left out and the fit is repeated from there.

    Args:
        pipeline: Forward kinematics.
        target: Mesh or cloud, metres.
        options: Bounds, pose and limits.
        method: `levenberg_marquardt`, or `gradient_descent` for Algorithm 2.
        on_iteration: Called with every iteration, the start included.
        should_stop: Asked before every evaluation; true ends the solve with the best so far.

    Returns:
        The best found, whatever ended the solve.

    Raises:
        SoftformError: On a bad target, bad bounds, a wrong number of pressures or an unknown method.
    """
    if method not in METHODS:
        raise SoftformError(f"There is no IK method '{method}'.", f"Use one of {', '.join(METHODS)}.")
    start_pressures = _checked_start(options, pipeline.degrees_of_freedom)
    started = time.perf_counter()
    search = closest_points_on(target)
    prepare_seconds = time.perf_counter() - started

    problem = Problem(pipeline, search, options)
    monitor = Monitor(options, on_iteration, should_stop)
    best = _start(problem, start_pressures)
    stop = monitor.iterated(best)
    if stop is None:
        best, stop = METHODS[method](problem, monitor, best)
        if stop.finished and problem.uncovered(best.points, best.matches).any():
            problem.ignore_uncovered = True
            covered_only = problem.match(best.actuation, best.pose, best.state, best.points)
            if np.isfinite(covered_only.merit):
                best = covered_only
                stop = monitor.iterated(best) or Termination.CONVERGED
                if stop is Termination.CONVERGED:
                    best, stop = METHODS[method](problem, monitor, best)
    return IkResult(
        pressures=best.actuation,
        pose=best.pose,
        points=best.points,
        distances=best.matches.distances,
        covered=best.covered,
        mean_error_mm=best.mean_error_mm,
        max_error_mm=best.max_error_mm,
        objective=best.objective,
        iterations=len(monitor.history) - 1,
        history=monitor.history,
        forward_evaluations=problem.forward_evaluations,
        jacobian_evaluations=problem.jacobian_evaluations,
        closest_point_queries=problem.queries,
        seconds=monitor.seconds,
        prepare_seconds=prepare_seconds,
        method=method,
        termination=stop,
    )


def _checked_start(options: IkOptions, degrees_of_freedom: int) -> Array:
    low, high = np.asarray(options.pressure_min), np.asarray(options.pressure_max)
    if low.shape != (degrees_of_freedom,) or high.shape != (degrees_of_freedom,):
        raise SoftformError(
            f"Pressure bounds have shapes {low.shape} and {high.shape}, the model has {degrees_of_freedom} chambers.",
            "Give one bound for each chamber; check that the model belongs to the robot.",
        )
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise SoftformError("Pressure bounds must be finite and ordered.", "Check pressure_min and pressure_max.")
    if not options.max_seconds > 0.0 or options.max_iterations < 1 or not options.tolerance_mm >= 0.0:
        raise SoftformError(
            f"Limits make no sense: max_seconds {options.max_seconds}, max_iterations {options.max_iterations}, "
            f"tolerance {options.tolerance_mm} mm.",
            "Give positive limits and a tolerance of zero or more.",
        )
    if options.initial_pressures is None:
        return np.asarray(0.5 * (low + high))
    start = np.asarray(options.initial_pressures, dtype=np.float64)
    if start.shape != (degrees_of_freedom,) or not np.isfinite(start).all():
        raise SoftformError(
            f"Initial pressures {start} do not fit {degrees_of_freedom} chambers.",
            "Give one finite pressure in Pa for each chamber.",
        )
    return np.clip(start, low, high)


def _start(problem: Problem, pressures: Array) -> Evaluation:
    """The start; a free target that lies far away is first brought over the robot."""
    options = problem.options
    if options.fix_pose:
        return problem.evaluate(pressures, RigidTransform())
    given = problem.evaluate(pressures, options.initial_pose)
    shift = given.points.mean(axis=0) - options.initial_pose.apply(problem.target.vertices).mean(axis=0)
    centred = problem.match(
        pressures,
        RigidTransform(options.initial_pose.rotation, options.initial_pose.translation + shift),
        given.state,
        given.points,
    )
    return centred if centred.merit < given.merit else given
