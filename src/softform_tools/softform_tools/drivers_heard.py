"""Listens for what the drivers that run say of themselves and of their motors."""

import os
import time
from dataclasses import dataclass, field
from functools import partial

from diagnostic_msgs.msg import DiagnosticArray

from softform_interfaces.msg import DriverState
from softform_ros.background_node import BackgroundNode
from softform_ros.discovery import await_discovery
from softform_ros.qos import DIAGNOSTICS, LATCHED_STATE
from softform_tools.status.stack_status import DRIVER, DRIVER_STATES, DriverStatus, motors_of

_LISTENING_SECONDS = 3.0  # health is published once a second
_STATE = "driver_state"


@dataclass
class HeardDriver:
    """One driver.

    Attributes:
        status: Its state; None if it published none.
        motors: Diagnostics of each motor and of their bus, by name; empty without motors.
    """

    status: DriverStatus | None = None
    motors: dict[str, str] = field(default_factory=dict)


def drivers_heard() -> dict[str, HeardDriver]:
    """The drivers of this ROS_DOMAIN_ID by their full names."""
    heard: dict[str, HeardDriver] = {}

    def note_health(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(f"/{DRIVER}"):
                motors = motors_of({pair.key: pair.value for pair in status.values})
                heard.setdefault(status.name, HeardDriver()).motors = motors

    def note_state(name: str, message: DriverState) -> None:
        status = DriverStatus(DRIVER_STATES[message.state], message.reason, message.holder, message.held_for)
        heard.setdefault(name, HeardDriver()).status = status

    with BackgroundNode(f"doctor_{os.getpid()}", "") as node:
        node.create_subscription(DiagnosticArray, "/diagnostics", note_health, DIAGNOSTICS)
        if await_discovery(node):
            for topic, _ in node.get_topic_names_and_types():
                if topic.endswith(f"/{_STATE}"):
                    name = topic.removesuffix(_STATE) + DRIVER
                    node.create_subscription(DriverState, topic, partial(note_state, name), LATCHED_STATE)
            time.sleep(_LISTENING_SECONDS)
    return heard
