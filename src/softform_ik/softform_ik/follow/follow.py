"""The action `follow_waypoints`: paths are solved, timed, moved along and measured; the outcome as a message."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import Header

from softform_client.actuator_values import values_to_message
from softform_client.follow_messages import WITHOUT_FRAME, ActuatorPath, FollowGoal, PointPath, goal_from_message
from softform_core.arrays import Array
from softform_core.inverse.timing import Schedule, fastest_schedule, timed_schedule
from softform_core.robots import TIP
from softform_core.units import MM_PER_M
from softform_ik.follow.motion import Motion, PathMover
from softform_ik.follow.solver import PathSolver
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.goals.reach_limit import check_reachable
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import SolveReport, TargetPoints
from softform_ros.goal_error import GoalCode, Outcome, failure, in_code

_SEEN_WITHIN = 0.1
"""Longest time from reaching a waypoint to the frame that shows the tip there, s."""

_KEPT = 3000
"""Most frames that are kept; a minute of a fast system."""


class TipRecord:
    """The last captured places of the tip; written by the executor, read by the worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, Array]] = deque(maxlen=_KEPT)

    def note(self, place: Array, stamp: float) -> None:
        """Take a place (3,) m captured `stamp` s since the epoch; one that is not finite was not seen."""
        if np.isfinite(place).all():
            with self._lock:
                self._seen.append((stamp, place))

    def near(self, moment: float, within: float) -> Array:
        """Return the place (3,) m seen nearest to a moment, or NaN if none was seen within so many s of it."""
        with self._lock:
            stamp, place = min(self._seen, key=lambda seen: abs(seen[0] - moment), default=(np.inf, np.empty(0)))
        return place if abs(stamp - moment) <= within else np.full(3, np.nan)


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
    """One goal under way; what was found so far can be read after any end."""

    solver: PathSolver
    settings: FollowSettings
    mover: PathMover
    goal: FollowGoal
    stop: StopRequest
    tell: Callable[[FollowWaypoints.Feedback], None]
    actuations: list[Array] = field(default_factory=list)
    errors_mm: list[float] = field(default_factory=list)
    solve_seconds: float = 0.0
    schedule: Schedule | None = None
    motion: Motion = field(default_factory=Motion)

    def run(self) -> None:
        """Carry out the goal, until a stop is requested; raises a `SoftformError` where that fails."""
        here = self.mover.here
        self._solve(here)
        if self.stop():
            return
        self.schedule = self._timed(here)
        if not self.goal.plan_only:
            settles = self.goal.times is None
            self.mover.follow(self.schedule, self._values, settles, self.stop, self.motion, self._tell_moved)

    def _solve(self, here: Array | None) -> None:
        started = time.perf_counter()
        for solved in self.solver.solve(self.goal, here, self.stop):
            self.solve_seconds = time.perf_counter() - started
            if self.stop():
                return
            self.actuations.append(solved.actuation)
            self.errors_mm.append(solved.error_mm)
            number = len(self.actuations)
            self._tell("solving", number, self._values(solved.actuation))
            if not (self.goal.accept_unreachable or isinstance(self.goal.path, ActuatorPath)):
                most_mm = self.settings.most_error_mm
                check_reachable(solved.error_mm, solved.miss_mm, most_mm, f"waypoint {number}", solved.cut_short)

    def _timed(self, here: Array | None) -> Schedule:
        """Return the schedule of the waypoints from where the robot is; without a driver, from the first of them."""
        waypoints = np.array(self.actuations)
        start = waypoints[0] if here is None else self.solver.start(self.goal, here)
        slew_rate, settle_time = self.solver.slew_rate(self.goal), self.settings.settle_time
        if self.goal.times is None:
            return fastest_schedule(start, waypoints, slew_rate, settle_time)
        with in_code(GoalCode.INVALID_TIMES):
            return timed_schedule(start, waypoints, self.goal.times, slew_rate, settle_time, self.settings.nearness)

    def _values(self, actuation: Array) -> Array:
        return self.solver.values(self.goal, actuation)

    def _tell_moved(self, reached: int, values: Array) -> None:
        self._tell("moving", reached, values)

    def _tell(self, stage: str, waypoint: int, values: Array) -> None:
        error, actuators = self.errors_mm[waypoint - 1] / MM_PER_M, values_to_message(values, self.solver.robot)
        self.tell(FollowWaypoints.Feedback(stage=stage, waypoint=waypoint, error=error, actuators=actuators))


class Follow:
    """Follows paths with one robot, one at a time; motion capture sees its tip, if it has one."""

    def __init__(self, solver: PathSolver, settings: FollowSettings, mover: PathMover, tip: TipRecord) -> None:
        self._solver, self._settings, self._mover, self._tip = solver, settings, mover, tip

    def run(
        self, goal: FollowGoal, stop: StopRequest, tell: Callable[[FollowWaypoints.Feedback], None]
    ) -> FollowOutcome:
        """Carry out a goal; returns an outcome whatever happens.

        A goal that is cancelled while the robot moves leaves it where it is: the values measured then are held.
        """
        execution = _Execution(self._solver, self._settings, self._mover, goal, stop, tell)
        uses_sim_to_real = False
        try:
            uses_sim_to_real = self._solver.uses_sim_to_real(goal)  # before anything moves: it may lack the model
            execution.run()
            code, message = stop.ending() if stop() else (GoalCode.NONE, "")
        except Exception as error:
            code, message = failure(error, GoalCode.SOLVER_FAILED)
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
            len(actuations) > 0 and uses_sim_to_real,
        )

    def _measured_errors_mm(self, goal: FollowGoal, motion: Motion) -> Array:
        """Return distances of the tip to reached points, mm, NaN where it was not seen or no point was asked for."""
        if not isinstance(goal.path, PointPath) or goal.path.output not in ("", TIP) or not motion.stamps:
            return np.full(len(motion.stamps), np.nan)
        seen = np.array([self._tip.near(stamp, _SEEN_WITHIN) for stamp in motion.stamps])
        return np.linalg.norm(seen - goal.path.points[: len(seen)], axis=1) * MM_PER_M


class FollowServer(MovingGoalServer[FollowGoal, FollowOutcome]):
    """Serves `follow_waypoints`."""

    action, name, unpack = FollowWaypoints, "follow_waypoints", goal_from_message

    @in_code(GoalCode.INVALID_PATH)
    def bring_into_frame(self, message: FollowWaypoints.Goal) -> None:
        """See `GoalServer`; a path is moved by its stamp for all its shapes, and a shape without a frame is in its."""
        if message.kind in WITHOUT_FRAME:
            return
        frame, header, into = self.robot.base_frame, message.header, self.node.frames.into
        message.points = into(frame, TargetPoints(header=header, position=message.points)).position
        for shape in message.shapes:
            shape.header = Header(stamp=header.stamp, frame_id=shape.header.frame_id or header.frame_id)
        message.shapes = [into(frame, shape) for shape in message.shapes]
        if header.frame_id and (message.points or message.shapes):
            header.frame_id = frame

    def moves(self, goal: FollowGoal) -> bool:
        """Return whether the goal moves the robot; one that is only planned does not."""
        return not goal.plan_only

    def warnings(self, goal: FollowGoal) -> list[str]:
        """See `GoalServer`; of given actuator values nothing is predicted."""
        return [] if isinstance(goal.path, ActuatorPath) else super().warnings(goal)

    def result(self, outcome: FollowOutcome) -> FollowWaypoints.Result:
        """Pack the outcome of a goal."""
        errors = outcome.errors_mm[np.isfinite(outcome.errors_mm)] / MM_PER_M
        return FollowWaypoints.Result(
            actuators=values_to_message(outcome.values, self.robot),
            times=outcome.due.tolist(),
            errors=(outcome.errors_mm / MM_PER_M).tolist(),
            measured_errors=(outcome.measured_errors_mm / MM_PER_M).tolist(),
            solve=SolveReport(
                mean_error=float(errors.mean()) if len(errors) else float("nan"),
                max_error=float(errors.max()) if len(errors) else float("nan"),
                solve_time=outcome.solve_seconds,
                used_sim_to_real=outcome.used_sim_to_real,
            ),
        )

    def summary(self, outcome: FollowOutcome) -> str:
        """Return the number of waypoints, time and errors."""
        count = len(outcome.values)
        if count == 0:
            return ""
        summary = f"{count} waypoints solved in {outcome.solve_seconds * 1e3:.0f} ms"
        if np.isfinite(outcome.errors_mm).any():
            summary += f", predicted errors of {_mean_and_largest(outcome.errors_mm)}"
        if np.isfinite(outcome.measured_errors_mm).any():
            summary += f", measured errors of {_mean_and_largest(outcome.measured_errors_mm)}"
        return f"{summary}; {len(outcome.measured_errors_mm)} were reached"


def _mean_and_largest(errors_mm: NDArray[np.float64]) -> str:
    return f"{np.nanmean(errors_mm):.3f} mm on average and {np.nanmax(errors_mm):.3f} mm at most"
