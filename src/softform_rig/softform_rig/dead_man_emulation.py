"""An emulated dead-man: the relay in the supply of the rig's boards, and the controller that closes it.

Written from docs/dead-man.md, apart from the driver and from the program of a real one. Boards keep the power of their
logic, which comes by USB: while the relay is open their pumps stand and their valves vent, and they answer as ever.
"""

from __future__ import annotations

import binascii
import re
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from softform_core.robots.description import Description
from softform_rig.emulation import EmulatedDevice, Emulation
from softform_rig.fault_kinds import FaultKind

if TYPE_CHECKING:
    from softform_core.arrays import Array
    from softform_core.robots import Robot
    from softform_core.robots.devices import Device
    from softform_rig.fault_schedule import Showing
    from softform_rig.rig_settings import RigSettings

SUPPLY = 24.0
"""V, of what the relay switches."""

CUT_SECONDS = 0.5
_TELL_SECONDS = 0.1
_RELEASE_SECONDS = 0.2
_STEP = 0.01  # s
_LONGEST_LINE = 64
_CUT = re.compile(rb"(?<![^\n])X\r?\n")


class DeadMan(EmulatedDevice):
    """A device that moves nothing, and needs no time to boot; while it hangs the relay stays as it is.

    Attributes:
        is_welded: Whether the relay conducts whatever is asked of it.
        state: `cut`, `armed`, `latched` or `welded`.
    """

    def __init__(self) -> None:
        self.is_welded = False
        self._heard, self._output = b"", bytearray()
        self._time = 0.0
        self._start()

    @property
    def is_closed(self) -> bool:
        """Whether what is behind the relay has power."""
        return self._is_driven or self.is_welded

    def actuator_values(self, channels: list[int]) -> Array:
        """It has none, (0,)."""
        return np.empty(0)

    def boot(self, now: float) -> None:
        """Restart the controller at `now`, s, which opens the relay."""
        self.advance(now)
        self._start()

    def suffer(self, showing: Showing) -> None:
        """Let the relay feel the faults that are on."""
        self.is_welded = bool(showing("welded_relay"))

    def vent_ends(self, data: bytes) -> list[int]:
        """Where requests to cut the supply end among bytes from the wire."""
        return [found.end() for found in _CUT.finditer(data)]

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host at time `now`, s."""
        self.advance(now)
        if self.is_hung:
            return
        *lines, rest = (self._heard + data).split(b"\n")
        self._heard = rest[:_LONGEST_LINE]
        for line in lines:
            self._obey(line.strip())
            self._watch()

    def advance(self, now: float) -> None:
        """Let time pass up to `now`, s; heartbeats were waiting while this process was held up."""
        if (late := now - self._time - CUT_SECONDS / 2.0) > 0.0:
            self._time += late
            self._fed_at += late
        while self._time + _STEP <= now:
            self._time += _STEP
            if not self.is_hung:
                self._watch()

    def take_output(self) -> bytes:
        """Return and forget the bytes sent since the last call."""
        sent = bytes(self._output)
        self._output.clear()
        return sent

    def _start(self) -> None:
        self.state, self._is_driven = "cut", False
        self._nonce, self._asked_at = b"", 0.0
        self._last, self._fed_at = 0, 0.0
        self._off_at = self._told_at = self._time
        self._told: tuple[str, bool] | None = None

    def _obey(self, line: bytes) -> None:
        kind, *arguments = line.split() or [b""]
        if kind == b"X":
            self.state, self._is_driven, self._nonce = "cut", False, b""
        elif kind == b"N" and self.state == "cut":
            self._nonce, self._asked_at = secrets.token_hex(4).encode(), self._time
            self._say(b"N " + self._nonce)
        elif kind == b"A" and self.state == "cut":
            nonce, self._nonce = self._nonce, b""
            if nonce and arguments == [_check(b"A" + nonce)] and self._time - self._asked_at < CUT_SECONDS:
                self.state, self._is_driven, self._nonce = "armed", True, nonce
                self._last, self._fed_at = 0, self._time
        elif kind == b"B" and self.state == "armed" and len(arguments) == 2 and arguments[0].isdigit():
            number = int(arguments[0])
            if arguments[1] == _check(b"B " + arguments[0] + self._nonce) and number > self._last:
                self._last, self._fed_at = number, self._time

    def _watch(self) -> None:
        if self.state == "armed" and self._time - self._fed_at > CUT_SECONDS:
            self.state, self._is_driven = "latched", False
        if self._is_driven or not self.is_closed:
            self._off_at = self._time
        elif self._time - self._off_at > _RELEASE_SECONDS:
            self.state = "welded"
        now = (self.state, self.is_closed)
        if now != self._told or self._time - self._told_at >= _TELL_SECONDS:
            self._told, self._told_at = now, self._time
            volts = SUPPLY if self.is_closed else 0.0
            self._say(f"S {self.state} {self.is_closed:d} {self._last} {1000.0 * volts:.0f}".encode())

    def _say(self, words: bytes) -> None:
        self._output += words + b" " + _check(words) + b"\n"


def _check(data: bytes) -> bytes:
    return f"{binascii.crc_hqx(data, 0xFFFF):04x}".encode()


class DeadManEmulation:
    """Relays in the supply of other devices, which move nothing and have no errors; see `Emulation`."""

    field, errors = "", Description
    faults = (FaultKind("welded_relay", "dead-man", "the relay conducts whatever is asked of it"),)

    def check(self, errors: Any, count: int) -> None:
        """As `Emulation.check`."""

    def make(self, robot: Robot, device: Device, errors: Any, settings: RigSettings) -> DeadMan:
        """As `Emulation.make`."""
        return DeadMan()

    def true_values(self, robot: Robot, device: Device, errors: Any, commanded: Array) -> Array:
        """As `Emulation.true_values`."""
        return commanded

    def drawn(self, spans: Array, draw: np.random.Generator) -> Description:
        """As `Emulation.drawn`."""
        return Description()


EMULATION: Emulation = DeadManEmulation()
