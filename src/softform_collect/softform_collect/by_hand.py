"""A scanner that a person triggers: how long the robot is held for a scan, and what the person is told meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter

from softform_core.errors import SoftformError
from softform_ros.qos import DIAGNOSTICS
from softform_ros.service_calls import asked_parameters, call_service

_ANSWER_SECONDS = 10.0
_MARGIN = 10.0
"""Time by which the collector gives up before the driver lets go of the robot, s."""
_LEAST_SECONDS, _MOST_SECONDS = 20.0, 3600.0
"""Limits of the waiting time that the collector accepts, s."""


def have_collector_wait(node: Node) -> float:
    """Make the collector wait in its next goal as long as the driver holds a robot, less a margin; returns it, s.

    Raises:
        SoftformError: If collector or driver do not answer, or the driver holds for too short a time for a person.
    """
    held, settling = value_of(node, "actuation", "hold_timeout"), value_of(node, "collector", "settle_timeout")
    longest = min(held - settling - _MARGIN, _MOST_SECONDS)
    if longest < _LEAST_SECONDS:
        raise SoftformError(
            f"The driver lets go of the robot after {held:g} s (hold_timeout), which is too short to scan it by hand.",
            f"Set hold_timeout in config/nodes/actuation.yaml to {settling + _MARGIN + _LEAST_SECONDS:g} s at least.",
        )
    request = SetParameters.Request(parameters=[Parameter("capture_timeout", value=longest).to_parameter_msg()])
    answer = call_service(node, "collector", SetParameters, "collector/set_parameters", request, _ANSWER_SECONDS)
    if answer is None or not answer.results[0].successful:
        raise SoftformError(
            f"The collector does not take {longest:g} s as capture_timeout.", "See what ./softform status says of it."
        )
    return longest


@contextmanager
def rejected_scans(node: Node, say: Callable[[str], None]) -> Iterator[None]:
    """Say of each scan that the scanner rejects from now on why it did: nobody looks at diagnostics with a scanner."""
    scanner, last = f"{node.get_namespace().rstrip('/')}/scanner", ""

    def note(message: DiagnosticArray) -> None:
        nonlocal last
        for status in message.status:
            values = {one.key: one.value for one in status.values}
            if status.name == scanner and (count := values.get("rejected", "")) != last:
                if last:
                    say(f"{values.get('last_rejected')} is rejected: {values.get('last_rejected_reason')}")
                last = count

    subscription = node.create_subscription(DiagnosticArray, "/diagnostics", note, DIAGNOSTICS)
    try:
        yield
    finally:
        node.destroy_subscription(subscription)


def value_of(node: Node, server: str, name: str) -> Any:
    """Return the value of a parameter of another node, whose name is relative to the namespace of `node`.

    Raises:
        SoftformError: If that node does not answer, or has no such parameter.
    """
    value = (asked_parameters(node, server, [name], _ANSWER_SECONDS) or {}).get(name)
    if value is None:
        raise SoftformError(f"The node {server} does not say its {name}.", "See what ./softform status says of it.")
    return value
