"""The emulated OpenPneu boards, which speak in lines: Protocol A as it is shipped, Protocol B as docs/boards.md has it.

Requests end in CR LF, so do replies. Of Protocol A the stream line comes once a control tick between replies; what its
public description leaves open is decided here and listed in docs/nodes/rig.md. Protocol B was not compared with a real
board.
"""

import math
import re
from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.plant import Plant
from softform_rig.control import DEFAULT_THRESHOLD, regulate
from softform_rig.emulated_board import CHANNELS, EmulatedBoard, Sensors
from softform_rig.rig_settings import FirmwareKind

LONGEST_REQUEST = 64  # bytes, the receive buffer of the board


class LineBoard(EmulatedBoard):
    """A board whose protocol is `_answer`.

    Attributes:
        vent_request: The line by which a host has all channels vent.
    """

    vent_request: ClassVar[str]

    def vent_ends(self, data: bytes) -> list[int]:
        """As `EmulatedBoard.vent_ends`."""
        return [found.end() for found in self._vent_line.finditer(data)]

    @cached_property
    def _vent_line(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?<![^\n])" + re.escape(self.vent_request.encode()) + rb"\r\n")

    def _forget(self) -> None:
        self._request = bytearray()
        self._overrun = False

    def _hear(self, data: bytes) -> None:
        for byte in data:
            if byte == ord("\n"):
                self._end_of_request()
            elif len(self._request) < LONGEST_REQUEST:
                self._request.append(byte)
            else:
                self._overrun = True

    def _end_of_request(self) -> None:
        request, overrun = bytes(self._request), self._overrun
        self._request.clear()
        self._overrun = False
        if not overrun and not request.endswith(b"\r"):
            self._say("Error end check")
        elif overrun or not self._answer(request[:-1].decode("latin-1")):
            self._say("Error command")

    def _say(self, line: str) -> None:
        self._output += line.encode("ascii") + b"\r\n"

    @abstractmethod
    def _answer(self, request: str) -> bool:
        """Do what a request says, and answer it; returns whether it was understood."""


def finite_number(text: str) -> float | None:
    """A number of a request, or None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


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


_PRESSURE = re.compile(r"-?\d{1,4}\.\d\d")
_ADDRESS = re.compile(r"\d\d")
_FULL_SPEED = 100.0  # %


class ProtocolBBoard(LineBoard):
    """Speaks only when it is asked. A channel that is off vents; by hand its valve may be closed and its pumps run."""

    vent_request = "COFF:ALL"

    def _forget(self) -> None:
        super()._forget()
        self._address = "00"
        self._targets: Array = np.zeros(CHANNELS)
        self._on: NDArray[np.bool_] = np.zeros(CHANNELS, dtype=bool)

    def _act(self) -> None:
        channels, by_hand = self.channels, np.flatnonzero(~self._on)
        commands = (channels.inflate, channels.deflate, channels.vent)
        kept = [command[by_hand] for command in commands]
        regulate(self._targets, self._readings, DEFAULT_THRESHOLD, *commands)
        for command, value in zip(commands, kept, strict=True):
            command[by_hand] = value

    def _answer(self, request: str) -> bool:
        reply = self._whole_board(request) or self._one_channel(request)
        if reply is None:
            return False
        self._say(reply)
        return True

    def _whole_board(self, request: str) -> str | None:
        """Reply to what names no channel, or None."""
        name, _, value = request.partition("=")
        if request == "AT":
            return "OK"
        if request == "AT+ADD":
            return f"ADD={self._address}"
        if name == "AT+SADD" and _ADDRESS.fullmatch(value):
            self._address = value
            return request.removeprefix("AT+")
        if request == "AT+RST":
            self.boot(self._time)
            return "OK"
        if request in ("CON:ALL", "COFF:ALL"):
            self._switch(list(range(CHANNELS)), request == "CON:ALL")
            return "ALL ON" if request == "CON:ALL" else "ALL OFF"
        if request.startswith("PSET:") and request.endswith(";"):
            pressures = request[len("PSET:") : -1].split(",")
            if len(pressures) == CHANNELS and all(map(_PRESSURE.fullmatch, pressures)):
                self._targets[:] = [float(pressure) for pressure in pressures]
                return "OK"
        return None

    def _one_channel(self, request: str) -> str | None:
        """Reply to what names a channel, or None."""
        name, _, words = request.partition("=")
        number, *value = words.split(",")
        if not _ADDRESS.fullmatch(number) or int(number) >= CHANNELS:
            return None
        channel = int(number)
        if name == "PREAD" and not value:
            return f"Val={self._readings[channel]:.2f}"
        if name in ("CON", "COFF") and not value:
            self._switch([channel], name == "CON")
            return "ON" if name == "CON" else "OFF"
        if name == "PSET" and len(value) == 1 and _PRESSURE.fullmatch(value[0]):
            self._targets[channel] = float(value[0])
            return words.replace(",", "=")
        if name in ("VON", "VOFF") and not value:
            self.channels.vent[channel] = name == "VON"
            return "OK"
        speed = finite_number(value[0]) if name == "PSPEED" and len(value) == 1 else None
        if speed is None or abs(speed) > _FULL_SPEED:
            return None
        self.channels.inflate[channel] = max(0.0, speed / _FULL_SPEED)
        self.channels.deflate[channel] = max(0.0, -speed / _FULL_SPEED)
        return "OK"

    def _switch(self, channels: list[int], on: bool) -> None:
        self._on[channels] = on
        if not on:
            self.channels.stop(channels)
