"""A driver and one who commands it, in a process of their own: what the conformance test kills midway.

Usage: python -m softform_actuation.commanded_driver ROBOT PARAMETERS GOAL, the last two as JSON.
"""

import json
import sys
import time

from softform_actuation.assembly import make_driver, parameters_of
from softform_actuation.parameters import PARAMETERS
from softform_core.robots import load_robot

_PERIOD_SECONDS = 0.05


def main() -> None:
    """Command the goal until this process is killed."""
    robot = load_robot(sys.argv[1])
    values = {row.name: row.default for row in (*PARAMETERS, *parameters_of(robot))} | json.loads(sys.argv[2])
    goal = json.loads(sys.argv[3])
    units = [robot.unit] * len(goal)
    with make_driver(values, robot, lambda report: None, lambda readings: None) as driver:
        driver.connect()
        driver.activate()
        lease = driver.acquire("conformance")
        while True:
            driver.command("conformance", lease, robot.actuators, units, goal)
            time.sleep(_PERIOD_SECONDS)


if __name__ == "__main__":
    main()
