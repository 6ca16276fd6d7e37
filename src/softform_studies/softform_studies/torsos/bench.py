"""Inverse kinematics of the mannequin to torsos, pose free, from rest: ours and Algorithm 2, as in Table III.

Both have the same networks, surface points, targets, start, λ and closest points; Algorithm 2 runs once more until it
has ours' error, or can get no better. Times are of the processor, one thread: other work on the machine adds little.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import SURFACE_POINTS, load_pipeline
from softform_core.inverse.closest_points import ClosestPoints, Matches
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.inverse import search_of, solve_prepared
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.threads import one_thread
from softform_core.units import MM_PER_M
from softform_studies.ik.autograd_pipeline import AutogradPipeline
from softform_studies.ik.gradient_descent import descend
from softform_studies.ik.ik_prediction import SHIPPED, shipped_pipeline
from softform_studies.ik.ik_solver import best_error_mm, from_rest
from softform_studies.torsos.targets import TorsoTarget


@dataclass
class Stopwatch:
    """Processor seconds spent since it was made.

    Attributes:
        forward: Time in predictions.
        gradient: Time in their derivatives.
        closest: Time in searches for closest points.
    """

    forward: float = 0.0
    gradient: float = 0.0
    closest: float = 0.0

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Add the time of a block to one of the attributes."""
        begun = time.process_time()
        yield
        setattr(self, what, getattr(self, what) + time.process_time() - begun)


class TimedModel(ForwardModel):
    """A model whose predictions and derivatives are timed."""

    def __init__(self, model: ForwardModel, stopwatch: Stopwatch) -> None:
        self._model, self._stopwatch = model, stopwatch

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the k inputs."""
        return self._model.inputs

    @property
    def coarse(self) -> "TimedModel":
        """The same shape at few points, timed with it."""
        return TimedModel(self._model.coarse, self._stopwatch)

    def at(self, uv: Array) -> "TimedModel":
        """The same shape at other surface parameters, timed with it."""
        return TimedModel(self._model.at(uv), self._stopwatch)

    def forward(self, actuation: Array) -> Any:
        """As the model."""
        with self._stopwatch.running("forward"):
            return self._model.forward(actuation)

    def jacobian(self, state: Any) -> Array:
        """As the model."""
        with self._stopwatch.running("gradient"):
            return self._model.jacobian(state)

    def jacobian_along(self, state: Any, directions: Array) -> Array:
        """As the model."""
        with self._stopwatch.running("gradient"):
            return self._model.jacobian_along(state, directions)

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """As the model."""
        with self._stopwatch.running("gradient"):
            return self._model.objective_gradient(state, residuals)


class TimedSearch:
    """A target whose searches are timed."""

    def __init__(self, search: ClosestPoints, stopwatch: Stopwatch) -> None:
        self._search, self._stopwatch = search, stopwatch

    @property
    def vertices(self) -> Array:
        """Points that span the target, (N, 3) mm."""
        return self._search.vertices

    @property
    def faces(self) -> NDArray[np.integer] | None:
        """As of the search."""
        return self._search.faces

    def query(self, points: Array) -> Matches:
        """As the search."""
        with self._stopwatch.running("closest"):
            return self._search.query(points)


LIMIT_S = 60.0
"""Time limit of one solve."""

_REPEATS = 5
_PATIENCE = 1e-7
_EQUAL = 1.01

Solve = Callable[[ForwardModel, ClosestPoints, IkOptions], IkResult]


@dataclass(frozen=True)
class Timing:
    """A solve in the columns of Table III: processor time, ms, means over all its iterations, those at few points too.

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
        covered: Share of the surface points that have a counterpart on the target.
        termination: Why it ended.
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
    covered: float
    termination: str


@dataclass(frozen=True)
class Case:
    """One torso.

    Attributes:
        target: The torso.
        rest_error_mm: Mean error of the resting robot, with the pose that fits it best.
        ours: Our solve.
        algorithm_2: Ended by the paper's rule.
        algorithm_2_equal: Carried on to ours' error, but for 1 %.
        best_error_mm: Least mean error known.
        found: Our result.
    """

    target: TorsoTarget
    rest_error_mm: float
    ours: Timing
    algorithm_2: Timing
    algorithm_2_equal: Timing
    best_error_mm: float
    found: IkResult

    def figures(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "of_the_mannequins_size": self.target.fits,
            "stature_m": self.target.stature,
            "girths_life_size_mm": [round(2.0 * MM_PER_M * one) for one in self.target.girths],
            "rest_mean_error_mm": self.rest_error_mm,
            "best_mean_error_mm": self.best_error_mm,
            "ours": asdict(self.ours),
            "algorithm_2": asdict(self.algorithm_2),
            "algorithm_2_equal_error": asdict(self.algorithm_2_equal),
            "reached_equal_error": self.algorithm_2_equal.termination == Termination.TOLERANCE_REACHED.name.lower(),
        }


def torso_pipeline(robot: Robot, points: int = SURFACE_POINTS) -> ForwardPipeline:
    """With the shipped sim-to-real model of the virtual rig, if the robot has one."""
    if (models_of(robot.name) / SHIPPED).is_dir():
        return shipped_pipeline(robot, points)
    return load_pipeline(robot, points)


def compare(
    robot: Robot,
    pipeline: ForwardPipeline,
    targets: Sequence[TorsoTarget],
    report: Callable[[str], None],
    starts: int,
    repeats: int = _REPEATS,
) -> list[Case]:
    """Solve for each target.

    Args:
        robot: The mannequin.
        pipeline: Its forward kinematics.
        targets: Torsos.
        report: Called with a line for each target.
        starts: Number of starts of the search for the least error.
        repeats: Runs of our solve; that of median time counts.
    """
    network, _ = load_forward_kinematics(robot)
    autograd = AutogradPipeline(extract_mlp(network), pipeline.uv, pipeline.sim_to_real, robot.patches)
    options = replace(from_rest(robot), fix_pose=False, max_iterations=5000, max_seconds=LIMIT_S)
    cases = []
    with one_thread():
        for target in targets:
            cases.append(_case(robot, pipeline, autograd, target, options, starts, repeats))
            report(f"{target.name}: {cases[-1].rest_error_mm:.2f} -> {cases[-1].ours.mean_error_mm:.2f} mm")
    return cases


def deformation_mm(robot: Robot, pipeline: ForwardPipeline) -> float:
    """Largest mean distance between two of its shapes: what errors are to be seen beside."""
    return largest_deformation(pipeline.points, robot.actuation_min, robot.actuation_max)


def _case(
    robot: Robot,
    pipeline: ForwardPipeline,
    autograd: AutogradPipeline,
    target: TorsoTarget,
    options: IkOptions,
    starts: int,
    repeats: int,
) -> Case:
    search = search_of(target.shape)
    rest = options.start()
    resting = solve_prepared(pipeline, search, replace(options, actuation_min=rest, actuation_max=rest))
    ours, found = _timed(solve_prepared, pipeline, target, options, repeats)
    until = replace(options, relative_decrease=_PATIENCE, tolerance_mm=_EQUAL * ours.mean_error_mm)
    printed, equal = (_timed(descend, autograd, target, one, 1)[0] for one in (options, until))
    again = replace(options, initial_pose=found.pose)
    best = best_error_mm(robot, pipeline, found.actuation, search, again, starts)
    best = min(best, *(one.mean_error_mm for one in (ours, printed, equal)))
    return Case(target, resting.mean_error_mm, ours, printed, equal, best, found)


def _timed(
    solve: Solve, model: ForwardModel, target: TorsoTarget, options: IkOptions, repeats: int
) -> tuple[Timing, IkResult]:
    """The run of median time, after a short one that warms the caches up."""
    solve(model, search_of(target.shape), replace(options, max_iterations=2))
    runs = []
    for _ in range(repeats):
        stopwatch, begun = Stopwatch(), time.process_time()
        search = TimedSearch(search_of(target.shape), stopwatch)
        prepared = time.process_time()
        result = solve(TimedModel(model, stopwatch), search, options)
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
        covered=float(result.covered.mean()),
        termination=result.termination.name.lower(),
    )
    return timing, result
