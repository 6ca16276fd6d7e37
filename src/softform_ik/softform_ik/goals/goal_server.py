"""What the actions share: one goal at a time in a worker thread, the newest wins; and how goals take the robot."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

from rclpy.action.server import ServerGoalHandle

from softform_client.goal_frames import bring_into
from softform_core.robots import Robot
from softform_ik.goals.feedback_throttle import FeedbackThrottle
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_ros.action_goals import GoalLedger, in_worker
from softform_ros.checked_action import CheckedAction
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
Unpacked = TypeVar("Unpacked")
Ended = TypeVar("Ended", bound=Outcome)


class GoalServer(ABC, Generic[Goal, Ended]):
    """Serves one action; works in a worker thread so that the executor answers cancels and feeds the driver.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot of the goals.
        action: Action type; the constants of its result are the error codes.
        name: Name of the action.
        ledger: Outcomes of the node's goals.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, action: Any, name: str, ledger: GoalLedger) -> None:
        self.node, self.robot = node, robot
        self._codes = action.Result
        self._ledger = ledger
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
    def run(self, goal: Goal, stop: StopRequest, send_feedback: Callable[[Any], None]) -> Ended:
        """Carry out a goal, in the worker thread; returns an outcome whatever happens."""

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

    def throttled(self, send: Callable[[Any], None]) -> FeedbackThrottle[Any]:
        """What takes progress as often as it comes, and calls `send` at `feedback_rate` at most."""
        return FeedbackThrottle(send, self.node.parameters["feedback_rate"])

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
        outcome = await in_worker(self.node, self._workers, lambda: self.run(goal, stop, handle.publish_feedback))
        self.ended(stop)
        del self._stops[bytes(handle.goal_id.uuid)]
        self._ledger.conclude(handle, outcome.code, outcome.message, self.summary(outcome))
        return self.result(outcome)


class MovingGoalServer(GoalServer[Goal, Ended]):
    """Serves an action whose goals may command the robot.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot of the goals.
        action: Action type; the constants of its result are the error codes.
        name: Name of the action.
        commander: Owner of the held command.
        ledger: Outcomes of the node's goals.
    """

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        action: Any,
        name: str,
        commander: Commander,
        ledger: GoalLedger,
    ) -> None:
        self._commander = commander
        super().__init__(node, robot, action, name, ledger)

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
