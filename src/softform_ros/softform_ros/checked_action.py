"""An action that accepts every goal and aborts a bad one at once, with code and message in its result, as Nav2 does.

A goal that ROS 2 rejects has no result: a standard client would never learn the reason.
"""

import warnings
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor, Future
from functools import partial
from types import coroutine
from typing import Any, Generic, TypeVar

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle

from softform_core.text import LONGEST_MESSAGE, printable
from softform_ros.action_goals import GoalLedger
from softform_ros.goal_error import GoalCode, GoalError, Outcome, failure
from softform_ros.lifecycle import SoftformLifecycleNode

_RESULT_SECONDS = 60
"""Time that an ended goal is remembered with its message, s; clients ask for its result when it is accepted."""

Goal = TypeVar("Goal")
Done = TypeVar("Done")


@coroutine
def in_worker(workers: Executor, work: Callable[[], Done]) -> Generator[Future[Done], None, Done]:
    """Await work in another thread, so that the executor goes on answering; its exceptions are raised here."""
    future = workers.submit(work)
    if not future.done():
        yield future
    return future.result()


class _Server(ActionServer):
    """Goes on with a goal when what it awaits is there; rclpy's tasks ask for it over and over.

    A goal whose acceptance cannot be delivered is not carried out: its client is gone, or will never know of it.
    """

    async def _execute_goal_request(self, request_header_and_message: Any) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "failed to send response", RuntimeWarning)
            try:
                await super()._execute_goal_request(request_header_and_message)
            except (RuntimeWarning, SystemError):  # which of them is a matter of rclpy's bindings
                self._node.get_logger().warning("a goal is not carried out, for its client is gone")

    def notify_execute(
        self, goal_handle: ServerGoalHandle, execute_callback: Callable[[ServerGoalHandle], Coroutine[Any, None, Any]]
    ) -> None:
        """Begin to execute a goal."""
        executor, execution = self._node.executor, execute_callback(goal_handle)
        notify_executed = super().notify_execute

        def step() -> None:
            try:
                awaited = execution.send(None)
            except StopIteration as end:
                result = end.value
                notify_executed(goal_handle, lambda handle: result)
            except Exception as error:  # rclpy logs it and aborts the goal: its client gets a result
                notify_executed(goal_handle, partial(_raise, error))
            else:
                awaited.add_done_callback(lambda future: executor.create_task(step))

        executor.create_task(step)


def _raise(error: Exception, handle: ServerGoalHandle) -> Any:
    raise error


class CheckedAction(Generic[Goal]):
    """Serves one action. A bad goal touches nothing: what runs goes on.

    Args:
        node: Node that serves the action; while it is inactive every goal ends with `NODE_DEACTIVATED`.
        action: Action type; the constants of its result are the numbers of the error codes, by their names.
        name: Name of the action.
        ledger: Outcomes of the node's goals.
        check: Makes a checked goal of a message, or raises `GoalError`.
        begin: Called with each good goal before `carry_out`.
        carry_out: Does what a good goal asks; awaits `in_worker` alone. It returns the outcome, a line for the log on
            what was achieved (empty if nothing was), and the result message without error code.
        cancel: Asks a good goal to end.
    """

    def __init__(
        self,
        node: SoftformLifecycleNode,
        action: Any,
        name: str,
        ledger: GoalLedger,
        check: Callable[[Any], Goal],
        begin: Callable[[Goal, ServerGoalHandle], None],
        carry_out: Callable[[Goal, ServerGoalHandle], Coroutine[Any, None, tuple[Outcome, str, Any]]],
        cancel: Callable[[ServerGoalHandle], None],
    ) -> None:
        self._node, self._result, self._ledger = node, action.Result, ledger
        self._check, self._begin, self._carry_out, self._cancel = check, begin, carry_out, cancel
        self._checked: dict[bytes, Goal | GoalError] = {}
        self._server = _Server(
            node,
            action,
            name,
            execute_callback=self._execute,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
            result_timeout=_RESULT_SECONDS,
        )

    def close(self) -> None:
        """Close the action."""
        self._server.destroy()

    def _on_accepted(self, handle: ServerGoalHandle) -> None:
        key = bytes(handle.goal_id.uuid)
        try:
            if not self._node.is_active:
                raise GoalError(GoalCode.NODE_DEACTIVATED, "The node is not active.", "Activate it first.")
            goal = self._check(handle.request)
            self._begin(goal, handle)
            self._checked[key] = goal
        except GoalError as error:
            self._checked[key] = error
        except Exception as error:  # a goal must never end the node
            self._checked[key] = GoalError(GoalCode.INTERNAL_ERROR, f"The goal could not be read: {error}")
        handle.execute(self._execute)

    def _on_cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        # UNKNOWN: the client was gone before it could be notified of the acceptance; nothing was started.
        goal = self._checked.get(bytes(handle.goal_id.uuid))
        if goal is None or isinstance(goal, GoalError):
            return CancelResponse.REJECT
        self._cancel(handle)
        return CancelResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> Any:
        key = bytes(handle.goal_id.uuid)
        goal = self._checked[key]
        try:
            if isinstance(goal, GoalError):
                result = self._in_numbers(self._result(), goal.code, str(goal))
                self._ledger.reject(handle, result.error_code, str(goal))
                return result
            self._ledger.accept()
            outcome, summary, result = await self._carry_out(goal, handle)
            self._in_numbers(result, outcome.code, outcome.message)
            self._ledger.conclude(handle, result.error_code, outcome.message, summary)
            return result
        except Exception as error:
            code, message = failure(error, GoalCode.INTERNAL_ERROR)
            result = self._in_numbers(self._result(), code, message)
            if handle.is_active:
                self._ledger.conclude(handle, result.error_code, message, "")
            return result
        finally:
            del self._checked[key]

    def _in_numbers(self, result: Any, code: GoalCode, message: str) -> Any:
        """Note an end in a result message, by the action's own number; a code that it lacks is a fault of ours."""
        result.error_code = getattr(self._result, code.name, self._result.INTERNAL_ERROR)
        result.error_msg = printable(message, LONGEST_MESSAGE, lines=True)  # it may quote what was sent
        return result
