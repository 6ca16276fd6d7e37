"""Common server of actions: one goal at a time in a worker thread, the newest wins; and how goals take the robot."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

from rclpy.action.server import ServerGoalHandle

from softform_client.driver_watch import DriverWatch
from softform_client.solve_options import SolveGoal
from softform_core.forward.robot_models import RobotModels
from softform_core.robots import Robot
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_ros.action_goals import GoalLedger
from softform_ros.asked import AGAIN, ASKED_SECONDS, require_just_asked
from softform_ros.checked_action import CheckedAction, in_worker
from softform_ros.goal_client import GoalClient
from softform_ros.goal_error import GoalCode, GoalError, Outcome, in_code
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.standstill import since_boot

Goal = TypeVar("Goal")
Ended = TypeVar("Ended", bound=Outcome)
Run = Callable[[Goal, StopRequest, Callable[[Any], None]], Ended]
"""Carries out a goal, in the worker thread; returns an outcome whatever happens, and tells its feedback."""

Warn = Callable[[Goal], list[str]]
"""Returns what makes the plan of a goal less certain, each a sentence for its result."""


class GoalServer(ABC, Generic[Goal, Ended]):
    """Serves one action; works in a worker thread so that the executor answers cancels and feeds the driver.

    Attributes:
        action: Action type.
        name: Name of the action.
        unpack: Checks a message and makes a goal of it; called with message, robot, its frame, the time (s since the
            epoch) and `max_target_age`.
        parts: Fields of a goal with points, and the code where TF cannot bring them into the robot's frame.
    """

    action: ClassVar[Any]
    name: ClassVar[str]
    unpack: ClassVar[Callable[[Any, Robot, str, float, float], Any]]
    parts: ClassVar[Mapping[str, GoalCode]] = {"target": GoalCode.INVALID_TARGET}

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        run: Run[Goal, Ended],
        ledger: GoalLedger,
        warn: Warn[Goal] = lambda goal: [],
    ) -> None:
        self.node, self.robot = node, robot
        self._run, self._warn = run, warn
        self._stop = StopRequest()
        self._stops: dict[bytes, StopRequest] = {}
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix=self.name)
        self._server = CheckedAction(
            node, self.action, self.name, ledger, self.read, self._begin, self._carry_out, self._cancel
        )

    def read(self, message: Any) -> Any:
        """Check a goal message, bring it into the robot's frame, and unpack it.

        Raises:
            GoalError: If the goal cannot be carried out, or the driver would not follow it.
        """
        self.bring_into_frame(message)
        now, oldest = self.node.get_clock().now().nanoseconds * 1e-9, self.node.parameters["max_target_age"]
        return type(self).unpack(message, self.robot, self.robot.base_frame, now, oldest)

    def bring_into_frame(self, message: Any) -> None:
        """Bring the points of a goal, in place, into the robot's frame; those in no frame are left to the checks.

        Raises:
            GoalError: If TF cannot tell the motion at the points' stamp, with the reason.
        """
        for part, code in self.parts.items():
            with in_code(code):
                setattr(message, part, self.node.frames.into(self.robot.base_frame, getattr(message, part)))

    @abstractmethod
    def result(self, outcome: Ended) -> Any:
        """Pack an outcome."""

    @abstractmethod
    def summary(self, outcome: Ended) -> str:
        """Return a line for the log on what was achieved; empty if nothing was."""

    def warnings(self, goal: Goal) -> list[str]:
        """Return what makes the plan of a goal less certain, each a sentence for its result."""
        return self._warn(goal)

    def begun(self, goal: Goal, stop: StopRequest, message: Any) -> None:
        """Prepare for a good goal and its message; called before it is carried out."""

    def check_still_meant(self, goal: Goal, accepted_at: float) -> None:
        """Check that a goal may still be carried out; called in the worker thread, once its models are open.

        Args:
            goal: The goal.
            accepted_at: Steady time that goes on while the computer sleeps, s.

        Raises:
            GoalError: If it was accepted too long ago.
        """

    def ended(self, stop: StopRequest) -> None:
        """Clean up; called when the goal of that stop request has ended."""

    def end_goals(self) -> None:
        """Ask the goal under way to end, since the node is deactivated."""
        self._stop.request(GoalCode.NODE_DEACTIVATED)

    def close(self) -> None:
        """End the goal under way and close the action."""
        self.end_goals()
        self._workers.shutdown(wait=True)
        self._server.close()

    def _begin(self, goal: Goal, handle: ServerGoalHandle) -> None:
        self._stop.request(GoalCode.PREEMPTED)
        self._stop = self._stops[bytes(handle.goal_id.uuid)] = StopRequest()
        self.begun(goal, self._stop, handle.request)

    def _cancel(self, handle: ServerGoalHandle) -> None:
        self._stops[bytes(handle.goal_id.uuid)].request(GoalCode.CANCELLED)

    async def _carry_out(self, goal: Goal, handle: ServerGoalHandle) -> tuple[Outcome, str, Any]:
        stop, accepted_at = self._stops[bytes(handle.goal_id.uuid)], since_boot()
        tell = FeedbackThrottle(handle.publish_feedback, self.node.parameters["feedback_rate"])

        def work() -> tuple[list[str], Ended]:
            warnings = self.warnings(goal)  # which opens the models of the goal
            if not stop():
                self.check_still_meant(goal, accepted_at)
            return warnings, self._run(goal, stop, tell)

        try:
            warnings, outcome = await in_worker(self._workers, work)
        finally:  # whatever a goal raises, it must not keep the robot
            self.ended(stop)
            del self._stops[bytes(handle.goal_id.uuid)]
        result = self.result(outcome)
        if warnings:
            result.solve.warnings = warnings
            self.node.get_logger().warning(f"{self.name}: {' '.join(warnings)}")
        return outcome, self.summary(outcome), result


class MovingGoalServer(GoalServer[Goal, Ended]):
    """Serves an action whose goals may command the robot, through `commander`, if its `driver` is ready."""

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        run: Run[Goal, Ended],
        ledger: GoalLedger,
        warn: Warn[Goal],
        driver: DriverWatch,
        commander: Commander,
    ) -> None:
        self._driver, self._commander = driver, commander
        self._moving: StopRequest | None = None
        self._client: GoalClient | None = None
        super().__init__(node, robot, run, ledger, warn)

    @abstractmethod
    def moves(self, goal: Goal) -> bool:
        """Return whether a goal moves the robot."""

    def read(self, message: Any) -> Any:
        """See `GoalServer.read`."""
        goal = super().read(message)
        if self.moves(goal):
            self._driver.check_ready()
            with in_code(GoalCode.DRIVER_NOT_READY):
                require_just_asked(message.asked, self.node, "The goal")
            stamp = message.asked.stamp.sec * 10**9 + message.asked.stamp.nanosec
            if self._commander.is_outdated(message.asked.epoch, stamp):  # it must not end what is asked for since
                raise GoalError(
                    GoalCode.DRIVER_NOT_READY,
                    "The goal was asked for before the robot was made safe, was at fault, or was reset.",
                    AGAIN,
                )
        return goal

    def check_still_meant(self, goal: Goal, accepted_at: float) -> None:
        """See `GoalServer`; who looked at the robot when they asked does not expect it to move long after that."""
        waited = since_boot() - accepted_at
        if self.moves(goal) and waited > ASKED_SECONDS:
            raise GoalError(
                GoalCode.DRIVER_NOT_READY,
                f"The goal could begin only {waited:.1f} s after it was accepted, as its model was opened first, or "
                f"that of the goal before it; up to {ASKED_SECONDS:g} s are allowed.",
                "That is done now: look at the robot, and send the goal again if it is still meant.",
            )
        client = self._client
        if self.moves(goal) and client is not None:
            client.require(lambda: self._moving is None or self._moving())

    def begun(self, goal: Goal, stop: StopRequest, message: Any) -> None:
        """Give the robot to a goal that moves it, and watch whether its client stays."""
        if self.moves(goal):
            self._commander.begin(stop, message.asked.epoch)
            self._moving, self._client = stop, GoalClient(self.node, self.name, message.asked.client)

    def end_without_client(self) -> None:
        """End a goal that moves the robot when its client is not there any more; called now and then."""
        if self._moving is None or self._moving() or self._client is None:
            return
        if self._client.is_gone():
            self.node.get_logger().warning(f"{self.name}: the client is gone; its goal is ended")
            self._moving.request(GoalCode.CANCELLED)

    def ended(self, stop: StopRequest) -> None:
        """Take it back."""
        self._commander.end(stop)
        if self._moving is stop:
            self._moving = self._client = None


def unknown_past(driver: DriverWatch, models: RobotModels) -> Warn[SolveGoal]:
    """Return what warns of plans by the models of a body that remembers, while its past is not known to the driver."""

    def warn(goal: SolveGoal) -> list[str]:
        with suppress(Exception):  # of which the goal tells itself
            kind = models.of(goal.model)
            return driver.warnings((kind.simulated if goal.without_sim_to_real else kind.current).memory)
        return []

    return warn


class FeedbackThrottle:
    """Passes progress on, at most `rate` times a second within a phase; the first of each is always sent.

    A phase is a stage of a goal, and where its progress has a `round`, the stage of a round.
    """

    def __init__(
        self, publish: Callable[[Any], None], rate: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._publish, self._interval, self._clock = publish, 1.0 / rate, clock
        self._phase: tuple[str, int] | None = None
        self._sent = -float("inf")

    def __call__(self, progress: Any) -> None:
        """Send `progress` unless one was sent a moment ago."""
        moment, phase = self._clock(), (progress.stage, getattr(progress, "round", 0))
        if phase == self._phase and moment - self._sent < self._interval:
            return
        self._phase, self._sent = phase, moment
        self._publish(progress)
