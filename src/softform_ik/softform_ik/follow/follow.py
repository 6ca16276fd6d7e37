"""Follows paths, one at a time in a worker thread: solve, time, move, measure; raises nothing."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from softform_client.follow_messages import ActuatorPath, Code, FollowGoal, PointPath
from softform_client.shared_codes import CODE_OF_FOLLOWING, in_codes
from softform_core.arrays import Array
from softform_core.inverse.timing import Schedule, fastest_schedule, timed_schedule
from softform_core.units import MM_PER_M
from softform_ik.follow.motion import Motion, PathMover
from softform_ik.follow.solver import PathSolver
from softform_ik.follow.tip_record import TipRecord
from softform_ik.goals.reach_limit import check_reachable
from softform_ik.robot.stop_request import Outcome, StopRequest, stop_messages
from softform_ros.goal_error import failure, in_code

_STOPPED = stop_messages(Code)
_SEEN_WITHIN = 0.1
"""Longest time from reaching a waypoint to the frame that shows the tip there, s."""


@dataclass(frozen=True)
class FollowSettings:
    """Timing of paths; SI units.

    Attributes:
        settle_time: Planned for each waypoint at which the robot settles, s.
        nearness: A path with times may begin at its first waypoint if the robot is so near to it, in the robot's unit.
        most_error_mm: A waypoint that is missed by more is out of reach.
    """

    settle_time: float = 1.0
    nearness: Array | float = 250.0
    most_error_mm: float = float("inf")


@dataclass(frozen=True)
class FollowProgress:
    """Progress of a goal.

    Attributes:
        stage: `solving` or `moving`.
        waypoint: Number of those solved or reached.
        error_mm: Predicted at the last of them.
        values: (k,) actuator values there; while it moves, the commanded ones.
    """

    stage: str
    waypoint: int
    error_mm: float
    values: Array


@dataclass(frozen=True)
class FollowOutcome(Outcome):
    """Outcome of a goal.

    Attributes:
        values: (s, k) of the waypoints that were solved.
        due: (s,) s after the start: when each was reached or would have been due; empty if they were not timed.
        errors_mm: (s,) predicted.
        measured_errors_mm: (r,) of the waypoints that were reached, NaN where the tip was not seen.
        solve_seconds: Time to solve all waypoints, s.
        used_sim_to_real: Whether the plan saw the learned reality.
    """

    values: Array
    due: Array
    errors_mm: Array
    measured_errors_mm: Array
    solve_seconds: float
    used_sim_to_real: bool


@dataclass
class _Execution:
    """A goal under way; what was found so far can be read after any end."""

    actuations: list[Array] = field(default_factory=list)
    errors_mm: list[float] = field(default_factory=list)
    solve_seconds: float = 0.0
    schedule: Schedule | None = None
    motion: Motion = field(default_factory=Motion)


class Follow:
    """Follows paths with one robot, one at a time; motion capture sees its tip, if it has one."""

    def __init__(self, solver: PathSolver, settings: FollowSettings, mover: PathMover, tip: TipRecord) -> None:
        self._solver, self._settings, self._mover, self._tip = solver, settings, mover, tip

    def run(self, goal: FollowGoal, stop: StopRequest, on_progress: Callable[[FollowProgress], None]) -> FollowOutcome:
        """Carry out a goal; returns an outcome whatever happens.

        A goal that is cancelled while the robot moves leaves it where it is: the values measured then are held.
        """
        execution = _Execution()
        code, message = self._carry_out(goal, execution, stop, on_progress)
        reached = len(execution.motion.times)
        if message and not goal.plan_only and execution.schedule is not None:
            message = f"{message} {reached} of {len(execution.actuations)} waypoints were reached."
        actuations = np.array(execution.actuations, dtype=np.float64)
        due = np.empty(0) if execution.schedule is None else execution.schedule.due.copy()
        due[:reached] = execution.motion.times
        return FollowOutcome(
            code,
            message,
            self._solver.values(goal, actuations) if len(actuations) else np.empty((0, 0)),
            due,
            np.array(execution.errors_mm),
            self._measured_errors_mm(goal, execution.motion),
            execution.solve_seconds,
            self._solver.uses_sim_to_real(goal),
        )

    def _carry_out(
        self, goal: FollowGoal, execution: _Execution, stop: StopRequest, on_progress: Callable[[FollowProgress], None]
    ) -> tuple[int, str]:
        """Return the error code and message of the end."""
        try:
            with in_codes(CODE_OF_FOLLOWING):
                here = self._mover.here
                self._solve(goal, here, execution, stop, on_progress)
                if not stop():
                    execution.schedule = self._time(goal, here, execution.actuations)
                    if not goal.plan_only:
                        self._move(goal, execution.schedule, execution, stop, on_progress)
        except Exception as error:
            return failure(error, Code.SOLVER_FAILED, Code.INTERNAL_ERROR)
        return (stop.code, _STOPPED[stop.code]) if stop() else (Code.NONE, "")

    def _solve(
        self,
        goal: FollowGoal,
        here: Array | None,
        execution: _Execution,
        stop: StopRequest,
        on_progress: Callable[[FollowProgress], None],
    ) -> None:
        started = time.perf_counter()
        for solved in self._solver.solve(goal, here, stop):
            execution.solve_seconds = time.perf_counter() - started
            if stop():
                return
            execution.actuations.append(solved.actuation)
            execution.errors_mm.append(solved.error_mm)
            values = self._solver.values(goal, solved.actuation)
            on_progress(FollowProgress("solving", len(execution.actuations), solved.error_mm, values))
            if not (goal.accept_unreachable or isinstance(goal.path, ActuatorPath)):
                what = f"waypoint {len(execution.actuations)}"
                most_mm = self._settings.most_error_mm
                check_reachable(solved.error_mm, solved.miss_mm, most_mm, Code.UNREACHABLE, what, solved.cut_short)

    def _time(self, goal: FollowGoal, here: Array | None, actuations: list[Array]) -> Schedule:
        """Return the schedule of the waypoints from where the robot is; without a driver, from the first of them."""
        waypoints = np.array(actuations)
        start = waypoints[0] if here is None else self._solver.start(goal, here)
        slew_rate, settle_time = self._solver.slew_rate(goal), self._settings.settle_time
        if goal.times is None:
            return fastest_schedule(start, waypoints, slew_rate, settle_time)
        with in_code(Code.INVALID_TIMES):
            found = timed_schedule(start, waypoints, goal.times, slew_rate, settle_time, self._settings.nearness)
        return found

    def _move(
        self,
        goal: FollowGoal,
        schedule: Schedule,
        execution: _Execution,
        stop: StopRequest,
        on_progress: Callable[[FollowProgress], None],
    ) -> None:
        def report(reached: int, values: Array) -> None:
            on_progress(FollowProgress("moving", reached, execution.errors_mm[reached - 1], values))

        def values_of(actuation: Array) -> Array:
            return self._solver.values(goal, actuation)

        self._mover.follow(schedule, values_of, goal.times is None, stop, execution.motion, report)

    def _measured_errors_mm(self, goal: FollowGoal, motion: Motion) -> Array:
        """Return distances of the tip to reached points, mm, NaN where it was not seen or no point was asked for."""
        if not isinstance(goal.path, PointPath) or not motion.stamps:
            return np.full(len(motion.stamps), np.nan)
        seen = np.array([self._tip.near(stamp, _SEEN_WITHIN) for stamp in motion.stamps])
        return np.linalg.norm(seen - goal.path.points[: len(seen)], axis=1) * MM_PER_M
