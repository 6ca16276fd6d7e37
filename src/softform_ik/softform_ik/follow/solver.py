"""Interface between following and the solver of a robot's paths."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from softform_client.follow_messages import ActuatorPath, FollowGoal, PointPath, ShapePath
from softform_core.arrays import Array
from softform_core.inverse.timing import slew_durations
from softform_core.robots import Robot


@dataclass(frozen=True)
class SolvedWaypoint:
    """Solution of one waypoint.

    Attributes:
        actuation: (d,).
        error_mm: Predicted distance there: of the point, or the mean of the shape; NaN for given actuator values.
        miss_mm: (d,) mean vector from what is predicted to the waypoint.
        cut_short: Whether the solver's time was up.
    """

    actuation: Array
    error_mm: float
    miss_mm: Array = field(default_factory=lambda: np.zeros(3))
    cut_short: bool = False


class PathSolver(ABC):
    """Solves the paths of one robot.

    An actuation has d values: k if actuator values are given, else one for each of the m degrees of freedom.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    def solve(self, goal: FollowGoal, here: Array | None, should_stop: Callable[[], bool]) -> Iterator[SolvedWaypoint]:
        """Solve the waypoints, one after the other; actuator values are what they are.

        Args:
            goal: Goal that holds the path.
            here: (k,) of the actuators now, or None if they are not known.
            should_stop: Ends the waypoint under way early; it is then not to be used.

        Raises:
            SoftformError: If one cannot be solved for.
        """
        if isinstance(goal.path, ActuatorPath):
            return (SolvedWaypoint(values, float("nan")) for values in goal.path.values)
        return self._solve(goal, goal.path, here, should_stop)

    @abstractmethod
    def _solve(
        self, goal: FollowGoal, path: PointPath | ShapePath, here: Array | None, should_stop: Callable[[], bool]
    ) -> Iterator[SolvedWaypoint]:
        """Solve along the path of the goal, like `solve`."""

    @abstractmethod
    def uses_sim_to_real(self, goal: FollowGoal) -> bool:
        """Return whether the plan of a goal sees the learned reality."""

    def start(self, goal: FollowGoal, here: Array) -> Array:
        """Return the actuation (d,) from which the path begins, when the actuators are at (k,)."""
        if isinstance(goal.path, ActuatorPath):
            return np.clip(here, self.robot.actuator_min, self.robot.actuator_max)
        return self.robot.nearest_actuation(here)

    def values(self, goal: FollowGoal, actuations: Array) -> Array:
        """Return actuator values (..., k) under actuations (..., d) of a goal."""
        return actuations if isinstance(goal.path, ActuatorPath) else self.robot.actuators_of(actuations)

    def slew_rate(self, goal: FollowGoal) -> Array:
        """Return the fastest change of each of the d values, per second."""
        return self.robot.slew_rate if isinstance(goal.path, ActuatorPath) else self.robot.actuation_slew

    def _seconds(self, goal: FollowGoal, number: int, before: Array, wanted: Array) -> float:
        """Return the time, s, of the way to a waypoint: the goal's, else that of slewing from one (m,) to another."""
        if goal.times is not None:
            return float(np.diff(goal.times, prepend=0.0)[number])
        return float(slew_durations(before, wanted[None], self.robot.actuation_slew)[0])
