"""Waits for a launched stack to be active, as a planner's program would."""

import time
from collections.abc import Callable

from softform_core.errors import SoftformError
from softform_core.text import LONGEST_MESSAGE, printable
from softform_interfaces.msg import BringupState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import LATCHED_STATE

_LOOK_PERIOD = 0.1
_NAMES = {
    getattr(BringupState, name.upper()): name
    for name in ("starting", "active", "degraded", "stopping", "down", "failed")
}


def state_in_words(message: BringupState) -> str:
    """Return what the bring-up manager says in a line, such as `degraded: scanner does not answer`."""
    name = _NAMES.get(message.state, f"state {message.state}")
    return f"{name}: {printable(message.reason, LONGEST_MESSAGE)}" if message.reason else name


def wait_until_active(namespace: str, timeout: float, has_ended: Callable[[], bool]) -> None:
    """Return once the bring-up manager says that every node is active.

    Args:
        namespace: ROS namespace of the stack.
        timeout: Time limit, s.
        has_ended: Whether the launch is over; then there is nothing to wait for.

    Raises:
        SoftformError: If a node failed, the launch ended, or time is up.
    """
    states: list[BringupState] = []
    with BackgroundNode("stack_state", namespace) as node:
        node.create_subscription(BringupState, "bringup_state", states.append, LATCHED_STATE)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            time.sleep(_LOOK_PERIOD)
            if states and states[-1].state == BringupState.ACTIVE:
                return
            if states and states[-1].state == BringupState.FAILED:
                raise SoftformError(f"The stack did not come up: {state_in_words(states[-1])}.")
            if has_ended():
                raise SoftformError("The launch ended before the stack was up.")
    last = state_in_words(states[-1]) if states else "none"
    raise SoftformError(f"The stack was not up within {timeout:g} s (last state: {last}).")
