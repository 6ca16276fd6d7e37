"""Timers that a step of the time of day does not stop."""

from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer

_STEADY = Clock(clock_type=ClockType.STEADY_TIME)


def create_steady_timer(node: Node, seconds: float, callback: Callable[[], object]) -> Timer:
    """Call `callback` every `seconds`.

    A timer of rclpy follows the time of day by default: if that is set back by an hour, it is not
    called for an hour.
    """
    return node.create_timer(seconds, callback, clock=_STEADY)
