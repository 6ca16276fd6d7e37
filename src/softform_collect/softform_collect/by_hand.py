"""A scanner that a person triggers: how long the robot is held for a scan, and what the person is told meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter

from softform_core.errors import SoftformError
from softform_ros.qos import DIAGNOSTICS
from softform_ros.service_calls import call_service

_ANSWER_SECONDS = 10.0
_MARGIN = 10.0
"""s; the collector gives up before the driver lets go of the robot."""
_LEAST_SECONDS = 20.0


@contextmanager
def patient_collector(node: Node) -> Iterator[float]:
    """Have the collector wait for a scan for as long as the driver holds a robot, less a margin; yields that time, s.

    Raises:
        SoftformError: If collector or driver do not answer, or the driver holds for too short a time for a person.
    """
    held, settling = _value(node, "actuation", "hold_timeout"), _value(node, "collector", "settle_timeout")
    usual, longest = _value(node, "collector", "capture_timeout"), held - settling - _MARGIN
    if longest < _LEAST_SECONDS:
        raise SoftformError(
            f"The driver lets go of the robot after {held:g} s (hold_timeout), which is too short to scan it by hand.",
            f"Set hold_timeout in config/nodes/actuation.yaml to {settling + _MARGIN + _LEAST_SECONDS:g} s at least.",
        )
    _set_timeout(node, longest)
    try:
        yield longest
    finally:
        _set_timeout(node, usual)


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


def _value(node: Node, server: str, name: str) -> float:
    request = GetParameters.Request(names=[name])
    answer = call_service(node, server, GetParameters, f"{server}/get_parameters", request, _ANSWER_SECONDS)
    if answer is None or not answer.values:
        raise SoftformError(f"The node {server} does not say its {name}.", "See what ./softform status says of it.")
    return float(answer.values[0].double_value)


def _set_timeout(node: Node, seconds: float) -> None:
    request = SetParameters.Request(parameters=[Parameter("capture_timeout", value=seconds).to_parameter_msg()])
    service = "collector/set_parameters"
    answer = call_service(node, "collector", SetParameters, service, request, _ANSWER_SECONDS)
    if answer is None or not answer.results[0].successful:
        raise SoftformError(
            f"The collector does not take {seconds:g} s as capture_timeout.", "See what ./softform status says of it."
        )
