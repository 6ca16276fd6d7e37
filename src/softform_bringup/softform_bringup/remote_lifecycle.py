"""A life-cycle node of another process, reached through its services."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.client import Client
from rclpy.node import Node

from softform_bringup.lifecycle_manager import State, Step

Response = TypeVar("Response")


class RemoteLifecycleNode:
    """Implements `ManagedNode` over `<node>/get_state` and `<node>/change_state`.

    The caller's node must be spun by another thread.
    """

    def __init__(
        self, node: Node, name: str, last_error: Callable[[str], str], should_stop: Callable[[], bool]
    ) -> None:
        """Make the clients.

        Args:
            node: Node that the clients belong to.
            name: Name of the remote node, relative to the namespace of `node`.
            last_error: Returns the last error that the node with a given full name reported.
            should_stop: Whether to stop waiting for answers.
        """
        self.name = name
        self._full_name = node.resolve_topic_name(name)
        self._last_error = last_error
        self._should_stop = should_stop
        self._get_state = node.create_client(GetState, f"{name}/get_state")
        self._change_state = node.create_client(ChangeState, f"{name}/change_state")

    def is_there(self) -> bool:
        """Whether both services are known."""
        return bool(self._get_state.service_is_ready() and self._change_state.service_is_ready())

    def state(self, timeout: float) -> State | None:
        """Return the primary state; None while it changes, or without an answer within `timeout` seconds."""
        response = self._call(self._get_state, GetState.Request(), timeout)
        known = {state.value for state in State}
        return State(response.current_state.id) if response and response.current_state.id in known else None

    def change(self, step: Step, timeout: float) -> bool | None:
        """Make one transition; return whether it succeeded, None without an answer within `timeout` seconds."""
        request = ChangeState.Request()
        request.transition.id = int(step)
        response = self._call(self._change_state, request, timeout)
        return None if response is None else bool(response.success)

    def last_error(self) -> str:
        """Return what the node last reported as an error, or ""."""
        deadline = time.monotonic() + 1.0  # its report may arrive after its answer
        while not self._last_error(self._full_name) and time.monotonic() < deadline:
            time.sleep(0.02)
        return self._last_error(self._full_name)

    def _call(self, client: Client, request: object, timeout: float) -> Response | None:
        """Call and wait for the answer, until time is up, the node is gone, or a stop is asked for."""
        answered = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        deadline = time.monotonic() + max(0.0, timeout)
        while not answered.wait(0.02):
            if time.monotonic() > deadline or self._should_stop() or not client.service_is_ready():
                client.remove_pending_request(future)
                return None
        return future.result()
