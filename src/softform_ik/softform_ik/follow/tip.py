"""Paths of a robot with a tip: the algorithm of paper 001, Sec. II, from a start that keeps to the whole path."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from softform_client.driver_watch import DriverWatch
from softform_client.follow_messages import FollowGoal, PointPath, ShapePath
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.one_point import ServedTip
from softform_core.halton import halton_actuations
from softform_core.inverse.follow_path import follow_path, start_near
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.follow.solver import PathSolver, SolvedWaypoint


class TipPathSolver(PathSolver):
    """Leads the tip of a robot along points by N_fk, N_J and, if there is one, N_s2r.

    Points of its line or skin are led as those of a surface are.

    Between waypoints it moves straight in its actuations: where a pair of chambers changes sides, one is empty before
    the other is filled.
    """

    def __init__(
        self, robot: Robot, model: ServedTip, driver: DriverWatch, of_points: PathSolver | None = None
    ) -> None:
        super().__init__(robot)
        self._model, self._driver, self._of_points = model, driver, of_points

    def _solve(
        self, goal: FollowGoal, path: PointPath | ShapePath, here: Array | None, should_stop: Callable[[], bool]
    ) -> Iterator[SolvedWaypoint]:
        assert isinstance(path, PointPath)  # shapes are rejected with the goal
        if goal.model:
            raise SoftformError("The model of a tip is settled when its node starts.", "Launch it with model:=KIND.")
        if path.output not in ("", *self.robot.frames) and self._of_points is not None:
            yield from self._of_points.solve(goal, here, should_stop)
            return
        model = self._model.without_sim_to_real if goal.without_sim_to_real else self._model
        points = path.points[:, : model.dimensions] * MM_PER_M
        commands = self._driver.commands(model.memory, here)
        found = self._effective(goal, points, None if here is None else commands.effective, model, should_stop)
        for number, solved in enumerate(found):
            seconds = self._seconds(goal, number, commands.effective, solved.actuation)
            yield replace(solved, actuation=commands.command(solved.actuation, seconds))

    def _effective(
        self, goal: FollowGoal, points: Array, here: Array | None, model: ServedTip, should_stop: Callable[[], bool]
    ) -> Iterator[SolvedWaypoint]:
        """Solve for the actuations (m,) that are to be in effect, from the one that is now, if it is known."""
        begun: list[SolvedWaypoint] = []
        last: Array | None = None  # where all starts miss the first point, the first of them is where the robot is
        for start in self._starts(goal, here, model, points[0]):
            followed = _followed(model, points, start, should_stop)
            if last is None or len(followed) > len(begun):
                begun, last = followed, start
            if len(begun) == len(points) or should_stop():
                break
        yield from begun
        assert last is not None
        last = begun[-1].actuation if begun else last
        for point in points[len(begun) :]:
            if should_stop():
                return
            missed = _solved(model, point, last)
            last = missed.actuation
            yield missed

    def uses_sim_to_real(self, goal: FollowGoal) -> bool:
        """See `PathSolver.uses_sim_to_real`."""
        return self._model.sim_to_real is not None and not goal.without_sim_to_real

    def _starts(self, goal: FollowGoal, here: Array | None, model: ServedTip, point: Array) -> Iterator[Array]:
        """Yield actuations to begin at: where the robot is, or as near the first point as a guess goes, or anywhere.

        Which solution of a redundant robot is found depends on the start, and not every one can be kept to along the
        whole path (paper 001, Sec. IV-C2).
        """
        given = here if goal.seed is None else self.robot.actuation_of(goal.seed)
        if given is not None:
            yield given
        yield start_near(model, point)
        yield from halton_actuations(self.robot.actuation_min, self.robot.actuation_max, _OTHER_STARTS, seed=0)


def _followed(model: ServedTip, points: Array, start: Array, should_stop: Callable[[], bool]) -> list[SolvedWaypoint]:
    """Return waypoints from the first on, until one is missed."""
    followed: list[SolvedWaypoint] = []
    for point in points:
        solved = _solved(model, point, start)
        if solved.error_mm > _MISSED * model.workspace_width_mm or should_stop():
            break
        followed.append(solved)
        start = solved.actuation
    return followed


def _solved(model: ServedTip, point: Array, start: Array) -> SolvedWaypoint:
    path = follow_path(model, point[None], start)
    return SolvedWaypoint(path.actuations[0], float(path.errors_mm[0]), point - model.tip(path.actuations[0]))


_MISSED = 1e-3
"""Distance over the workspace's width within which the paper counts a waypoint as reached (Fig. 1)."""

_OTHER_STARTS = 10
"""Further starts that are tried while none keeps to the whole path."""
