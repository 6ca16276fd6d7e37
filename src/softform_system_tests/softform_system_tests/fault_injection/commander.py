"""A planner that keeps the robot moving, as a process that can be killed: `python -m … ROBOT LOWEST HIGHEST`."""

import math
import sys
import time

import numpy as np
import rclpy

from softform_core.robots import load_robot
from softform_interfaces.msg import ChamberPressures
from softform_ros.qos import PRESSURE_COMMAND

RATE = 20.0
"""Commands a second."""

_PERIOD_SECONDS = 6.0


def main() -> None:
    """Command pressures that swing between two shares of the robot's range, each chamber in its own phase."""
    robot = load_robot(sys.argv[1])
    lowest, highest = float(sys.argv[2]), float(sys.argv[3])
    phases = np.linspace(0.0, 2.0 * math.pi, robot.degrees_of_freedom, endpoint=False)
    rclpy.init()
    node = rclpy.create_node("commander", namespace="softform")
    publisher = node.create_publisher(ChamberPressures, "pressure_command", PRESSURE_COMMAND)
    deadline = time.monotonic()
    while True:
        swing = 0.5 + 0.5 * np.sin(2.0 * math.pi * deadline / _PERIOD_SECONDS + phases)
        share = lowest + (highest - lowest) * swing
        pressures = robot.actuator_min + share * (robot.actuator_max - robot.actuator_min)
        message = ChamberPressures(name=robot.actuators, pressure=pressures.tolist())
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)
        deadline += 1.0 / RATE
        time.sleep(max(0.0, deadline - time.monotonic()))


if __name__ == "__main__":
    main()
