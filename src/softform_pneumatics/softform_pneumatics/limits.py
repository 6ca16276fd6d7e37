"""Watches over measured pressures: what they find is a fault, and ends in venting."""

from collections import deque
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import Robot
from softform_pneumatics.states import UnsafeError

_IN_A_ROW = 2
"""One reading alone may be a corrupt line that looks like a good one: OpenPneu's wire has no checksum."""

_RISING_PART = 0.1
"""Of the tolerance: so much higher than a measurement before is a chamber that rises; noise and ripple are less."""

_SETPOINT_MEMORY_SECONDS = 1.0
"""A measurement may be so late before the stream is stale: a chamber may still rise to what was asked then."""


class RangeWatch:
    """Over- and underpressure: beyond the robot's range by more than `margin` (Pa)."""

    def __init__(self, robot: Robot, margin: float) -> None:
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
        outside = (pressures > robot.actuator_max + self._margin) | (pressures < robot.actuator_min - self._margin)
        self._in_a_row = self._in_a_row + 1 if outside.any() else 0
        if self._in_a_row >= _IN_A_ROW:
            index = int(np.flatnonzero(outside)[0])
            raise UnsafeError(
                f"Chamber {robot.actuators[index]} is at {pressures[index]:.0f} Pa; its range is "
                f"{robot.actuator_min[index]:g} … {robot.actuator_max[index]:g} Pa.",
                "Check tubes, valves and sensor of that channel, then reset.",
            )


class UnusedWatch:
    """Channels of the board that the robot does not use: no pressure beyond `margin` (Pa) belongs there."""

    def __init__(self, margin: float) -> None:
        self._margin = margin
        self._in_a_row = 0

    def reset(self) -> None:
        """Forget what was measured."""
        self._in_a_row = 0

    def check(self, pressures: Mapping[int, float]) -> None:
        """Take Pa by channel, NaN where the board does not measure.

        Raises:
            UnsafeError: If two measurements in a row lie outside.
        """
        outside = {channel: value for channel, value in pressures.items() if abs(value) > self._margin}
        self._in_a_row = self._in_a_row + 1 if outside else 0
        if self._in_a_row >= _IN_A_ROW:
            channel, value = next(iter(outside.items()))
            raise UnsafeError(
                f"Channel {channel}, which the robot does not use, is at {value:.0f} Pa.",
                "Check its pump, valve and sensor, and what its tube is on, then reset.",
            )


class FollowWatch:
    """A chamber that goes its own way, whatever the plant.

    Either it has been further than `tolerance` (Pa) from its setpoint for `seconds`; or it is so far above all that was
    asked of it in the last second and rises on, in two measurements in a row: then the board has understood another
    target (a lost point turns 3.790 into 3790), or a valve is stuck, and every further moment is pressure.
    """

    def __init__(self, robot: Robot, tolerance: float, seconds: float) -> None:
        self._robot = robot
        self._tolerance = tolerance
        self._seconds = seconds
        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        self._astray_since: float | None = None
        self._last: NDArray[np.float64] | None = None
        self._setpoints: deque[tuple[float, NDArray[np.float64]]] = deque()
        self._rising_in_a_row = np.zeros(len(self._robot.actuators), dtype=np.int64)

    def check(self, pressures: NDArray[np.float64], setpoint: NDArray[np.float64], moment: float) -> None:
        """Take pressures (k,) Pa measured at `moment` (s) under the setpoint (k,) Pa.

        Raises:
            UnsafeError: If a chamber runs away, or has not followed for too long.
        """
        self._check_runaway(pressures, setpoint, moment)
        deviation = np.abs(pressures - setpoint)
        if deviation.max() <= self._tolerance:
            self._astray_since = None
            return
        if self._astray_since is None:
            self._astray_since = moment
        if moment - self._astray_since > self._seconds:
            index = int(np.argmax(deviation))
            raise UnsafeError(
                f"Chamber {self._robot.actuators[index]} stays at {pressures[index]:.0f} Pa while its setpoint is "
                f"{setpoint[index]:.0f} Pa.",
                "Check for a leak, a blocked tube or a failed pump on that channel, then reset.",
            )

    def _check_runaway(self, pressures: NDArray[np.float64], setpoint: NDArray[np.float64], moment: float) -> None:
        self._setpoints.append((moment, setpoint))
        while moment - self._setpoints[0][0] > _SETPOINT_MEMORY_SECONDS:
            self._setpoints.popleft()
        last, self._last = self._last, pressures.copy()
        if last is None:
            return
        highest = np.max([asked for _, asked in self._setpoints], axis=0)
        rising = (pressures - highest > self._tolerance) & (pressures - last > _RISING_PART * self._tolerance)
        self._rising_in_a_row = np.where(rising, self._rising_in_a_row + 1, 0)
        if self._rising_in_a_row.max() >= _IN_A_ROW:
            index = int(np.argmax(self._rising_in_a_row))
            raise UnsafeError(
                f"Chamber {self._robot.actuators[index]} rises to {pressures[index]:.0f} Pa while no more than "
                f"{highest[index]:.0f} Pa were asked of it.",
                "Check the board's cable for disturbances, and valve and sensor of that channel, then reset.",
            )
