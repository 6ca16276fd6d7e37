"""Listens for what the drivers that run say of their motors."""

import os
import time

from diagnostic_msgs.msg import DiagnosticArray

from softform_ros.background_node import BackgroundNode
from softform_ros.discovery import await_discovery
from softform_ros.qos import DIAGNOSTICS
from softform_tools.status.stack_status import DRIVER, motors_of

_LISTENING_SECONDS = 3.0  # health is told once a second


def motors_heard() -> dict[str, dict[str, str]]:
    """What each driver of this ROS_DOMAIN_ID says of its motors and of their bus, by the driver's full name."""
    heard: dict[str, dict[str, str]] = {}

    def note(told: DiagnosticArray) -> None:
        for status in told.status:
            motors = motors_of({pair.key: pair.value for pair in status.values})
            if motors and status.name.endswith(f"/{DRIVER}"):
                heard[status.name] = motors

    with BackgroundNode(f"doctor_{os.getpid()}", "") as node:
        node.create_subscription(DiagnosticArray, "/diagnostics", note, DIAGNOSTICS)
        if await_discovery(node):
            time.sleep(_LISTENING_SECONDS)
    return heard
