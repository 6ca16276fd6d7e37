"""A life-cycle node of another process, reached through its services."""

import enum
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.task import Future

Response = TypeVar("Response")


class State(enum.IntEnum):
    """Primary states of a life-cycle node; the numbers are those of `lifecycle_msgs/State`."""

    UNCONFIGURED = 1
    INACTIVE = 2
    ACTIVE = 3
    FINALIZED = 4


class Step(enum.IntEnum):
    """Transitions between them; the numbers are those of `lifecycle_msgs/Transition`."""

    CONFIGURE = 1
    CLEANUP = 2
    ACTIVATE = 3
    DEACTIVATE = 4
    SHUTDOWN = 5


# Where each transition begins and ends.
ENDS = {
    Step.CONFIGURE: (State.UNCONFIGURED, State.INACTIVE),
    Step.ACTIVATE: (State.INACTIVE, State.ACTIVE),
    Step.DEACTIVATE: (State.ACTIVE, State.INACTIVE),
    Step.CLEANUP: (State.INACTIVE, State.UNCONFIGURED),
    Step.SHUTDOWN: (State.UNCONFIGURED, State.FINALIZED),
}
LAUNCH_PARAMETER = "launch"  # of every life-cycle node: what its environment says in SOFTFORM_LAUNCH
PATIENCE = 1.0  # s without an answer after which the node's state is looked at
UNCHANGED_LOOKS = 3  # in a row at the state before the transition, after which the request counts as lost


class RemoteLifecycleNode:
    """A life-cycle node over `<node>/get_state` and `<node>/change_state`.

    The caller's node must be spun by another thread.
    """

    def __init__(
        self, node: Node, name: str, last_error: Callable[[str], str], should_stop: Callable[[], bool]
    ) -> None:
        self.name = name
        self._full_name = node.resolve_topic_name(name)
        self._last_error = last_error
        self._should_stop = should_stop
        # In this order: who answers the last client knows the others already (see softform_ros.service_calls).
        self._get_parameters = node.create_client(GetParameters, f"{name}/get_parameters")
        self._change_state = node.create_client(ChangeState, f"{name}/change_state")
        self._get_state = node.create_client(GetState, f"{name}/get_state")

    def is_there(self) -> bool:
        """Return whether both services are known."""
        return bool(self._get_state.service_is_ready() and self._change_state.service_is_ready())

    def state(self, timeout: float) -> State | None:
        """Return the primary state; None while it changes, or without an answer within `timeout` seconds."""
        response = self._call(self._get_state, GetState.Request(), timeout)
        known = {state.value for state in State}
        return State(response.current_state.id) if response and response.current_state.id in known else None

    def launch(self, timeout: float) -> str | None:
        """Return which launch started the node; empty if none that tells, None without an answer within `timeout` s."""
        response = self._call(self._get_parameters, GetParameters.Request(names=[LAUNCH_PARAMETER]), timeout)
        return None if response is None else "".join(value.string_value for value in response.values)

    def change(self, step: Step, timeout: float) -> bool | None:
        """Make one transition; return whether it succeeded, None without an answer within `timeout` seconds.

        Either message can be lost while the middleware still joins the processes (rmw_fastrtps gives up on an answer
        after 100 ms). So without an answer the state decides: a node that is in its new state has made the transition,
        one that stays in the old state and answers has not been asked, and is asked again.
        """
        before, after = ENDS[step]
        deadline = time.monotonic() + timeout
        request = ChangeState.Request()
        request.transition.id = int(step)
        answered, future = self._send(self._change_state, request)
        unchanged = 0
        try:
            while not self._wait_for(answered, self._change_state, min(PATIENCE, deadline - time.monotonic())):
                if self._is_hopeless(self._change_state) or time.monotonic() >= deadline:
                    return None
                state = self.state(PATIENCE)
                if state is after:
                    return True
                unchanged = unchanged + 1 if state is before else 0
                if unchanged == UNCHANGED_LOOKS and not answered.is_set():
                    if self._last_error(self._full_name):
                        return False
                    self._change_state.remove_pending_request(future)
                    answered, future = self._send(self._change_state, request)
                    unchanged = 0
            return bool(future.result().success)
        finally:
            self._change_state.remove_pending_request(future)

    def last_error(self) -> str:
        """Return what the node last reported as an error, or ""."""
        deadline = time.monotonic() + 1.0  # its report may arrive after its answer
        while not self._last_error(self._full_name) and time.monotonic() < deadline:
            time.sleep(0.02)
        return self._last_error(self._full_name)

    def _call(self, client: Client, request: object, timeout: float) -> Response | None:
        """Call and wait for the answer, until time is up, the node is gone, or a stop is asked for."""
        answered, future = self._send(client, request)
        if self._wait_for(answered, client, timeout):
            return future.result()
        client.remove_pending_request(future)
        return None

    def _send(self, client: Client, request: object) -> tuple[threading.Event, Future]:
        answered = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        return answered, future

    def _wait_for(self, answered: threading.Event, client: Client, timeout: float) -> bool:
        deadline = time.monotonic() + max(0.0, timeout)
        while not answered.wait(0.02):
            if time.monotonic() > deadline or self._is_hopeless(client):
                return False
        return True

    def _is_hopeless(self, client: Client) -> bool:
        """Return whether no answer is worth waiting for: a stop is asked for, or the node is gone."""
        return self._should_stop() or not client.service_is_ready()
