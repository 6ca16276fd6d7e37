"""Sends messages to another process and back, to see whether ROS nodes on this machine can talk to each other."""

import os
import subprocess
import sys
import time

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from softform_launch.parent_death import die_with_parent

PATIENCE = 20.0  # s


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
    context, node, executor = _start(topic)
    try:
        sent: dict[str, float] = {}
        took: list[float] = []

        def note(message: String) -> None:
            took.append(time.monotonic() - sent[message.data])

        node.create_subscription(String, f"{topic}_back", note, QoSProfile(depth=10))
        publisher = node.create_publisher(String, topic, QoSProfile(depth=10))
        deadline = time.monotonic() + PATIENCE
        while not took and time.monotonic() < deadline and echo.poll() is None:
            sent[str(len(sent))] = time.monotonic()
            publisher.publish(String(data=str(len(sent) - 1)))
            executor.spin_once(timeout_sec=0.2)
        return took[0] if took else None
    finally:
        echo.terminate()
        echo.wait()
        node.destroy_node()
        rclpy.shutdown(context=context)


def _start(name: str) -> tuple[Context, Node, SingleThreadedExecutor]:
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = Node(name, context=context, use_global_arguments=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    return context, node, executor


def _echo(topic: str) -> None:
    _, node, executor = _start(f"{topic}_echo")
    publisher = node.create_publisher(String, f"{topic}_back", QoSProfile(depth=10))
    node.create_subscription(String, topic, publisher.publish, QoSProfile(depth=10))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.2)


if __name__ == "__main__":
    _echo(sys.argv[1])
