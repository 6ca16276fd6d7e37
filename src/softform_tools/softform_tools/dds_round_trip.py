"""Sends messages to another process and back, to see whether ROS nodes on this machine can talk to each other."""

import os
import subprocess
import sys
import threading
import time

from rclpy.qos import QoSProfile
from std_msgs.msg import String

from softform_launch.process_signals import die_with_parent
from softform_ros.background_node import BackgroundNode

PATIENCE = 20.0  # s
_QOS = QoSProfile(depth=10)


def round_trip() -> float | None:
    """Return the seconds from sending a message to its echo from another process, None if it never came."""
    topic = f"softform_doctor_{os.getpid()}"
    starter = os.getpid()
    echo = subprocess.Popen(
        [sys.executable, "-m", "softform_tools.dds_round_trip", topic],
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


if __name__ == "__main__":
    _echo(sys.argv[1])
