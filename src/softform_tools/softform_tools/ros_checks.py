"""What the doctor asks of ROS: a message to another process and back, and what drivers that run say of themselves."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from std_msgs.msg import String

from softform_interfaces.msg import DriverState
from softform_launch.process_signals import die_with_parent
from softform_ros.background_node import BackgroundNode
from softform_ros.discovery import await_discovery
from softform_ros.qos import DIAGNOSTICS, LATCHED_STATE
from softform_tools.status.observer import driver_status
from softform_tools.status.stack_status import DRIVER, DriverStatus, made_printable, motors_of

PATIENCE = 20.0  # s
_QOS = QoSProfile(depth=10)


def round_trip() -> float | None:
    """Return the seconds from sending a message to its echo from another process, None if it never came."""
    topic = f"softform_doctor_{os.getpid()}"
    starter = os.getpid()
    echo = subprocess.Popen(
        [sys.executable, "-m", "softform_tools.ros_checks", topic],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: die_with_parent(starter),
    )
    sent: list[float] = []
    took: list[float] = []
    came = threading.Event()

    def note(message: String) -> None:
        took.append(time.monotonic() - sent[int(message.data)])
        came.set()

    try:
        with BackgroundNode(topic, "") as node:
            node.create_subscription(String, f"{topic}_back", note, _QOS)
            publisher = node.create_publisher(String, topic, _QOS)
            deadline = time.monotonic() + PATIENCE
            while not came.is_set() and time.monotonic() < deadline and echo.poll() is None:
                sent.append(time.monotonic())
                publisher.publish(String(data=str(len(sent) - 1)))
                came.wait(0.2)
        return took[0] if took else None
    finally:
        echo.terminate()
        echo.wait()


def _echo(topic: str) -> None:
    with BackgroundNode(f"{topic}_echo", "") as node:
        publisher = node.create_publisher(String, f"{topic}_back", _QOS)
        node.create_subscription(String, topic, publisher.publish, _QOS)
        time.sleep(PATIENCE)


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


if __name__ == "__main__":
    _echo(sys.argv[1])
