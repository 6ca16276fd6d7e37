"""Between the robot's chambers and the board's channels, with the offsets of the sensors taken off."""

import numpy as np

from softform_actuation.device import DeviceError, ServedActuators
from softform_core.arrays import Array
from softform_pneumatics.boards.interface import Measurement, PressureBoard


class Wiring:
    """Which channel feeds which chamber, (k,), and what its sensor reads at ambient pressure, (k,) Pa."""

    def __init__(self, served: ServedActuators, board: PressureBoard) -> None:
        """Take the channels of the robot's description; no offsets."""
        self._served = served
        self._board = board
        self.channels = np.array(served.channels)
        self._unused = np.setdiff1d(np.arange(len(board.pressure_min)), self.channels).tolist()
        self.offsets: Array = np.zeros(len(self.channels))

    def require_ranges(self) -> None:
        """Reject a robot whose channels the board does not have, or cannot measure in the robot's range.

        Raises:
            DeviceError: If so, with the chamber.
        """
        served, count = self._served, len(self._board.pressure_min)
        if self.channels.max() >= count:
            index = int(np.argmax(self.channels))
            raise DeviceError(
                f"Chamber {served.actuators[index]} is on channel {self.channels[index]}, but the board has {count}.",
                f"Change `channels` of device '{served.device}' in the robot's description, or choose another board.",
            )
        low, high = self._board.pressure_min[self.channels], self._board.pressure_max[self.channels]
        for index in map(int, np.flatnonzero((served.actuator_min < low) | (served.actuator_max > high))):
            raise DeviceError(
                f"Chamber {served.actuators[index]} works between {served.actuator_min[index]:g} and "
                f"{served.actuator_max[index]:g} Pa, but channel {self.channels[index]} measures "
                f"{low[index]:g} … {high[index]:g} Pa only.",
                f"Change `channels` of device '{served.device}' in the robot's description, or the range of "
                "`actuators`: OpenPneu's even channels measure vacuum too.",
            )

    def pressures(self, measurement: Measurement) -> Array:
        """Pressures of the chambers, (k,) Pa."""
        return measurement.pressures[self.channels] - self.offsets

    def unused(self, measurement: Measurement) -> dict[int, float]:
        """Pa by channel of those that the robot does not use, NaN where the board does not measure."""
        return {channel: float(measurement.pressures[channel]) for channel in self._unused}

    def targets(self, setpoint: Array) -> Array:
        """Targets of all channels, (channels,) Pa, for the chambers' setpoint (k,) Pa; unused channels get zero."""
        targets = np.zeros(len(self._board.pressure_min))
        targets[self.channels] = setpoint + self.offsets
        return np.clip(targets, self._board.pressure_min, self._board.pressure_max)
