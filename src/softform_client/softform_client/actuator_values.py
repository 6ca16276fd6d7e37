"""Convert between messages with actuator values and arrays in the order of the robot's description."""

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.msg import ActuatorValues
from softform_ros.goal_error import GoalCode, in_code


def values_from_message(message: ActuatorValues, robot: Robot) -> list[float]:
    """Return values in the order of the description, set by set; empty if nothing is said.

    Raises:
        SoftformError: On another unit, on names that are not all the robot's, or values that are no whole sets.
    """
    if message.unit not in ("", robot.unit):
        raise SoftformError(
            f"Values are in {message.unit}, those of '{robot.name}' in {robot.unit}.", f"Give {robot.unit}."
        )
    names = list(message.name)
    if not names or not len(message.value):
        return list(message.value)
    if sorted(names) != sorted(robot.actuators):
        raise SoftformError(
            f"The actuators {', '.join(names)} are not those of '{robot.name}'.",
            f"Name each of {', '.join(robot.actuators)} once, or none.",
        )
    if len(message.value) % len(names):
        raise SoftformError(
            f"{len(message.value)} values are no sets of {len(names)} actuators.", "Give one for each name."
        )
    order = [names.index(name) for name in robot.actuators]
    return [float(value) for value in np.reshape(message.value, (-1, len(names)))[:, order].ravel()]


def values_to_message(values: ArrayLike | None, robot: Robot | None = None) -> ActuatorValues:
    """Pack sets of values (..., k); a sender that does not know the robot names neither actuators nor unit."""
    packed = [] if values is None else [float(value) for value in np.ravel(values)]
    if robot is None or not packed:
        return ActuatorValues(value=packed)
    return ActuatorValues(name=robot.actuators, value=packed, unit=robot.unit)


def given_values(message: ActuatorValues, robot: Robot, code: GoalCode, what: str) -> Array | None:
    """Return actuator values (k,) that the robot may be given, or None if there are none.

    Raises:
        GoalError: With that code, on a wrong name, unit or number, a value that is not finite, or one out of range.
    """
    if len(message.value) == 0:
        return None
    with in_code(code, f"{what} cannot be used: "):
        return robot.check_commands(np.asarray(values_from_message(message, robot)))
