"""Pure parts of the driver: what a command may be, its age, how fast it may change, and when it has settled."""

import collections
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_ros.asked import AHEAD_SECONDS

_SCATTER = 3.0


class CommandRejectedError(SoftformError):
    """A command that the driver does not follow."""


def check_command(robot: Robot, names: Sequence[str], units: Sequence[str], values: Sequence[float]) -> Array:
    """Return a command as (k,) in the order of the robot's actuators.

    Args:
        robot: The robot that is driven.
        names: Actuator of each value, in any order.
        units: SI unit of each value, as the description says.
        values: Target of each actuator; one that exceeds the range by rounding only (1e-6 of it) is clamped.

    Raises:
        CommandRejectedError: On wrong names, units or sizes, a value that is not finite, or one outside the range.
    """
    if not len(names) == len(units) == len(values):
        raise CommandRejectedError(
            f"The command has {len(names)} names, {len(units)} units and {len(values)} values.",
            "Give one name and one unit for each value.",
        )
    unit_of = dict(zip(robot.actuators, robot.actuator_units, strict=True))
    for name, unit in zip(names, units, strict=True):
        if unit != unit_of.get(name, unit):
            raise CommandRejectedError(
                f"The command gives {name} in '{unit}'.", f"Robot '{robot.name}' is commanded in {robot.unit}."
            )
    try:
        return robot.check_commands(robot.in_order(names, values))
    except SoftformError as error:
        raise CommandRejectedError(error.message, error.next_step) from error


def check_age(age: float, limit: float) -> None:
    """Reject a command that was decided longer ago than `limit`, or later than now; both s.

    Raises:
        CommandRejectedError: If so.
    """
    if not age <= limit:
        raise CommandRejectedError(
            f"The command was decided {age:.2f} s ago; up to {limit:g} s are allowed.",
            "Stamp commands when they are decided; see to the network and to the clocks of both computers.",
        )
    if age < -AHEAD_SECONDS:
        raise CommandRejectedError(
            f"The command is stamped {-age:.2f} s in the future.", "Set the clocks of both computers by NTP."
        )


def limit_rate(setpoint: Array, goal: Array, rate: Array, seconds: float) -> Array:
    """Return the next setpoint, (k,): as near to `goal` as `rate`, (k,) per second, allows in `seconds`."""
    step = rate * seconds
    change = goal - setpoint
    # The goal itself once it is near enough: adding the change would miss it by a rounding error.
    return np.where(np.abs(change) <= step, goal, setpoint + np.clip(change, -step, step))


class SettleDetector:
    """Finds which actuators have stayed at their goal for a time.

    Single readings are noisy, and a valve or a motor moves a little about its target: so the mean
    over the whole time counts, and no reading within it may lie further off than `_SCATTER` tolerances.
    """

    def __init__(self, actuators: int, tolerance: Array | float, seconds: float) -> None:
        """Watch so many `actuators`; `tolerance`, one for all or (k,), in their units."""
        self._actuators = actuators
        self._tolerance = tolerance
        self._seconds = seconds
        self._window: collections.deque[tuple[float, Array]] = collections.deque()

    def reset(self) -> None:
        """Forget everything: the goal has changed."""
        self._window.clear()

    def update(self, error: Array, moment: float) -> NDArray[np.bool_]:
        """Take the deviation (k,) measured at `moment` (s); return which have settled, (k,)."""
        self._window.append((moment, error))
        while len(self._window) > 1 and moment - self._window[1][0] >= self._seconds:
            self._window.popleft()
        if moment - self._window[0][0] < self._seconds:
            return np.zeros(self._actuators, dtype=bool)
        errors = np.array([error for _, error in self._window])
        near = np.abs(errors.mean(axis=0)) <= self._tolerance
        return np.asarray(near & (np.abs(errors).max(axis=0) <= _SCATTER * self._tolerance))
