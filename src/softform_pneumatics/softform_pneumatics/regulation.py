"""Pure parts of the driver: what a command may be, how fast it may change, and when a chamber has settled."""

import collections
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots import Robot

_SCATTER = 3.0


class CommandRejectedError(SoftformError):
    """A pressure command that the driver does not follow."""


def check_command(robot: Robot, names: Sequence[str], pressures: Sequence[float]) -> NDArray[np.float64]:
    """Return a command as (k,) Pa in the order of the robot's chambers.

    Args:
        robot: The robot that is driven.
        names: Chamber of each pressure, in any order.
        pressures: Pa gauge; what exceeds the range by rounding only (1e-6 of it) is clamped.

    Raises:
        CommandRejectedError: On wrong names or size, a value that is not finite, or one outside the working range.
    """
    if len(names) != len(pressures):
        raise CommandRejectedError(
            f"The command has {len(names)} names and {len(pressures)} pressures.", "Give one name for each pressure."
        )
    if sorted(names) != sorted(robot.actuators):
        raise CommandRejectedError(
            f"The command names the chambers {', '.join(names) or '(none)'}.",
            f"Name each chamber of '{robot.name}' once: {', '.join(robot.actuators)}.",
        )
    pressure_of = dict(zip(names, pressures, strict=True))
    try:
        return robot.check_commands(np.array([pressure_of[name] for name in robot.actuators], dtype=np.float64))
    except CommandRejectedError:
        raise
    except SoftformError as error:
        raise CommandRejectedError(error.message, error.next_step) from error


def limit_rate(
    setpoint: NDArray[np.float64], goal: NDArray[np.float64], rate: NDArray[np.float64], seconds: float
) -> NDArray[np.float64]:
    """Return the next setpoint, (k,) Pa: as near to `goal` as `rate` ((k,) Pa/s) allows in `seconds`."""
    step = rate * seconds
    change = goal - setpoint
    # The goal itself once it is near enough: adding the change would miss it by a rounding error.
    return np.where(np.abs(change) <= step, goal, setpoint + np.clip(change, -step, step))


class SettleDetector:
    """Tells which chambers have stayed at their goal for a time.

    Single readings are noisy, and a board that regulates through valves moves a little about its target: so the mean
    over the whole time counts, and no reading within it may lie further off than `_SCATTER` tolerances.
    """

    def __init__(self, chambers: int, tolerance: float, seconds: float) -> None:
        """Watch `chambers` pressures; `tolerance` in Pa."""
        self._chambers = chambers
        self._tolerance = tolerance
        self._seconds = seconds
        self._window: collections.deque[tuple[float, NDArray[np.float64]]] = collections.deque()

    def reset(self) -> None:
        """Forget everything: the goal has changed."""
        self._window.clear()

    def update(self, error: NDArray[np.float64], moment: float) -> NDArray[np.bool_]:
        """Take the deviation (k,) Pa measured at `moment` (s); return which chambers have settled, (k,)."""
        self._window.append((moment, error))
        while len(self._window) > 1 and moment - self._window[1][0] >= self._seconds:
            self._window.popleft()
        if moment - self._window[0][0] < self._seconds:
            return np.zeros(self._chambers, dtype=bool)
        errors = np.array([error for _, error in self._window])
        near = np.abs(errors.mean(axis=0)) <= self._tolerance
        return np.asarray(near & (np.abs(errors).max(axis=0) <= _SCATTER * self._tolerance))
