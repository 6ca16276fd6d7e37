"""Taking off the steady error that a proportional board leaves: a slow, bounded change of the targets it is sent.

A board that regulates in proportion to the error needs an error to keep its pumps turning, and more of one to start
them: its chambers rest below their targets. The trim is what the target must lie beyond the setpoint for the pressure
to be there. It is learned at rest only: in motion, lag looks like a steady error.
"""

import numpy as np

from softform_core.arrays import Array

LARGEST_TRIM = 300.0  # Pa: a sensor that reads too low, or a leak, must not pump up a chamber by more
_TRANSIENT_SECONDS = 0.2  # after the setpoint's last change: what is read then is the way there
_WINDOW_SECONDS = 0.4
_FEWEST_READINGS = 5
_SHARE = 0.8  # of an error that is taken off at once
_NEGLIGIBLE = 10.0  # Pa: each change of a target takes time on the wire
_SMALL = 25.0  # Pa, twice what noise makes of the median: what is larger is worth waiting for
_MOST_WINDOWS = 2  # to be waited for: a leak may leave an error for ever


class SteadyErrorTrim:
    """Learns the trim of every chamber from the readings; pressures between `pressure_min` and `pressure_max` (k,) Pa.

    Attributes:
        value: (k,) Pa, within ±`LARGEST_TRIM`.
    """

    def __init__(self, pressure_min: Array, pressure_max: Array) -> None:
        # A vented robot is at zero, even outside its range: nothing may be pumped up to reach that range by itself.
        self._lowest, self._highest = np.minimum(pressure_min, 0.0), np.maximum(pressure_max, 0.0)
        self._window: list[tuple[float, Array]] = []
        self.reset()

    def reset(self) -> None:
        """Forget what was learned: the board has been vented."""
        self.value: Array = np.zeros(len(self._lowest))
        self._setpoint: Array = np.zeros(len(self._lowest))
        self._rests_from = np.inf
        self._windows = 0
        self._last_error = np.inf
        self._window.clear()

    @property
    def is_done(self) -> bool:
        """Whether the steady error at this setpoint has been seen to be small, or taken off as far as it can be."""
        return self._windows >= _MOST_WINDOWS or self._last_error <= _SMALL

    def targets(self, setpoint: Array, moment: float) -> Array:
        """Targets (k,) Pa for the setpoint (k,) Pa of `moment` (s).

        No target is beyond the robot's range, of which zero is a part. A trim is at most the setpoint: zero stays
        zero, and no target is on the other side of ambient pressure.
        """
        if np.isinf(self._rests_from) or not np.array_equal(setpoint, self._setpoint):
            self._setpoint, self._rests_from = setpoint.copy(), moment + _TRANSIENT_SECONDS
            self._windows, self._last_error = 0, np.inf
            self._window.clear()
        room = np.abs(setpoint)
        trimmed = setpoint + np.clip(self.value, -room, room)
        return np.clip(trimmed, self._lowest, self._highest)

    def take(self, pressures: Array, moment: float) -> None:
        """Learn from pressures (k,) Pa measured at `moment` (s)."""
        if moment < self._rests_from:
            return
        self._window.append((moment, self._setpoint - pressures))
        if moment - self._window[0][0] < _WINDOW_SECONDS or len(self._window) < _FEWEST_READINGS:
            return
        # The median: a corrupt line that looks like a good one is no error of the board.
        error = np.median([error for _, error in self._window], axis=0)
        self._windows, self._last_error = self._windows + 1, float(np.abs(error).max())
        error[(np.abs(error) < _NEGLIGIBLE) | (self._setpoint == 0.0)] = 0.0
        self.value = np.clip(self.value + _SHARE * error, -LARGEST_TRIM, LARGEST_TRIM)
        self._window.clear()
