"""Listens for what the drivers that run say of themselves and of their motors."""

import os
import time
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from diagnostic_msgs.msg import DiagnosticArray

from softform_interfaces.msg import DriverState
from softform_ros.background_node import BackgroundNode
from softform_ros.discovery import await_discovery
from softform_ros.qos import DIAGNOSTICS, LATCHED_STATE
from softform_tools.status.observer import driver_status
from softform_tools.status.stack_status import DRIVER, DriverStatus, made_printable, motors_of

_MOST = 100
"""Most drivers that are listed: anybody may pretend to be more."""

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
    """Return the drivers of this ROS_DOMAIN_ID by their full names, fit for a terminal."""
    heard: dict[str, HeardDriver] = {}

    def of(name: str) -> HeardDriver:
        return heard.setdefault(name, HeardDriver()) if len(heard) < _MOST else heard.get(name, HeardDriver())

    def note_health(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(f"/{DRIVER}"):
                motors = motors_of({pair.key: pair.value for pair in status.values})
                of(status.name).motors = motors

    def note_state(name: str, message: DriverState) -> None:
        of(name).status = driver_status(message)

    with BackgroundNode(f"doctor_{os.getpid()}", "") as node:
        node.create_subscription(DiagnosticArray, "/diagnostics", note_health, DIAGNOSTICS)
        if await_discovery(node):
            for topic, _ in node.get_topic_names_and_types():
                if topic.endswith(f"/{_STATE}"):
                    name = topic.removesuffix(_STATE) + DRIVER
                    node.create_subscription(DriverState, topic, partial(note_state, name), LATCHED_STATE)
            time.sleep(_LISTENING_SECONDS)
    return cast(dict[str, HeardDriver], made_printable(heard))
