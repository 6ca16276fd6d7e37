"""Plan a motion of the whole surface from an actuation to a target, clear of an obstacle (paper 000, Sec. V-E2)."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from softform_core.arrays import Array
from softform_core.inverse.out_of_reach import OutOfReachError, check_reach
from softform_core.inverse.timing import slew_durations
from softform_core.planning.clearance import ClearanceGauge
from softform_core.planning.goals import GoalSolution, goal_solutions
from softform_core.planning.motion_plan import (
    MotionPlan,
    MotionRequest,
    MotionSettings,
    NoMotionError,
    Progress,
    Rejection,
)
from softform_core.planning.obstacles import encloses, lies_within_body
from softform_core.planning.planner import find_path
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.planning.sweep import MotionChecker, StoppedError
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

_PART_FOR_GOALS = 0.5
"""Share of the time that is spent on solutions of the target."""

_LEAST_SECONDS = 0.1
"""Least time that is left for the path, s: enough to find a straight one."""

_SAMPLES = 17
_RESERVE = 0.9  # between the samples the surface may move a little faster


def plan_motion(
    surface: MarginedSurface,
    robot: Robot,
    request: MotionRequest,
    settings: MotionSettings | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> MotionPlan:
    """Plan a motion.

    A target in an obstacle is not replaced by one that is further away: of its solutions (`goal_solutions`) those that
    keep their margin are the goals, and if there is none the motion is rejected.

    Args:
        surface: The prediction to trust.
        robot: The robot.
        request: Request to plan for.
        settings: Settings of the planner; None for the defaults.
        should_stop: Asked between states.
        on_progress: Called with each stage and the number of states checked.

    Raises:
        NoMotionError: If there is no motion, with the reason.
        SoftformError: On a bad target or settings.
    """
    return _Planning(surface, robot, request, settings or MotionSettings(), should_stop, on_progress).run()


class _Planning:
    """One plan under way."""

    def __init__(
        self,
        surface: MarginedSurface,
        robot: Robot,
        request: MotionRequest,
        settings: MotionSettings,
        should_stop: Callable[[], bool],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._surface, self._robot, self._request, self._settings = surface, robot, request, settings
        self._should_stop, self._on_progress = should_stop, on_progress
        self._started = time.monotonic()
        self._stage = "goal"
        corners = surface.pipeline.points(np.stack([robot.actuation_min, robot.actuation_max])).reshape(-1, 3)
        region = np.stack([corners.min(axis=0), corners.max(axis=0)])
        self._gauge = ClearanceGauge(request.obstacle, region, surface.faces, request.clearance * MM_PER_M)
        ranges = robot.actuation_max - robot.actuation_min
        self._checker = MotionChecker(surface, self._gauge, ranges, self._is_stopped)

    def run(self) -> MotionPlan:
        self._tell("goal")
        planner = self._settings.planner
        try:
            self._check_start()
            goals = self._goals()
            left = planner.max_seconds - (time.monotonic() - self._started)
            search = find_path(
                self._request.start,
                [goal.actuation for goal in goals],
                (self._robot.actuation_min, self._robot.actuation_max),
                self._checker,
                replace(planner, max_seconds=max(_LEAST_SECONDS, left)),
                self._tell,
            )
        except StoppedError:
            raise NoMotionError(Rejection.STOPPED, "Planning was stopped.", "Send the goal again.") from None
        if search.path is None:
            raise NoMotionError(
                Rejection.NO_PATH,
                f"No path was found in {search.seconds:.1f} s: {planner.algorithm}, seed {planner.seed}, tried "
                f"{search.motions_checked} motions ({self._checker.states_checked} surfaces) towards {len(goals)} "
                f"solution{'s' if len(goals) > 1 else ''} of the goal. There may be none.",
                "Allow more max_time, or less clearance, or move the obstacle.",
            )
        return self._plan(search.path, goals)

    def _plan(self, path: Array, goals: list[GoalSolution]) -> MotionPlan:
        actuations, times = self._trajectory(path)
        distances, margins = self._clearances(actuations)
        ends = [np.abs(goal.actuation - path[-1]).max() for goal in goals]
        return MotionPlan(
            actuations,
            times,
            distances / MM_PER_M,
            margins / MM_PER_M,
            goals[int(np.argmin(ends))],
            path,
            self._checker.states_checked,
            time.monotonic() - self._started,
        )

    def _trajectory(self, path: Array) -> tuple[Array, Array]:
        """Return waypoints (n, k) of straight motions between corners, as fast as possible, and their times (n,) s.

        They are so dense that what happens between two of them can be neglected.
        """
        pieces = [path[:1]]
        for start, end in zip(path[:-1], path[1:], strict=True):
            places = np.linspace(0.0, 1.0, _SAMPLES)
            moved = self._surface.pipeline.points(start + places[:, None] * (end - start))
            ways = np.linalg.norm(np.diff(moved, axis=0), axis=2).max(axis=1)
            gone = np.concatenate([[0.0], np.cumsum(ways)])
            steps = max(1, int(np.ceil(gone[-1] / (_RESERVE * (self._settings.waypoint_spacing * MM_PER_M)))))
            even = np.interp(np.linspace(0.0, gone[-1], steps + 1)[1:], gone, places)
            pieces.append(start + even[:, None] * (end - start))
        actuations = np.concatenate(pieces)
        legs = slew_durations(actuations[0], actuations[1:], self._robot.actuation_slew)
        # A leg on which nothing moves: two waypoints at one place and one moment.
        moving = np.concatenate([[True], legs > 0.0])
        return actuations[moving], np.concatenate([[0.0], np.cumsum(legs)])[moving]

    def _check_start(self) -> None:
        start = self._request.start
        points, resting = self._surface.pipeline.points(np.stack([start, self._robot.actuation_min]))
        obstacle = self._request.obstacle
        if encloses(obstacle, points):
            raise NoMotionError(
                Rejection.OBSTACLE_ENCLOSES,
                "The obstacle contains the robot: its whole surface lies inside.",
                "Leave rooms and housings out, or send their walls as a cloud or an open mesh.",
            )
        if lies_within_body(obstacle, points, resting, self._surface.faces):
            raise NoMotionError(
                Rejection.START_IN_COLLISION,
                "A part of the obstacle lies under the robot's surface, inside its body.",
                "Check the obstacle's frame.",
            )
        if self._checker.spare(start[None])[0] < 0.0:
            raise NoMotionError(
                Rejection.START_IN_COLLISION,
                f"The robot does not keep clear where it is: {self._shortfall(start)}.",
                "Bring the robot closer to rest first, move the obstacle, or ask for less clearance.",
            )

    def _goals(self) -> list[GoalSolution]:
        """Return solutions of the goal that keep their margin, the best first."""
        goal, settings = self._request.goal, self._settings
        if not isinstance(goal, np.ndarray):
            found = goal_solutions(
                self._surface.pipeline,
                self._robot,
                goal,
                self._request.start,
                settings.goal_starts,
                settings.goal_seconds,
                _PART_FOR_GOALS * settings.planner.max_seconds,
                self._is_stopped,
            )
            if found:
                best = found[0]
                try:
                    check_reach(best.mean_error_mm, best.miss_mm, settings.most_error_mm, cut_short=best.cut_short)
                except OutOfReachError as error:
                    raise NoMotionError(Rejection.UNREACHABLE, error.message, error.next_step) from error
        else:
            found = [GoalSolution(goal)]
        spare = self._checker.spare(np.array([one.actuation for one in found]))
        clear = [one for one, room in zip(found, spare, strict=True) if room >= 0.0]
        if not clear:
            best = found[int(np.argmax(spare))]
            solutions = (
                f"none of the {len(found)} solutions of the target"
                if not isinstance(goal, np.ndarray)
                else "the robot at the goal actuation does not"
            )
            raise NoMotionError(
                Rejection.GOAL_IN_COLLISION,
                f"At the goal {solutions} keeps clear: {self._shortfall(best.actuation)}.",
                "Choose a target further from the obstacle, move the obstacle, or ask for less clearance.",
            )
        return clear

    def _clearances(self, actuations: Array) -> tuple[Array, Array]:
        """Return distances to the obstacle and the margins that are kept at the closest places, (n,) mm each."""
        distances, margins = [], []
        for first in range(0, len(actuations), 32):
            states = self._surface.at(actuations[first : first + 32])
            apart = self._gauge.distances(states)
            distances.append(apart)
            margins.append(np.minimum(apart, apart - self._gauge.spare(states)))
        return np.concatenate(distances), np.concatenate(margins)

    def _shortfall(self, actuations: Array) -> str:
        states = self._surface.at(actuations[None])
        distance = float(self._gauge.distances(states)[0])
        margin = self._gauge.clearance + float(states.allowance.max())
        return (
            f"the surface comes to {distance:.2f} mm of the obstacle, and up to {margin:.2f} mm are kept "
            f"({self._gauge.clearance:.2f} mm clearance, the rest for what the prediction may be off)"
        )

    def _is_stopped(self) -> bool:
        if self._should_stop():
            return True
        self._tell(self._stage)
        return False

    def _tell(self, stage: str) -> None:
        self._stage = stage
        self._on_progress(Progress(stage, time.monotonic() - self._started, self._checker.states_checked))
