"""A planner that keeps the robot moving, as a process that can be killed: `python -m … ROBOT LOWEST HIGHEST NAME`."""

import contextlib
import math
import sys
import time

import numpy as np

from softform_core.robots import load_robot
from softform_interfaces.msg import DriverState
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease, LeaseRejectedError
from softform_ros.qos import LATCHED_STATE

RATE = 20.0
"""Commands a second."""

_PERIOD_SECONDS = 6.0


def main() -> None:
    """Command values that swing between two shares of the robot's range, each actuator in its own phase.

    It is as greedy as a commander can be: whenever it has no lease it asks for one.
    """
    robot = load_robot(sys.argv[1])
    lowest, highest = float(sys.argv[2]), float(sys.argv[3])
    phases = np.linspace(0.0, 2.0 * math.pi, robot.degrees_of_freedom, endpoint=False)
    with BackgroundNode(sys.argv[4], "softform") as node:
        lease = CommandLease(node, robot)

        def note(state: DriverState) -> None:
            lease.note(state)

        node.create_subscription(DriverState, "driver_state", note, LATCHED_STATE)
        deadline = time.monotonic()
        while True:
            if not lease.is_held:
                with contextlib.suppress(LeaseRejectedError):
                    lease.acquire()
            swing = 0.5 + 0.5 * np.sin(2.0 * math.pi * deadline / _PERIOD_SECONDS + phases)
            share = lowest + (highest - lowest) * swing
            lease.send(robot.actuator_min + share * (robot.actuator_max - robot.actuator_min))
            deadline = max(deadline + 1.0 / RATE, time.monotonic())
            time.sleep(max(0.0, deadline - time.monotonic() + 0.5 / RATE))


if __name__ == "__main__":
    main()
