"""Watches over measured pressures: what they find is a fault, and ends in venting."""

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import PneumaticRobot
from softform_pneumatics.states import UnsafeError

_OUTSIDE_IN_A_ROW = 2


class RangeWatch:
    """Over- and underpressure: beyond the robot's range by more than `margin` (Pa)."""

    def __init__(self, robot: PneumaticRobot, margin: float) -> None:
        """Watch all chambers of the robot."""
        self._robot = robot
        self._margin = margin
        self._in_a_row = 0

    def reset(self) -> None:
        """Forget what was measured."""
        self._in_a_row = 0

    def check(self, pressures: NDArray[np.float64]) -> None:
        """Take (k,) Pa.

        Raises:
            UnsafeError: If two measurements in a row lie outside.
        """
        robot = self._robot
        outside = (pressures > robot.pressure_max + self._margin) | (pressures < robot.pressure_min - self._margin)
        # One reading alone may be a corrupt line that looks like a good one: OpenPneu's wire has no checksum.
        self._in_a_row = self._in_a_row + 1 if outside.any() else 0
        if self._in_a_row >= _OUTSIDE_IN_A_ROW:
            index = int(np.flatnonzero(outside)[0])
            raise UnsafeError(
                f"Chamber {robot.chambers[index]} is at {pressures[index]:.0f} Pa; its range is "
                f"{robot.pressure_min[index]:g} … {robot.pressure_max[index]:g} Pa.",
                "Check tubes, valves and sensor of that channel, then reset.",
            )


class FollowWatch:
    """A chamber further than `tolerance` (Pa) from its setpoint for `seconds`, whatever the plant."""

    def __init__(self, robot: PneumaticRobot, tolerance: float, seconds: float) -> None:
        """Watch all chambers of the robot."""
        self._robot = robot
        self._tolerance = tolerance
        self._seconds = seconds
        self._astray_since: float | None = None

    def reset(self) -> None:
        """Forget what was measured."""
        self._astray_since = None

    def check(self, pressures: NDArray[np.float64], setpoint: NDArray[np.float64], moment: float) -> None:
        """Take pressures (k,) Pa measured at `moment` (s) under the setpoint (k,) Pa.

        Raises:
            UnsafeError: If a chamber has not followed for too long.
        """
        deviation = np.abs(pressures - setpoint)
        if deviation.max() <= self._tolerance:
            self._astray_since = None
            return
        if self._astray_since is None:
            self._astray_since = moment
        if moment - self._astray_since > self._seconds:
            index = int(np.argmax(deviation))
            raise UnsafeError(
                f"Chamber {self._robot.chambers[index]} stays at {pressures[index]:.0f} Pa while its setpoint is "
                f"{setpoint[index]:.0f} Pa.",
                "Check for a leak, a blocked tube or a failed pump on that channel, then reset.",
            )
