"""A planner that keeps the robot moving, as a process that can be killed: `python -m … ROBOT LOWEST HIGHEST NAME`."""

import contextlib
import math
import sys
import time

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import Robot, load_robot
from softform_interfaces.msg import DriverState
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease, LeaseRejectedError
from softform_ros.qos import LATCHED_STATE

RATE = 20.0
"""Commands a second."""

_PERIOD_SECONDS = 6.0


def swing(robot: Robot, lowest: float, highest: float, moment: float) -> Array:
    """Return actuator values (k,), in the unit of the robot's description, at a moment, s.

    Each degree of freedom swings between two shares of its range, in a phase of its own.
    """
    phases = np.linspace(0.0, 2.0 * math.pi, robot.degrees_of_freedom, endpoint=False)
    between = 0.5 + 0.5 * np.sin(2.0 * math.pi * moment / _PERIOD_SECONDS + phases)
    share = lowest + (highest - lowest) * between
    return robot.actuators_of(robot.actuation_min + share * (robot.actuation_max - robot.actuation_min))


def main() -> None:
    """Command values that `swing`.

    It is as greedy as a commander can be: whenever it has no lease it asks for one.
    """
    robot = load_robot(sys.argv[1])
    lowest, highest = float(sys.argv[2]), float(sys.argv[3])
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
            lease.send(swing(robot, lowest, highest, deadline))
            deadline = max(deadline + 1.0 / RATE, time.monotonic())
            time.sleep(max(0.0, deadline - time.monotonic() + 0.5 / RATE))


if __name__ == "__main__":
    main()
