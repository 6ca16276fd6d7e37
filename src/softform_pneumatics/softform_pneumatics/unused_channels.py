"""A watch over the channels of a board that the robot does not use."""

from collections.abc import Mapping

from softform_actuation.device import UnsafeError

_IN_A_ROW = 2
"""One reading alone may be a corrupt line that looks like a good one: OpenPneu's wire has no checksum."""


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
