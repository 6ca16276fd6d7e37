"""The connection of a plain program to an action of the stack: goals out, feedback and results in."""

import threading
import time
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Time
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.node import Node

from softform_core.errors import SoftformError
from softform_interfaces.msg import Asked
from softform_ros.asked import EpochWatch
from softform_ros.background_node import BackgroundNode, full_namespace
from softform_ros.service_calls import wait_until_answered

_POLL_SECONDS = 0.05
_ACCEPTANCE_SECONDS = 20.0
_LOOK_SECONDS = 1.0
"""Period of looking whether the node is still the one that a goal was sent to, s."""


class NotConnectedError(SoftformError):
    """Raised if no node answers."""


class GoalAbortedError(SoftformError):
    """The node failed at the goal, and could not even say why."""


class ActionCaller:
    """Calls one action of one node; usable from any thread, one goal at a time.

    Args:
        action: Type of the action.
        name: Name of the action.
        server: Name of the node that serves it.
        caller: Name of this program's node.
        namespace: ROS namespace of the stack.
        timeout: Time for which `connect` waits for the node, s.
    """

    def __init__(
        self, action: Any, name: str, server: str, caller: str, namespace: str = "/softform", timeout: float = 10.0
    ) -> None:
        self._action, self._name, self._server, self._timeout = action, name, server, timeout
        self._namespace = full_namespace(namespace)
        self._background = BackgroundNode(caller, self._namespace)
        self._handle: ClientGoalHandle | None = None
        self._is_calling = self._is_unwanted = False
        self._served_by: frozenset[bytes] = frozenset()
        self._lock = threading.Lock()

    @property
    def is_connected(self) -> bool:
        """Whether `connect` was called and `close` was not."""
        return self._background.is_open

    @property
    def is_served(self) -> bool:
        """Whether the action's node is there."""
        return self.is_connected and bool(self._client.server_is_ready())

    @property
    def node(self) -> Node:
        """This program's node.

        Raises:
            NotConnectedError: If `connect` was not called.
        """
        self._check_connected()
        return self._background.node

    def _servers(self) -> frozenset[bytes]:
        """Return who serves the action, by what sends its feedback: a node that was started anew is another one."""
        topic = f"{self._namespace}/{self._name}/_action/feedback"
        found = self.node.get_publishers_info_by_topic(topic)
        return frozenset(bytes(one.endpoint_gid) for one in found)

    def now(self) -> Time:
        """Stamp for a message, by this program's node; raises as `node` does."""
        return self.node.get_clock().now().to_msg()

    def asked(self) -> Asked:
        """Return when and in which of the driver's epochs something is asked for now; epoch 0 if no driver says it.

        Raises:
            NotConnectedError: If `connect` was not called, or no goal of this action moves the robot.
        """
        self._check_connected()
        if self._epochs is None:
            raise NotConnectedError(f"{self._name} knows of no epochs.", "It moves nothing.")
        return self._epochs.asked()

    def connect(self) -> None:
        """Open the connection and wait for the node; harmless if it is open.

        Raises:
            NotConnectedError: If it does not answer in time.
        """
        if self.is_connected:
            return
        self._background.open()
        self._client = ActionClient(self.node, self._action, self._name)
        self._epochs = EpochWatch(self.node) if hasattr(self._action.Goal, "asked") else None
        if not self._client.wait_for_server(timeout_sec=self._timeout):
            self.close()
            raise NotConnectedError(
                f"No {self._server} node in {self._namespace} answered within {self._timeout:g} s.",
                "Launch the stack first (./softform launch softform), and check the namespace and ROS_DOMAIN_ID.",
            )
        if not wait_until_answered(self.node, self._server, self._timeout):
            self.close()
            raise NotConnectedError(
                f"The {self._server} node in {self._namespace} is there and does not answer.",
                "See whether it is busy or hangs; its log may tell.",
            )

    def close(self) -> None:
        """Close the connection; a goal that runs goes on without this client."""
        if self._background.is_open:
            self._background.stop()
            self._client.destroy()
            self._background.close()

    def __enter__(self) -> "ActionCaller":
        self.connect()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def call(
        self,
        goal: Any,
        on_feedback: Callable[[Any], None] | None = None,
        permit: Callable[[], None] = lambda: None,
    ) -> Any:
        """Send a goal and wait for its end; returns the result message, whatever became of it.

        Args:
            goal: Message; when it is asked for is filled in, if it has such a field and that is empty.
            on_feedback: Called with each feedback message, from the connection's thread; if it raises, the goal is
                cancelled, and `call` raises that at its end.
            permit: Called right before the goal is sent, from where on `cancel` finds it; nothing is sent if it raises.

        Raises:
            NotConnectedError: If `connect` was not called, the node disappears, or another one answers in its place.
            GoalAbortedError: If it fails at the goal without a reason.
        """
        self._check_connected()
        if self._epochs is not None and goal.asked.epoch == 0:
            goal.asked = self.asked()
        elif self._epochs is not None and not goal.asked.client:  # anybody who listens would keep the goal up
            goal.asked.client = self.node.get_fully_qualified_name()
        raised: list[Exception] = []

        def forward(feedback: Any) -> None:
            if on_feedback is None or raised:
                return
            try:
                on_feedback(feedback.feedback)
            except Exception as error:  # it must not end the thread that also takes the result
                raised.append(error)
                self.cancel()

        with self._lock:
            permit()
            self._is_calling, self._is_unwanted = True, False
        try:
            handle = self._accepted(lambda: self._client.send_goal_async(goal, feedback_callback=forward))
            if not handle.accepted:
                raise GoalAbortedError(f"The {self._server} node did not take the goal.", "See its log.")
            with self._lock:
                self._handle, is_unwanted = handle, self._is_unwanted
            if is_unwanted:
                self._ask(handle.cancel_goal_async)
            ended = self._ask(handle.get_result_async)
            if raised:
                raise raised[0]
            if ended.status == GoalStatus.STATUS_UNKNOWN:  # not what became of it: whoever answers does not have it
                handle.cancel_goal_async()
                raise NotConnectedError(
                    f"Another {self._server} node answers in place of the one that took the goal, which is cancelled.",
                    "See which of them is to run, and look at the robot.",
                )
            if ended.status == GoalStatus.STATUS_ABORTED and not ended.result.error_code:
                raise GoalAbortedError(f"The {self._server} node failed at the goal.", "See its log.")
            return ended.result
        finally:
            with self._lock:
                self._handle, self._is_calling = None, False

    def cancel(self) -> bool:
        """Cancel the goal that `call` waits for; returns whether there was one."""
        with self._lock:
            handle = self._handle
            # The first feedback of a quick goal comes before this side knows that the goal was accepted.
            self._is_unwanted = self._is_calling
            if handle is None:
                return self._is_calling
        if threading.current_thread() is self._background.thread:  # from `on_feedback`: answered after that returns
            handle.cancel_goal_async()
        else:
            self._ask(handle.cancel_goal_async)
        return True

    def _check_connected(self) -> None:
        if not self.is_connected:
            raise NotConnectedError("The client is not connected.", "Call connect() or use it in a `with` block.")
        if threading.current_thread() is self._background.thread:
            raise NotConnectedError(
                "Nothing can be waited for inside `on_feedback`: its thread takes the answers.",
                "Call from another thread, or after the goal's end.",
            )

    def _ask(self, send: Callable[[], Any]) -> Any:
        """Send a request from the executor's thread and wait for the answer.

        rclpy 7.1's ActionClient notes a request only after it has sent it, without a lock: an answer that another
        thread takes in between is thrown away as unexpected, and its future never ends.
        """
        return self._wait(self._wait(self._background.executor.create_task(send)))

    def _accepted(self, send: Callable[[], Any]) -> Any:
        """Send a goal and wait until it is accepted or rejected; one that is accepted later than that is cancelled."""
        self._served_by = self._servers()
        answer = self._wait(self._background.executor.create_task(send), _ACCEPTANCE_SECONDS)
        try:
            return self._wait(answer, _ACCEPTANCE_SECONDS)
        except NotConnectedError:
            answer.add_done_callback(_cancel_if_accepted)
            raise

    def _wait(self, future: Any, timeout: float = float("inf")) -> Any:
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        look_at = time.monotonic()
        deadline = look_at + timeout
        while not done.wait(_POLL_SECONDS) and not future.done():
            if not self.is_connected:
                raise NotConnectedError("The client was closed while it waited.", "Keep it open until the goal ends.")
            if time.monotonic() > deadline:
                raise NotConnectedError(
                    f"The {self._server} node did not answer within {timeout:g} s.", "See its log; try again."
                )
            is_another = False
            if self._served_by and time.monotonic() - look_at > _LOOK_SECONDS:
                look_at, is_another = time.monotonic(), not self._served_by & self._servers()
            if is_another or not self.is_served:
                raise NotConnectedError(
                    f"The {self._server} node went away while it worked on the goal.",
                    "See its log; the driver makes the robot safe when no command comes.",
                )
        return future.result()


def _cancel_if_accepted(answer: Any) -> None:
    if not answer.cancelled() and answer.exception() is None and answer.result().accepted:
        answer.result().cancel_goal_async()
