"""Inverse kinematics: the actuation, and if wanted the target's pose, that bring the predicted shape onto a target.

Paper 000, Sec. IV-B: argmin over a, R, t of D (Eq. 15). Two methods behind one function: Levenberg-Marquardt (ours) and
the gradient descent of Algorithm 2 (the reference). Millimetres and Pa.
"""

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.kinematics.closest_points import ClosestPoints, Matches, closest_points_on
from softform_core.kinematics.icp import posed_query
from softform_core.registration.rigid import RigidTransform
from softform_core.shapes.target import TargetShape

Array = NDArray[np.float64]
Method = Literal["levenberg_marquardt", "gradient_descent"]

UNCOVERED_PART = 0.002
"""A point whose closest point lies on the target's rim, sideways by more than this part of the robot's size, has no
counterpart on the target: the target has a hole there, or ends."""

_MIN_COVERED = 0.05
_EXACT_MM = 1e-6


class Termination(enum.Enum):
    """Why the solver stopped."""

    TOLERANCE_REACHED = "the mean error is within the tolerance"
    CONVERGED = "no further decrease of the error is possible nearby"
    STALLED = "no step lowers the error although its slope is not zero"
    MAX_ITERATIONS = "the largest number of iterations is reached"
    TIME_LIMIT = "the time is up"
    CANCELLED = "the caller asked to stop"

    @property
    def finished(self) -> bool:
        """Whether the method ended by itself rather than being cut short."""
        return self in (Termination.TOLERANCE_REACHED, Termination.CONVERGED, Termination.STALLED)


class ForwardModel(Protocol):
    """What the solvers need of a forward pipeline; `ForwardPipeline` is the one that ships."""

    @property
    def degrees_of_freedom(self) -> int:
        """Number k of actuation parameters."""

    def forward(self, actuation: Array) -> Any:
        """Evaluate (n, k) Pa; the result has `points` (n, P, 3) mm and is given back to the other two methods."""

    def jacobian(self, state: Any) -> Array:
        """Derivative of the points, (n, P, 3, k) mm/Pa."""

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """Eq. 16 for residuals p* - (R c* + t) of (P, 3) mm: (k,) mm^2/Pa."""


@dataclass(frozen=True)
class IkOptions:
    """What to solve and when to stop.

    Attributes:
        pressure_min: (k,) Pa.
        pressure_max: (k,) Pa.
        initial_pressures: (k,) Pa, or None for the middle of the range.
        fix_pose: True: the target stays where it is (R = I, t = 0); False: its pose is solved for.
        initial_pose: Where the target starts if its pose is solved for.
        tolerance_mm: Stop when the mean error is no larger.
        relative_decrease: The paper's lambda: stop when D falls by less than this part of itself.
        max_iterations: The paper's i_max.
        max_seconds: Wall-clock limit.
    """

    pressure_min: Array
    pressure_max: Array
    initial_pressures: Array | None = None
    fix_pose: bool = True
    initial_pose: RigidTransform = field(default_factory=RigidTransform)
    tolerance_mm: float = 0.0
    relative_decrease: float = 1e-4
    max_iterations: int = 100
    max_seconds: float = 10.0


@dataclass(frozen=True)
class IkIteration:
    """The best found after an iteration.

    Attributes:
        iteration: Counts from 0, the start.
        pressures: (k,) Pa.
        mean_error_mm: Mean distance of covered points to the posed target.
        max_error_mm: Largest of them.
        objective: D of Eq. 15, mm^2.
        seconds: Since the start.
    """

    iteration: int
    pressures: Array
    mean_error_mm: float
    max_error_mm: float
    objective: float
    seconds: float


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


@dataclass(frozen=True)
class Evaluation:
    """The objective at one actuation and pose.

    Attributes:
        actuation: (k,) Pa.
        pose: Applied to the target.
        state: The pipeline's, for derivatives.
        points: (P, 3) mm.
        matches: Their closest points on the posed target.
        covered: (P,) points that count.
        merit: D of Eq. 15 a covered point, mm^2, which stays comparable when the number of covered points changes.
    """

    actuation: Array
    pose: RigidTransform
    state: Any
    points: Array
    matches: Matches
    covered: NDArray[np.bool_]
    merit: float

    @property
    def residuals(self) -> Array:
        """p* - (R c* + t), zero where not covered, (P, 3) mm."""
        return np.where(self.covered[:, None], self.points - self.matches.points, 0.0)

    @property
    def mean_error_mm(self) -> float:
        """Mean distance of covered points."""
        return float(self.matches.distances[self.covered].mean()) if self.covered.any() else float("inf")

    @property
    def max_error_mm(self) -> float:
        """Largest distance of covered points."""
        return float(self.matches.distances[self.covered].max(initial=0.0))

    @property
    def objective(self) -> float:
        """D of Eq. 15, mm^2."""
        return self.merit * int(self.covered.sum())


class Problem:
    """Eq. 15 for one pipeline and target, with counters.

    Args:
        pipeline: Forward kinematics.
        target: Closest points on the target.
        options: Bounds and pose.
    """

    def __init__(self, pipeline: ForwardModel, target: ClosestPoints, options: IkOptions) -> None:
        """Nothing is evaluated yet."""
        self.pipeline, self.target, self.options = pipeline, target, options
        self.range = options.pressure_max - options.pressure_min
        self.size = float(np.linalg.norm(np.ptp(pipeline.forward(options.pressure_min[None]).points[0], axis=0)))
        self.ignore_uncovered = False
        self.forward_evaluations = self.jacobian_evaluations = self.queries = 0

    def evaluate(self, actuation: Array, pose: RigidTransform) -> Evaluation:
        """Eq. 15 at an actuation (k,) Pa and a pose."""
        self.forward_evaluations += 1
        state = self.pipeline.forward(actuation[None])
        return self.match(actuation, pose, state, state.points[0])

    def match(self, actuation: Array, pose: RigidTransform, state: Any, points: Array) -> Evaluation:
        """Eq. 15 for points that are already computed."""
        self.queries += 1
        matches = posed_query(self.target, pose, points)
        covered = np.ones(len(points), dtype=bool)
        if self.ignore_uncovered:
            covered = ~self.uncovered(points, matches)
            if covered.sum() < max(4, _MIN_COVERED * len(points)):
                return Evaluation(actuation, pose, state, points, matches, covered, np.inf)
        distances = matches.distances[covered]
        return Evaluation(
            actuation, pose, state, points, matches, covered, float(distances @ distances) / len(distances)
        )

    def uncovered(self, points: Array, matches: Matches) -> NDArray[np.bool_]:
        """Points without a counterpart on the target, see `UNCOVERED_PART`, (P,)."""
        offset = points - matches.points
        normal_part = np.einsum("px,px->p", offset, matches.normals)
        sideways = np.sqrt(np.maximum(matches.distances**2 - normal_part**2, 0.0))
        return np.asarray(matches.on_border & (sideways > UNCOVERED_PART * self.size))

    def jacobian(self, evaluation: Evaluation) -> Array:
        """dp*/da, (P, 3, k) mm/Pa."""
        self.jacobian_evaluations += 1
        return self.pipeline.jacobian(evaluation.state)[0]

    def gradient(self, evaluation: Evaluation) -> Array:
        """dD/da of Eq. 16 a covered point, (k,) mm^2/Pa."""
        self.jacobian_evaluations += 1
        gradient = self.pipeline.objective_gradient(evaluation.state, evaluation.residuals)
        return gradient / max(1, int(evaluation.covered.sum()))

    def clip(self, actuation: Array) -> Array:
        """The nearest actuation within the bounds."""
        return np.clip(actuation, self.options.pressure_min, self.options.pressure_max)


class Monitor:
    """Watches limits and the caller's wish to stop, and keeps the history."""

    def __init__(
        self,
        options: IkOptions,
        on_iteration: Callable[[IkIteration], None] | None,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        """The clock starts now."""
        self._options, self._on_iteration, self._should_stop = options, on_iteration, should_stop
        self._start = time.perf_counter()
        self.history: list[IkIteration] = []

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._start

    def interrupted(self) -> Termination | None:
        """Whether to stop at once; asked before every evaluation."""
        if self._should_stop is not None and self._should_stop():
            return Termination.CANCELLED
        return Termination.TIME_LIMIT if self.seconds >= self._options.max_seconds else None

    def iterated(self, best: Evaluation) -> Termination | None:
        """Note an iteration; returns a reason to stop, if there is one."""
        iteration = IkIteration(
            len(self.history), best.actuation, best.mean_error_mm, best.max_error_mm, best.objective, self.seconds
        )
        self.history.append(iteration)
        if self._on_iteration is not None:
            self._on_iteration(iteration)
        if iteration.mean_error_mm <= self._options.tolerance_mm:
            return Termination.TOLERANCE_REACHED
        if best.merit <= _EXACT_MM**2:
            return Termination.CONVERGED
        stop = self.interrupted()
        if stop is None and iteration.iteration >= self._options.max_iterations:
            stop = Termination.MAX_ITERATIONS
        return stop


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
    from softform_core.kinematics.gradient_descent import gradient_descent
    from softform_core.kinematics.levenberg_marquardt import levenberg_marquardt

    methods = {"levenberg_marquardt": levenberg_marquardt, "gradient_descent": gradient_descent}
    if method not in methods:
        raise SoftformError(f"There is no IK method '{method}'.", f"Use one of {', '.join(methods)}.")
    start_pressures = _checked_start(options, pipeline.degrees_of_freedom)
    started = time.perf_counter()
    search = closest_points_on(target)
    prepare_seconds = time.perf_counter() - started

    problem = Problem(pipeline, search, options)
    monitor = Monitor(options, on_iteration, should_stop)
    best = _start(problem, start_pressures)
    stop = monitor.iterated(best)
    if stop is None:
        best, stop = methods[method](problem, monitor, best)
        if stop.finished and problem.uncovered(best.points, best.matches).any():
            problem.ignore_uncovered = True
            covered_only = problem.match(best.actuation, best.pose, best.state, best.points)
            if np.isfinite(covered_only.merit):
                best = covered_only
                stop = monitor.iterated(best) or Termination.CONVERGED
                if stop is Termination.CONVERGED:
                    best, stop = methods[method](problem, monitor, best)
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
