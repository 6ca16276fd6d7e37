"""Paths of a robot with a tip: the algorithm of paper 001, Sec. II, one way-point at a time."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import TipRobot
from softform_core.rods.follow_path import follow_path, start_near
from softform_core.rods.tip_model import TipModel
from softform_core.units import MM_PER_M
from softform_ik.follow_goal import FollowGoal, PointPath, PressurePath
from softform_ik.follow_solver import SolvedWaypoint, given_pressures

Array = NDArray[np.float64]


class TipPathSolver:
    """Leads the tip of a robot along points.

    Between way-points it moves straight in its actuations: where a pair of chambers changes sides, one is empty before
    the other is filled.

    Args:
        robot: The robot.
        model: N_fk, N_J and, if there is one, N_s2r.
    """

    def __init__(self, robot: TipRobot, model: TipModel) -> None:
        """Nothing is solved yet."""
        self._robot, self._model = robot, model

    def solve(self, goal: FollowGoal, here: Array | None, should_stop: Callable[[], bool]) -> Iterator[SolvedWaypoint]:
        """As `PathSolver.solve`."""
        if isinstance(goal.path, PressurePath):
            yield from given_pressures(goal.path)
            return
        assert isinstance(goal.path, PointPath)  # shapes are refused with the goal
        model = self._model.without_sim_to_real if goal.without_sim_to_real else self._model
        points = goal.path.points[:, : model.dimensions] * MM_PER_M
        actuation = self._first_guess(goal, here, model, points[0])
        for point in points:
            solved = follow_path(model, point[None], actuation)
            actuation = solved.actuations[0]
            yield SolvedWaypoint(actuation, float(solved.errors_mm[0]))

    def start(self, goal: FollowGoal, here: Array) -> Array:
        """As `PathSolver.start`."""
        if isinstance(goal.path, PressurePath):
            return np.clip(here, self._robot.pressure_min, self._robot.pressure_max)
        return np.clip(self._robot.actuation_of(here), self._robot.actuation_min, self._robot.actuation_max)

    def pressures(self, goal: FollowGoal, actuations: Array) -> Array:
        """As `PathSolver.pressures`."""
        return actuations if isinstance(goal.path, PressurePath) else self._robot.chamber_pressures(actuations)

    def uses_sim_to_real(self, goal: FollowGoal) -> bool:
        """As `PathSolver.uses_sim_to_real`."""
        return self._model.sim_to_real is not None and not goal.without_sim_to_real

    def _first_guess(self, goal: FollowGoal, here: Array | None, model: TipModel, point: Array) -> Array:
        """Where to begin: at the seed or where the robot is, unless the first point is reached from elsewhere only."""
        given = goal.seed_pressures if goal.seed_pressures is not None else here
        elsewhere = start_near(model, point)
        if given is None:
            return elsewhere
        guess = self._robot.actuation_of(given)
        errors = [follow_path(model, point[None], one).errors_mm[0] for one in (guess, elsewhere)]
        return guess if errors[0] <= errors[1] + _AS_NEAR * model.workspace_width_mm else elsewhere


_AS_NEAR = 1e-3
"""Of the workspace's width: the paper counts a way-point as reached that near (Fig. 1)."""
