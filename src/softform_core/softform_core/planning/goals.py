"""Actuations at which the robot takes a target shape, or a point of it a place: one of them may lie in an obstacle."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel, SurfaceModel
from softform_core.forward.one_point import MeanPoint
from softform_core.halton import halton_actuations
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.inverse import solve_prepared
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape

WORSE_BY = 0.1
"""Share of the best mean error by which a solution may be worse, plus `WORSE_BY_MM`."""

WORSE_BY_MM = 0.05
"""Mean error by which a solution may be worse than the best, mm, plus `WORSE_BY` of it."""

_LEAST_SECONDS = 0.05
"""Least time for the first solve, however little is left, s."""

SAME_PART = 0.02
"""Difference below which two solutions are one, as a share of the range."""


@dataclass(frozen=True)
class PointGoal:
    """A named point of the robot's surface, such as the tip of an arm, and where it shall be, (3,) m."""

    point: str
    place: Array


@dataclass(frozen=True)
class GoalSolution:
    """An actuation that brings the surface, or a point of it, to the target.

    Attributes:
        actuation: (k,).
        mean_error_mm: Mean distance to the target, mm; NaN without a target.
        max_error_mm: Largest distance to the target, mm.
        miss_mm: (3,) mean vector from the surface to the target.
        cut_short: Whether the solver's time was up.
    """

    actuation: Array
    mean_error_mm: float = float("nan")
    max_error_mm: float = float("nan")
    miss_mm: Array = field(default_factory=lambda: np.zeros(3))
    cut_short: bool = False


def goal_solutions(
    pipeline: SurfaceModel,
    robot: Robot,
    target: Shape | PointGoal,
    near: Array,
    starts: int,
    max_seconds: float,
    together_seconds: float,
    should_stop: Callable[[], bool],
) -> list[GoalSolution]:
    """Return solutions of Eq. 15 for a target that stays where it is, the best first.

    Args:
        pipeline: Forward kinematics.
        robot: Robot whose range bounds the solve.
        target: A shape, m, or a place of a named point.
        near: (k,), the first start.
        starts: Solves; from `near`, then from a Halton sequence over the range.
        max_seconds: Time limit of each solve, s.
        together_seconds: Time limit of all solves, s; the first has at least `_LEAST_SECONDS`.
        should_stop: Ends the search with what there is.

    Raises:
        SoftformError: On a bad target, or if no point has the name.
    """
    options = IkOptions(robot.actuation_min, robot.actuation_max, tolerance_mm=0.01, max_seconds=max_seconds)
    others = halton_actuations(robot.actuation_min, robot.actuation_max, max(1, starts - 1), seed=0)[: starts - 1]
    led: ForwardModel
    if isinstance(target, PointGoal):
        led, search = MeanPoint(pipeline.at(robot.point_parameters(target.point))), None
        features = FeatureTerm.of(led, FeaturePoints.of(np.zeros((1, 2)), target.place[None]))
    else:
        led, search, features = pipeline, closest_points_on(target), None
    deadline = time.monotonic() + together_seconds
    found: list[GoalSolution] = []
    for start in [near, *others]:
        if should_stop() or (found and time.monotonic() > deadline):
            break
        left = max(_LEAST_SECONDS, min(max_seconds, deadline - time.monotonic()))
        tried = replace(options, initial_actuation=start, max_seconds=left)
        result = solve_prepared(led, search, tried, should_stop=should_stop, features=features)
        cut_short = result.termination is Termination.TIME_LIMIT
        found.append(GoalSolution(result.actuation, result.mean_error_mm, result.max_error_mm, result.miss, cut_short))
    found.sort(key=lambda one: one.mean_error_mm)
    distinct: list[GoalSolution] = []
    span = robot.actuation_max - robot.actuation_min
    for one in found:
        good = one.mean_error_mm <= (1.0 + WORSE_BY) * found[0].mean_error_mm + WORSE_BY_MM
        apart = [(np.abs(one.actuation - other.actuation) / span).max() for other in distinct]
        if good and min(apart, default=np.inf) >= SAME_PART:
            distinct.append(one)
    return distinct
