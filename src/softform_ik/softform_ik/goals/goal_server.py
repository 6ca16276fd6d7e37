"""What the actions share: one goal at a time in a worker thread, the newest wins; and how goals take the robot."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from rclpy.action.server import ServerGoalHandle

from softform_client.driver_watch import DriverWatch
from softform_client.goal_frames import bring_into
from softform_core.robots import Robot
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_ros.action_goals import GoalLedger
from softform_ros.checked_action import CheckedAction, in_worker
from softform_ros.lifecycle import SoftformLifecycleNode


class Outcome(Protocol):
    """What became of a goal."""

    @property
    def code(self) -> int:
        """One of the action's error codes."""

    @property
    def message(self) -> str:
        """What went wrong and what to do; empty on success."""


Goal = TypeVar("Goal")
Taken = TypeVar("Taken", contravariant=True)
Unpacked = TypeVar("Unpacked")
Ended = TypeVar("Ended", bound=Outcome)
Left = TypeVar("Left", covariant=True)


class Work(Protocol[Taken, Left]):
    """What carries out goals."""

    def run(self, goal: Taken, stop: StopRequest, tell: Callable[[Any], None], /) -> Left:
        """Carry out a goal, in the worker thread; returns an outcome whatever happens and tells its progress."""


class GoalServer(ABC, Generic[Goal, Ended]):
    """Serves one action; works in a worker thread so that the executor answers cancels and feeds the driver.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot of the goals.
        work: Carries out goals.
        ledger: Outcomes of the node's goals.

    Attributes:
        action: Action type; the constants of its result are the error codes.
        name: Name of the action.
    """

    action: ClassVar[Any]
    name: ClassVar[str]

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, work: Work[Goal, Ended], ledger: GoalLedger) -> None:
        self.node, self.robot = node, robot
        action, name = self.action, self.name
        self._codes = action.Result
        self._work, self._ledger = work, ledger
        self._stop = StopRequest()
        self._stops: dict[bytes, StopRequest] = {}
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._server = CheckedAction(node, action, name, ledger, self.read, self._begin, self._carry_out, self._cancel)

    @abstractmethod
    def read(self, message: Any) -> Goal:
        """Check a goal message and unpack it.

        Raises:
            GoalError: If the goal cannot be carried out, or the driver would not follow it.
        """

    @abstractmethod
    def feedback(self, progress: Any) -> Any:
        """Pack the progress of a goal."""

    @abstractmethod
    def result(self, outcome: Ended) -> Any:
        """Pack an outcome."""

    @abstractmethod
    def summary(self, outcome: Ended) -> str:
        """What was achieved, in a line for the log; empty if nothing was."""

    def unpacked(self, message: Any, unpack: Callable[[Any, Robot, str, float, float], Unpacked]) -> Unpacked:
        """A goal message in the robot's frame, unpacked.

        Args:
            message: Goal with a header.
            unpack: Called with message, robot, its frame, the time (s since the epoch) and `max_target_age`.
        """
        bring_into(self.robot.base_frame, message, self.node.frames)
        now, oldest = self.node.get_clock().now().nanoseconds * 1e-9, self.node.parameters["max_target_age"]
        return unpack(message, self.robot, self.robot.base_frame, now, oldest)

    def begun(self, goal: Goal, stop: StopRequest) -> None:
        """Called with a good goal, before it is carried out."""

    def ended(self, stop: StopRequest) -> None:
        """Called when the goal of that stop request has ended."""

    def end_goals(self) -> None:
        """Ask the goal under way to end, since the node is deactivated."""
        self._stop.request(self._codes.NODE_DEACTIVATED)

    def close(self) -> None:
        """End the goal under way and close the action."""
        self.end_goals()
        self._workers.shutdown(wait=True)
        self._server.close()

    def _begin(self, goal: Goal, handle: ServerGoalHandle) -> None:
        self._stop.request(self._codes.PREEMPTED)
        self._stop = self._stops[bytes(handle.goal_id.uuid)] = StopRequest()
        self.begun(goal, self._stop)

    def _cancel(self, handle: ServerGoalHandle) -> None:
        self._stops[bytes(handle.goal_id.uuid)].request(self._codes.CANCELLED)

    async def _carry_out(self, goal: Goal, handle: ServerGoalHandle) -> Any:
        stop = self._stops[bytes(handle.goal_id.uuid)]

        def publish(progress: Any) -> None:
            handle.publish_feedback(self.feedback(progress))

        tell = FeedbackThrottle(publish, self.node.parameters["feedback_rate"])
        outcome = await in_worker(self._workers, lambda: self._work.run(goal, stop, tell))
        self.ended(stop)
        del self._stops[bytes(handle.goal_id.uuid)]
        self._ledger.conclude(handle, outcome.code, outcome.message, self.summary(outcome))
        return self.result(outcome)


class MovingGoalServer(GoalServer[Goal, Ended]):
    """Serves an action whose goals may command the robot.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot of the goals.
        work: Carries out goals.
        driver: State of the driver.
        commander: Owner of the held command.
        ledger: Outcomes of the node's goals.
    """

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        work: Work[Goal, Ended],
        driver: DriverWatch,
        commander: Commander,
        ledger: GoalLedger,
    ) -> None:
        self._driver, self._commander = driver, commander
        super().__init__(node, robot, work, ledger)

    @abstractmethod
    def moves(self, goal: Goal) -> bool:
        """Whether a goal moves the robot."""

    def begun(self, goal: Goal, stop: StopRequest) -> None:
        """Give the robot to a goal that moves it."""
        if self.moves(goal):
            self._commander.begin(stop, self._codes.PREEMPTED)

    def ended(self, stop: StopRequest) -> None:
        """Take it back."""
        self._commander.end(stop)


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
