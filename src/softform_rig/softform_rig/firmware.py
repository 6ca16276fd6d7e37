"""The emulated OpenPneu board as it is shipped: Protocol A.

Requests end in CR LF, so do replies; the stream line comes once a control tick between replies. What the
public description leaves open is decided here and listed in docs/nodes/rig.md.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.plant import Plant
from softform_rig.control import DEFAULT_THRESHOLD, regulate
from softform_rig.emulated_board import CHANNELS, Sensors
from softform_rig.line_board import LineBoard, finite_number
from softform_rig.rig_settings import FirmwareKind

_SHIPPED_REGULATED = (2, 3)


class Firmware(LineBoard):
    """State machine of the board.

    Args:
        plant: pneumatics of its channels.
        sensors: its pressure sensors; ideal if not given.
        kind: `regulated` controls all ten channels; `shipped` behaves like the published snapshot (targets in pairs,
            odd channels show their even neighbour's sensor, only channels 2 and 3 are regulated).
    """

    vent_request = "V"

    def __init__(self, plant: Plant, sensors: Sensors | None = None, kind: FirmwareKind = "regulated") -> None:
        """Build a board that has just been powered and finished booting at time 0."""
        self.kind = kind
        super().__init__(plant, sensors)

    def _forget(self) -> None:
        super()._forget()
        self._selected = 0
        self._targets: Array = np.zeros(CHANNELS)
        self._stopped: NDArray[np.bool_] = np.zeros(CHANNELS, dtype=bool)
        self._threshold = DEFAULT_THRESHOLD
        self._running = False

    def _act(self) -> None:
        if self._running:
            self._control()
            self._say("T" + ",".join(f"{p:.2f}" for p in self._readings) + ";")

    def _read(self) -> Array:
        readings = super()._read()
        if self.kind == "shipped":
            readings[1::2] = readings[0::2]
        return readings

    def _control(self) -> None:
        channels = self.channels
        regulate(self._targets, self._readings, self._threshold, channels.inflate, channels.deflate, channels.vent)
        idle = self._stopped.copy()
        if self.kind == "shipped":
            idle[[c for c in range(CHANNELS) if c not in _SHIPPED_REGULATED]] = True
        channels.stop(np.flatnonzero(idle).tolist())

    def _answer(self, request: str) -> bool:
        fixed = {"AT": "OK;Successful", "AT+VERSION": "Version 2.0OK", "AT+ADDRESS": "OpenPneu2.0"}
        name, equals, value = request.partition("=")
        number = finite_number(value) if equals else None
        if request in fixed:
            self._say(fixed[request])
        elif request == "AT+PRESSURE":
            self._say(f"{self._readings[0]:.2f}")
        elif request == "C":
            self._running = True
            self._say("Timer Starts...")
        elif request == "V":
            self._running = False
            self.channels.stop()
            self._say("Timer Pauses...")
            self._say("Stop All Motors")
        elif request in ("P", "PP"):
            self._stop_channels([self._selected] if request == "P" else list(range(CHANNELS)))
        elif name == "SC" and number is not None and number in range(CHANNELS):
            self._selected = int(number)
            self._say(f"Global Channel is {self._selected}")
        elif name == "ST" and number is not None:
            self._threshold = number
            self._say(f"Global Threshold is {number:.2f}")
        elif name == "T" and number is not None:
            self._set_target(number)
        else:
            return False
        return True

    def _set_target(self, target: float) -> None:
        chosen = [self._selected, self._selected ^ 1] if self.kind == "shipped" else [self._selected]
        self._targets[chosen] = target
        self._stopped[chosen] = False

    def _stop_channels(self, channels: list[int]) -> None:
        self._stopped[channels] = True
        self.channels.stop(channels)
