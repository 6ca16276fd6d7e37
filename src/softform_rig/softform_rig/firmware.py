"""The emulated OpenPneu board: bytes in, bytes out, time handed in. No port, no thread, no clock of its own.

Protocol A: requests end in CR LF, so do replies; the stream line comes once a control tick between replies. What the
public description leaves open is decided here and listed in docs/nodes/rig.md.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softform_rig.control import CONTROL_RATE, DEFAULT_THRESHOLD, regulate
from softform_rig.plant import Channels, Plant

CHANNELS = 10
BOOT_SECONDS = 1.5
LONGEST_REQUEST = 64  # bytes, the receive buffer of the board
_LONGEST_CATCH_UP = 1.0  # s; after a longer pause of the host process the missing time is dropped
_QUANTUM = np.where(
    np.arange(CHANNELS) % 2 == 0, 0.016, 0.008
)  # kPa, ±15 psi sensors on even channels, 0–15 psi on odd
_LOWEST = np.where(np.arange(CHANNELS) % 2 == 0, -np.inf, 0.0)  # kPa; a 0–15 psi sensor reads nothing below ambient
_SHIPPED_REGULATED = (2, 3)

FirmwareKind = Literal["regulated", "shipped"]


@dataclass
class Sensors:
    """Pressure sensors of the board: reading = gain · true pressure + offset (kPa) + noise, rounded to the quantum."""

    gain: NDArray[np.float64] = field(default_factory=lambda: np.ones(CHANNELS))
    offset: NDArray[np.float64] = field(default_factory=lambda: np.zeros(CHANNELS))
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Start the noise."""
        self._random = np.random.default_rng(self.seed)

    def read(self, pressure: NDArray[np.float64]) -> NDArray[np.float64]:
        """Readings (10,) kPa of true pressures (10,) kPa."""
        seen = self.gain * pressure + self.offset + self.noise * self._random.standard_normal(CHANNELS)
        return np.maximum(np.round(seen / _QUANTUM) * _QUANTUM, _LOWEST)


class Firmware:
    """State machine of the board.

    Args:
        plant: pneumatics of its channels.
        sensors: its pressure sensors; ideal if not given.
        kind: `regulated` controls all ten channels; `shipped` behaves like the published snapshot (targets in pairs,
            odd channels show their even neighbour's sensor, only channels 2 and 3 are regulated).
    """

    def __init__(self, plant: Plant, sensors: Sensors | None = None, kind: FirmwareKind = "regulated") -> None:
        """Build a board that has just been powered and finished booting at time 0."""
        self.channels = Channels(plant, CHANNELS)
        self.sensors = sensors or Sensors()
        self.kind = kind
        self._output = bytearray()
        self._time = 0.0
        self._ready_at = 0.0
        self._reset()

    def _reset(self) -> None:
        self._request = bytearray()
        self._overrun = False
        self._selected = 0
        self._targets: NDArray[np.float64] = np.zeros(CHANNELS)
        self._stopped: NDArray[np.bool_] = np.zeros(CHANNELS, dtype=bool)
        self._threshold = DEFAULT_THRESHOLD
        self._running = False
        self.channels.stop()
        self._readings = self._read()

    def boot(self, now: float) -> None:
        """Restart, as opening the port does: silent and deaf for 1.5 s, valves to deflate; pressures stay physical."""
        self.advance(now)
        self._output.clear()
        self._reset()
        self._ready_at = now + BOOT_SECONDS

    def pressures(self) -> NDArray[np.float64]:
        """True pressures (10,) kPa gauge: what the chambers feel, not what the sensors say."""
        return self.channels.pressure.copy()

    def take_output(self) -> bytes:
        """Return and forget the bytes sent since the last call."""
        sent = bytes(self._output)
        self._output.clear()
        return sent

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host at time `now`; bytes that come while booting are lost."""
        self.advance(now)
        if now < self._ready_at:
            return
        for byte in data:
            if byte == ord("\n"):
                self._end_of_request()
            elif len(self._request) < LONGEST_REQUEST:
                self._request.append(byte)
            else:
                self._overrun = True

    def advance(self, now: float) -> None:
        """Let time pass up to `now` (s, monotonic): dynamics always, control and stream once a tick while running."""
        tick = 1.0 / CONTROL_RATE
        if now - self._time > _LONGEST_CATCH_UP:
            self._time = now - _LONGEST_CATCH_UP
        while self._time + tick <= now:
            self._time += tick
            self.channels.advance(tick)
            self._readings = self._read()
            if self._running and self._time >= self._ready_at:
                self._control()
                self._say("T" + ",".join(f"{p:.2f}" for p in self._readings) + ";")

    def _read(self) -> NDArray[np.float64]:
        readings = self.sensors.read(self.channels.pressure)
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

    def _say(self, line: str) -> None:
        self._output += line.encode("ascii") + b"\r\n"

    def _end_of_request(self) -> None:
        request, overrun = bytes(self._request), self._overrun
        self._request.clear()
        self._overrun = False
        if overrun:
            self._say("Error command")
        elif not request.endswith(b"\r"):
            self._say("Error end check")
        else:
            self._answer(request[:-1].decode("latin-1"))

    def _answer(self, request: str) -> None:
        fixed = {"AT": "OK;Successful", "AT+VERSION": "Version 2.0OK", "AT+ADDRESS": "OpenPneu2.0"}
        name, equals, value = request.partition("=")
        number = _number(value) if equals else None
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
            self._say("Error command")

    def _set_target(self, target: float) -> None:
        chosen = [self._selected, self._selected ^ 1] if self.kind == "shipped" else [self._selected]
        self._targets[chosen] = target
        self._stopped[chosen] = False

    def _stop_channels(self, channels: list[int]) -> None:
        self._stopped[channels] = True
        self.channels.stop(channels)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
