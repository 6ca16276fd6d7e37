"""Diagnostics at 1 Hz with a `hardware_id`, the way every node of the stack reports its health."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from softform_core.text import LONGEST_MESSAGE, printable
from softform_ros.guarded_node import FailedCallbacks
from softform_ros.qos import DIAGNOSTICS
from softform_ros.timers import create_steady_timer

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR

_WARNING_SECONDS = 60.0


@dataclass(frozen=True)
class Health:
    """One reading of a node's health: level, one sentence, and values worth knowing."""

    level: bytes
    message: str
    values: Mapping[str, object] = field(default_factory=dict)


def with_failures(health: Health, failed: FailedCallbacks) -> Health:
    """Return the health of a node, with what its callbacks raised; if one did just now, that is worth a warning."""
    if not failed.count:
        return health
    values = {**health.values, "failed callbacks": failed.count, "last failed callback": failed.last}
    if health.level == OK and time.monotonic() - failed.last_at < _WARNING_SECONDS:
        return Health(WARN, f"a callback failed: {failed.last}", values)
    return Health(health.level, health.message, values)


class DiagnosticsPublisher:
    """Publishes the health that `read_health` returns, once a second and whenever asked."""

    def __init__(self, node: Node, hardware_id: str, read_health: Callable[[], Health]) -> None:
        """Start the 1 Hz timer on `node`."""
        self._node = node
        self.hardware_id = hardware_id
        self._read_health = read_health
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", DIAGNOSTICS)
        self._timer = create_steady_timer(node, 1.0, self.publish)

    def publish(self) -> None:
        """Publish the current health now."""
        health = self._read_health()
        status = DiagnosticStatus(
            level=health.level,
            name=self._node.get_fully_qualified_name(),
            message=printable(health.message, LONGEST_MESSAGE),
            hardware_id=self.hardware_id,
            values=[
                KeyValue(key=key, value=printable(str(value), LONGEST_MESSAGE)) for key, value in health.values.items()
            ],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
