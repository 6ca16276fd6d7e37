"""Inverse kinematics as a problem: Eq. 15 with its bounds, limits and reasons to stop, for any method that solves it.

Millimetres and Pa.
"""

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softform_core.kinematics.closest_points import ClosestPoints, Matches
from softform_core.kinematics.icp import posed_query
from softform_core.registration.rigid import RigidTransform

Array = NDArray[np.float64]

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
