"""Races of inverse kinematics: ours and opponents on one target, timed in the columns of Table III (paper 000).

All have the same surface points, target, start and closest points. An opponent runs twice: until the paper's rule
(lambda) ends it, which may be far from the minimum (`same_rule`), and until its mean error is ours, but for 1 %, or it
can get no better (`equal_error`). Times are of the processor, one thread: other work on the machine adds little.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.inverse.closest_points import ClosestPoints, Matches, closest_points_on
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.ik_result import IkResult
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_studies.ik.ik_solver import from_rest

LIMIT_S = 60.0
"""Time limit of one solve."""

REPEATS = 5
"""Number of runs of our solve; the one of median time counts."""

RULES = ("same_rule", "equal_error")

_PATIENCE = 1e-7
_EQUAL = 1.01


class Racer(NamedTuple):
    """A way of solving, and its model."""

    solve: Callable[[ForwardModel, ClosestPoints, IkOptions], IkResult]
    model: ForwardModel


@dataclass(frozen=True)
class Timing:
    """Times of a solve: processor time, ms, means over all its iterations, those at few points too.

    Attributes:
        forward_ms: Predictions.
        gradient_ms: Derivatives.
        closest_ms: Searches for closest points, those of ICP among them.
        rest_ms: Everything else: the steps, and the fit of a pose to its pairs.
        total_ms: Their sum.
        iterations: Number of iterations.
        solve_ms: Whole solve, the target's preparation included.
        mean_error_mm: Mean error at the solution.
        max_error_mm: Largest error at the solution.
        objective_mm2: Objective there, mm^2.
        covered: Share of the surface points that have a counterpart on the target.
        termination: Reason why it ended.
    """

    forward_ms: float
    gradient_ms: float
    closest_ms: float
    rest_ms: float
    total_ms: float
    iterations: int
    solve_ms: float
    mean_error_mm: float
    max_error_mm: float
    objective_mm2: float
    covered: float
    termination: str

    @property
    def reached(self) -> bool:
        """Whether it came to the error that it was to reach."""
        return self.termination == Termination.TOLERANCE_REACHED.name.lower()


@dataclass(frozen=True)
class Race:
    """Results on one target: ours, and the opponents' by name and rule."""

    ours: Timing
    opponents: dict[str, dict[str, Timing]]
    found: IkResult

    def ratio(self, opponent: str, rule: str) -> float:
        """Return how many times as long as ours an opponent's solve took."""
        return self.opponents[opponent][rule].solve_ms / self.ours.solve_ms

    def figures(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        figures: dict[str, Any] = {"ours": asdict(self.ours)}
        for name, timings in self.opponents.items():
            figures[name] = {
                rule: asdict(timing) | {"time_ratio": self.ratio(name, rule)} for rule, timing in timings.items()
            }
            figures[name]["reached_equal_error"] = timings["equal_error"].reached
        return figures


def race_options(robot: Robot, fix_pose: bool) -> IkOptions:
    """Return options of all solves: from rest, ended by the paper's rule."""
    return replace(from_rest(robot), fix_pose=fix_pose, max_iterations=5000, max_seconds=LIMIT_S)


def race(
    ours: Racer, opponents: Mapping[str, Racer], target: Shape, options: IkOptions, repeats: int = REPEATS
) -> Race:
    """Run ours so many times, then every opponent by both rules."""
    best, found = _timed(ours, target, options, repeats)
    patient = replace(options, relative_decrease=_PATIENCE, tolerance_mm=_EQUAL * best.mean_error_mm)
    limits = dict(zip(RULES, (options, patient), strict=True))
    return Race(
        best,
        {
            name: {rule: _timed(racer, target, until, 1)[0] for rule, until in limits.items()}
            for name, racer in opponents.items()
        },
        found,
    )


def _timed(racer: Racer, target: Shape, options: IkOptions, repeats: int) -> tuple[Timing, IkResult]:
    """Return the run of median time, after a short one that warms the caches up."""
    racer.solve(racer.model, closest_points_on(target), replace(options, max_iterations=2))
    runs = []
    for _ in range(repeats):
        stopwatch, begun = _Stopwatch(), time.process_time()
        search = _TimedSearch(closest_points_on(target), stopwatch)
        prepared = time.process_time()
        result = racer.solve(_TimedModel(racer.model, stopwatch), search, options)
        ended = time.process_time()
        runs.append((ended - begun, ended - prepared, stopwatch, result))
    whole, solving, stopwatch, result = sorted(runs, key=lambda run: run[0])[repeats // 2]
    coarse = result.coarse_iterations
    iterations = max(1, result.iterations - bool(coarse) + coarse)
    parts = np.array([stopwatch.forward, stopwatch.gradient, stopwatch.closest, 0.0])
    parts[3] = solving - parts.sum()
    parts_ms = 1e3 * parts / iterations
    timing = Timing(
        forward_ms=float(parts_ms[0]),
        gradient_ms=float(parts_ms[1]),
        closest_ms=float(parts_ms[2]),
        rest_ms=float(parts_ms[3]),
        total_ms=float(parts_ms.sum()),
        iterations=iterations,
        solve_ms=1e3 * whole,
        mean_error_mm=result.mean_error_mm,
        max_error_mm=result.max_error_mm,
        objective_mm2=result.objective,
        covered=float(result.covered.mean()),
        termination=result.termination.name.lower(),
    )
    return timing, result


@dataclass
class _Stopwatch:
    """Processor seconds spent in predictions, in their derivatives, and in searches for closest points."""

    forward: float = 0.0
    gradient: float = 0.0
    closest: float = 0.0

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Add the time of a block to one of the attributes."""
        begun = time.process_time()
        yield
        setattr(self, what, getattr(self, what) + time.process_time() - begun)


class _TimedModel(ForwardModel):
    """A model whose predictions and derivatives are timed."""

    def __init__(self, model: ForwardModel, stopwatch: _Stopwatch) -> None:
        self._model, self._stopwatch = model, stopwatch

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the k inputs."""
        return self._model.inputs

    @property
    def coarse(self) -> "_TimedModel":
        """The same shape at few points, timed with it."""
        return _TimedModel(self._model.coarse, self._stopwatch)

    def at(self, uv: Array) -> "_TimedModel":
        """Return the same shape at other surface parameters, timed with it."""
        return _TimedModel(self._model.at(uv), self._stopwatch)

    def forward(self, actuation: Array) -> Any:
        """Run and time the model's `forward`."""
        with self._stopwatch.running("forward"):
            return self._model.forward(actuation)

    def jacobian(self, state: Any) -> Array:
        """Run and time the model's `jacobian`."""
        with self._stopwatch.running("gradient"):
            return self._model.jacobian(state)

    def jacobian_along(self, state: Any, directions: Array) -> Array:
        """Run and time the model's `jacobian_along`."""
        with self._stopwatch.running("gradient"):
            return self._model.jacobian_along(state, directions)

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """Run and time the model's `objective_gradient`."""
        with self._stopwatch.running("gradient"):
            return self._model.objective_gradient(state, residuals)


class _TimedSearch:
    """A target whose searches are timed."""

    def __init__(self, search: ClosestPoints, stopwatch: _Stopwatch) -> None:
        self._search, self._stopwatch = search, stopwatch

    @property
    def vertices(self) -> Array:
        """Points that span the target, (N, 3) mm."""
        return self._search.vertices

    @property
    def faces(self) -> NDArray[np.integer] | None:
        """Faces of the search."""
        return self._search.faces

    def query(self, points: Array) -> Matches:
        """Run and time the search's `query`."""
        with self._stopwatch.running("closest"):
            return self._search.query(points)
