"""The emulated OpenPneu board of Protocol B, as docs/boards.md has it; not compared with a real one."""

import re

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_rig.control import DEFAULT_THRESHOLD, regulate
from softform_rig.emulated_board import CHANNELS
from softform_rig.line_board import LineBoard, finite_number

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
