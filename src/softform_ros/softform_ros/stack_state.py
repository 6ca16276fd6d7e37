"""Waits for a stack to be active, as a planner's program would."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rclpy.node import Node

from softform_core.errors import SoftformError
from softform_core.text import LONGEST_MESSAGE, printable
from softform_interfaces.msg import BringupState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import LATCHED_STATE

_LOOK_PERIOD = 0.1
_JOINING_SECONDS = 3.0  # within which a manager that is there is seen, also on a busy machine
_NAMES = {
    getattr(BringupState, name.upper()): name
    for name in ("starting", "active", "degraded", "stopping", "down", "failed")
}


def state_in_words(message: BringupState) -> str:
    """Return what the bring-up manager says in a line, such as `degraded: scanner does not answer`."""
    name = _NAMES.get(message.state, f"state {message.state}")
    return f"{name}: {printable(message.reason, LONGEST_MESSAGE)}" if message.reason else name


def wait_until_active(
    namespace: str, timeout: float, has_ended: Callable[[], bool], say: Callable[[str], None] | None = None
) -> None:
    """Return once the bring-up manager says that every node is active.

    Args:
        namespace: ROS namespace of the stack.
        timeout: Time limit, s.
        has_ended: Whether the launch is over; then there is nothing to wait for.
        say: Takes what is waited for, a line each time that something has happened.

    Raises:
        SoftformError: If a node failed, the launch ended, or time is up.
    """
    with _bringup_states(namespace, say) as (_, states):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            time.sleep(_LOOK_PERIOD)
            if states and states[-1].state == BringupState.ACTIVE:
                return
            if states and states[-1].state == BringupState.FAILED:
                raise SoftformError(f"The stack did not come up: {state_in_words(states[-1]).rstrip('.')}.")
            if has_ended():
                raise SoftformError("The launch ended before the stack was up.")
    last = state_in_words(states[-1]) if states else "none"
    raise SoftformError(f"The stack was not up within {timeout:g} s (last state: {last}).")


def wait_while_starting(namespace: str, timeout: float, say: Callable[[str], None]) -> None:
    """Return once a stack that somebody launched is no longer coming up; at once where no manager is seen.

    Args:
        namespace: ROS namespace of the stack.
        timeout: Time limit, s; then whoever wants something of the stack hears from its nodes what is amiss.
        say: Takes what is waited for, a line each time that something has happened.
    """
    with _bringup_states(namespace, say) as (node, states):
        begun = time.monotonic()
        while (waited := time.monotonic() - begun) < timeout:
            if states and states[-1].state != BringupState.STARTING:
                return
            if not states and waited > _JOINING_SECONDS and not node.count_publishers("bringup_state"):
                return
            time.sleep(_LOOK_PERIOD)


@contextmanager
def _bringup_states(namespace: str, say: Callable[[str], None] | None) -> Iterator[tuple[Node, Sequence[BringupState]]]:
    """Yield a node that hears the manager, and all that it said; each line of a start goes to `say`."""
    states: list[BringupState] = []

    def note(message: BringupState) -> None:
        states.append(message)
        if say is not None and message.state == BringupState.STARTING:
            say(f"the stack is {state_in_words(message)}")

    with BackgroundNode("stack_state", namespace) as node:
        node.create_subscription(BringupState, "bringup_state", note, LATCHED_STATE)
        yield node, states
