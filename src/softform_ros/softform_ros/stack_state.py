"""Waits for a launched stack to be active, as a planner's program would."""

import time
from collections.abc import Callable

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from softform_core.errors import SoftformError
from softform_ros.qos import LATCHED_STATE

ACTIVE, FAILED = "active", "failed"
"""States that the bring-up manager publishes: every node is active; a node failed (its reason follows)."""


def wait_until_active(namespace: str, timeout: float, has_ended: Callable[[], bool]) -> None:
    """Return once the bring-up manager says that every node is active.

    Args:
        namespace: Where the stack runs.
        timeout: s.
        has_ended: Whether the launch is over; then there is nothing to wait for.

    Raises:
        SoftformError: If a node failed, the launch ended, or time is up.
    """
    states: list[str] = []
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("stack_state", namespace=namespace, context=context, use_global_arguments=False)
    try:

        def keep(message: String) -> None:
            states.append(message.data)

        node.create_subscription(String, "bringup_state", keep, LATCHED_STATE)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.1)
            if states and states[-1] == ACTIVE:
                return
            if states and states[-1].startswith(FAILED):
                raise SoftformError(f"The stack did not come up: {states[-1]}.")
            if has_ended():
                raise SoftformError("The launch ended before the stack was up.")
        raise SoftformError(
            f"The stack was not up within {timeout:g} s (last state: {states[-1] if states else 'none'})."
        )
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)
