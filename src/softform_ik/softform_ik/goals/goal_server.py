"""What the actions share: one goal at a time in a worker thread, the newest wins; and how goals take the robot."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle

from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_ros.action_goals import GoalLedger, in_worker
from softform_ros.goal_error import GoalError
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
Ended = TypeVar("Ended", bound=Outcome)


class GoalServer(ABC, Generic[Goal, Ended]):
    """Serves one action; works in a worker thread so that the executor answers cancels and feeds the driver.

    Args:
        node: Node that serves the action.
        action: Its type; the constants of its result are its error codes.
        name: Its name.
        ledger: What became of the node's goals.
    """

    def __init__(self, node: SoftformLifecycleNode, action: Any, name: str, ledger: GoalLedger) -> None:
        self.node = node
        self._codes = action.Result
        self._ledger = ledger
        self._accepted: Goal | None = None
        self._stop = StopRequest()
        self._goals: dict[bytes, tuple[Goal, StopRequest]] = {}
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._server = ActionServer(
            node,
            action,
            name,
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )

    @abstractmethod
    def read(self, message: Any) -> Goal:
        """Check a goal message and unpack it.

        Raises:
            GoalError: If the goal cannot be accepted, or the driver would not follow it.
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

    def begun(self, goal: Goal, stop: StopRequest) -> None:
        """Called when a goal is accepted, before it is carried out."""

    def ended(self, stop: StopRequest) -> None:
        """Called when the goal of that stop request has ended."""

    def end_goals(self) -> None:
        """Ask the goal under way to end, since the node is deactivated."""
        self._stop.request(self._codes.NODE_DEACTIVATED)

    def close(self) -> None:
        """End the goal under way and close the action."""
        self.end_goals()
        self._workers.shutdown(wait=True)
        self._server.destroy()

    def _on_goal(self, message: Any) -> GoalResponse:
        try:
            if not self.node.is_active:
                raise GoalError(self._codes.NODE_DEACTIVATED, "The node is not active.", "Activate it first.")
            self._accepted = self.read(message)
        except GoalError as error:
            return self._ledger.refuse(error)
        except Exception as error:  # a goal must never end the node
            return self._ledger.refuse(GoalError(self._codes.INTERNAL_ERROR, f"The goal could not be read: {error}"))
        return self._ledger.accept()

    def _on_accepted(self, handle: ServerGoalHandle) -> None:
        self._stop.request(self._codes.PREEMPTED)
        self._stop = StopRequest()
        # rclpy calls back with the handle right after accepting, so the checked goal is this handle's.
        assert self._accepted is not None
        self.begun(self._accepted, self._stop)
        self._goals[bytes(handle.goal_id.uuid)] = (self._accepted, self._stop)
        handle.execute()

    def _on_cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        known = self._goals.get(bytes(handle.goal_id.uuid))
        if known is None:  # its client was gone before it could be told that it was accepted: nothing was begun
            return CancelResponse.REJECT
        known[1].request(self._codes.CANCELLED)
        return CancelResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> Any:
        goal, stop = self._goals[bytes(handle.goal_id.uuid)]
        outcome = await in_worker(self.node, self._workers, lambda: self.run(goal, stop, handle.publish_feedback))
        self.ended(stop)
        del self._goals[bytes(handle.goal_id.uuid)]
        self._ledger.conclude(handle, outcome.code, outcome.message, self.summary(outcome))
        return self.result(outcome)


class MovingGoalServer(GoalServer[Goal, Ended]):
    """Serves an action whose goals may command the robot.

    Args:
        node: Node that serves the action.
        action: Its type; the constants of its result are its error codes.
        name: Its name.
        commander: Who commands the robot.
        ledger: What became of the node's goals.
    """

    def __init__(
        self, node: SoftformLifecycleNode, action: Any, name: str, commander: Commander, ledger: GoalLedger
    ) -> None:
        self._commander = commander
        super().__init__(node, action, name, ledger)

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
