"""The way home of a robot whose past is not known: behind it, what was before does not matter. Not in the papers.

Each degree of freedom goes there and back alone, so that no more than its own actuators are ever strained, and far
enough that a body with hysteresis forgets (`history.WIPES`).
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.history import WIPES, HistoryKeeper
from softform_core.robots import Robot

_FURTHER = 0.06
"""Share of the range by which the way exceeds `WIPES`: what is measured stays a little behind what is commanded."""
_SECONDS = 10.0
"""From waypoint to waypoint, in a trial: the keeper has then forgotten its mean of the last one."""


def homing_path(robot: Robot) -> Array:
    """Return the values (n, k) of the actuators that a robot is led through, one after the other; the last is at rest.

    Raises:
        SoftformError: If no such way makes its past known.
    """
    for sides, share in (((0,), WIPES + _FURTHER), ((0, 1), WIPES + _FURTHER), ((0, 1), 1.0)):
        path = _there_and_back(robot, sides, share)
        if _makes_known(robot, path):
            return path
    raise SoftformError(
        f"No way of the degrees of freedom of '{robot.name}' moves each actuator through {WIPES:.0%} of its range.",
        "Let the range of its actuators in the description be what its degrees of freedom can use.",
    )


def _there_and_back(robot: Robot, sides: tuple[int, ...], share: float) -> Array:
    """Return the way (n, k) of each degree of freedom alone, towards the side with more room first."""
    low, high, rest = robot.actuation_min, robot.actuation_max, robot.rest_actuation
    path = [rest]
    for index in range(len(rest)):
        rooms = sorted((low[index], high[index]), key=lambda end: -abs(end - rest[index]))
        for side in sides:
            there, end = rest.copy(), rooms[side]
            way = min(share * (high[index] - low[index]), abs(end - rest[index]))
            there[index] += np.copysign(way, end - rest[index])
            path += [there, rest]
    return np.array([robot.actuators_of(one) for one in path])


def _makes_known(robot: Robot, path: Array) -> bool:
    keeper = HistoryKeeper(robot)
    for number, values in enumerate(path):
        keeper.note(values, _SECONDS * (number + 1))
    return keeper.history.is_known
