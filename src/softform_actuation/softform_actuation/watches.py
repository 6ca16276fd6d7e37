"""Watches over measured values that hold for any actuator: what they find is a fault, and makes all safe."""

from collections import deque

import numpy as np

from softform_actuation.device import ServedActuators, UnsafeError
from softform_core.arrays import Array

_IN_A_ROW = 2
"""One reading alone may be a corrupt line that looks like a good one: not every wire has a checksum."""

_RISING_PART = 0.1
"""Share of the tolerance: an actuator that exceeds its last measurement by more runs away; noise is less."""

_FROZEN_SECONDS = 2.0
_FROZEN_MEASUREMENTS = 10
_MOVED_PART = 0.5
"""Share of the tolerance by which a setpoint has to move; of less a board may take no notice."""

_SETPOINT_MEMORY_SECONDS = 1.0
"""A measurement may be so late before the stream is stale: an actuator may still go where it was sent then."""


class RangeWatch:
    """Values beyond the robot's range by more than `margin`, one for all or (k,)."""

    def __init__(self, served: ServedActuators, margin: Array | float) -> None:
        self._served = served
        self._margin = margin
        self._in_a_row = 0

    def reset(self) -> None:
        """Forget what was measured."""
        self._in_a_row = 0

    def check(self, values: Array) -> None:
        """Take (k,) values.

        Raises:
            UnsafeError: If two measurements in a row lie outside.
        """
        served = self._served
        outside = (values > served.actuator_max + self._margin) | (values < served.actuator_min - self._margin)
        self._in_a_row = self._in_a_row + 1 if outside.any() else 0
        if self._in_a_row >= _IN_A_ROW:
            index = int(np.flatnonzero(outside)[0])
            unit = served.units[index]
            raise UnsafeError(
                f"{served.actuators[index]} is at {values[index]:.4g} {unit}; its range is "
                f"{served.actuator_min[index]:g} … {served.actuator_max[index]:g} {unit}.",
                "Check the actuator and the sensor of that channel, then reset.",
            )


class FollowWatch:
    """An actuator that does not follow its target.

    Either it has been further than `tolerance` from its setpoint for `seconds`; or it is so far above all that was
    asked of it in the last second and rises on, in two measurements in a row: then the device has understood another
    target (a lost point turns 3.790 into 3790), or a valve is stuck, and every further moment makes it worse.
    """

    def __init__(self, served: ServedActuators, tolerance: Array | float, seconds: float) -> None:
        self._served = served
        self._tolerance = tolerance
        self._seconds = seconds
        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        self._astray_since: float | None = None
        self._last: Array | None = None
        self._setpoints: deque[tuple[float, Array]] = deque()
        self._rising_in_a_row = np.zeros(len(self._served.actuators), dtype=np.int64)

    def check(self, values: Array, setpoint: Array, moment: float) -> None:
        """Take values (k,) measured at `moment` (s) under the setpoint (k,).

        Raises:
            UnsafeError: If an actuator runs away, or has not followed for too long.
        """
        self._check_runaway(values, setpoint, moment)
        deviation = np.abs(values - setpoint)
        if (deviation <= self._tolerance).all():
            self._astray_since = None
            return
        if self._astray_since is None:
            self._astray_since = moment
        if moment - self._astray_since > self._seconds:
            index = int(np.argmax(deviation / self._tolerance))
            unit = self._served.units[index]
            raise UnsafeError(
                f"{self._served.actuators[index]} stays at {values[index]:.4g} {unit} while its setpoint "
                f"is {setpoint[index]:.4g} {unit}.",
                "Check for a leak, a blocked or failed actuator on that channel, then reset.",
            )

    def _check_runaway(self, values: Array, setpoint: Array, moment: float) -> None:
        if self._setpoints and np.array_equal(self._setpoints[-1][1], setpoint):
            self._setpoints.pop()  # one that stays is kept once, with the moment at which it was last asked for
        self._setpoints.append((moment, setpoint))
        while moment - self._setpoints[0][0] > _SETPOINT_MEMORY_SECONDS:
            self._setpoints.popleft()
        last, self._last = self._last, values.copy()
        if last is None:
            return
        highest = np.max([asked for _, asked in self._setpoints], axis=0)
        rising = (values - highest > self._tolerance) & (values - last > _RISING_PART * self._tolerance)
        self._rising_in_a_row = np.where(rising, self._rising_in_a_row + 1, 0)
        if (self._rising_in_a_row >= _IN_A_ROW).any():
            index = int(np.argmax(self._rising_in_a_row))
            unit = self._served.units[index]
            raise UnsafeError(
                f"{self._served.actuators[index]} rises to {values[index]:.4g} {unit} while no more than "
                f"{highest[index]:.4g} {unit} were asked of it.",
                "Check the cable for disturbances, and actuator and sensor of that channel, then reset.",
            )


class FrozenWatch:
    """A value that stays the same to the last digit for 2 s and ten measurements after its setpoint has moved away.

    A sensor's line that is stuck, or a firmware that sends its last reading again and again, may lie near enough to the
    setpoint for `FollowWatch`. At rest a value may well stand still: a sensor's step may be larger than its noise.
    """

    def __init__(self, served: ServedActuators, tolerance: Array | float) -> None:
        self._served = served
        self._tolerance = tolerance
        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        count = len(self._served.actuators)
        self._last = self._begun_at = np.full(count, np.nan)
        self._seconds, self._measurements = np.zeros(count), np.zeros(count, dtype=np.int64)
        self._moment = 0.0

    def check(self, values: Array, setpoint: Array, moment: float) -> None:
        """Take values (k,) measured at `moment` (s) under the setpoint (k,).

        Raises:
            UnsafeError: If one stands still though its setpoint has moved.
        """
        changed = values != self._last
        moved = np.abs(setpoint - self._begun_at) > _MOVED_PART * self._tolerance
        self._seconds = np.where(changed, 0.0, self._seconds + moved * (moment - self._moment))
        self._measurements = np.where(changed, 0, self._measurements + moved)
        self._begun_at = np.where(changed, setpoint, self._begun_at)
        self._last, self._moment = values.copy(), moment
        frozen = (self._seconds >= _FROZEN_SECONDS) & (self._measurements >= _FROZEN_MEASUREMENTS)
        if frozen.any():
            index = int(np.flatnonzero(frozen)[0])
            unit = self._served.units[index]
            raise UnsafeError(
                f"{self._served.actuators[index]} reads {values[index]:.4g} {unit} without any change for "
                f"{self._seconds[index]:.1f} s, though its setpoint went from {self._begun_at[index]:.4g} to "
                f"{setpoint[index]:.4g} {unit}.",
                "Check sensor, actuator and cable of that channel, and whether the device still measures, then reset.",
            )
