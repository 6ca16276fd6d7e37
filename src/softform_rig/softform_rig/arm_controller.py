"""The emulated controller of arms: joints with limits of velocity and acceleration, brakes, a watchdog, a stop button.

Written from the table of the wire alone, apart from the driver's side.
"""

import binascii
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_rig.fault_kinds import Fault

__all__ = ["ArmController"]

STREAM_SECONDS = 0.02
_STEP = 0.004
_BRAKING = 10.0
"""Deceleration of the brakes over the limit of acceleration."""
_QUANTUM = 1e-5
"""Of an encoder, rad."""
_SLIP = -0.04
"""Speed of a joint whose brake slips, rad/s."""
_LONGEST_CATCH_UP = 0.5
_BACKLOG = 8192
_EASE = 0.8
"""Of the speed from which a joint would just stop at the point by its limit of acceleration."""


class ArmController:
    """Joints that follow points, an `EmulatedDevice`; numbered as on the wire.

    Attributes:
        places: (n,) true positions, rad.
        speeds: (n,) rad/s.
        mode: As the wire has it: D, B, W or E.

    Args:
        start: (n,) where the joints are at first.
        offset: (n,) by which they truly stand beside where the encoders have them.
        velocity: (n,) largest that the arms are made for, rad/s.
        acceleration: (n,) the same, rad/s^2.
    """

    boots_on_open = False

    def __init__(self, start: Array, offset: Array, velocity: Array, acceleration: Array) -> None:
        count = len(start)
        self.places, self.speeds = np.array(start + offset), np.zeros(count)
        self.mode = "B"
        self.usual_boot_seconds = self.boot_seconds = 0.0
        self.is_hung = self.is_stopped = False
        self._offset, self._most = offset, (np.array(velocity), np.array(acceleration))
        self._velocity, self._acceleration = self._most
        self._low, self._high = np.full(count, -np.pi), np.full(count, np.pi)
        self._watchdog, self._target = 0.1, np.array(start)
        self._slipping: list[int] = []
        self._stuck: list[int] = []
        self._heard, self._output = b"", b""
        self._time = self._streamed = self._heard_point = 0.0

    @property
    def is_held(self) -> bool:
        """Whether brakes are on and all joints truly stand still."""
        return self.mode != "D" and not self.speeds.any()

    def actuator_values(self, channels: list[int]) -> Array:
        """True positions of these joints, rad."""
        return np.asarray(self.places[channels])

    def boot(self, now: float) -> None:
        """Brakes are on without power."""
        self.mode, self._heard = "B", b""

    def suffer(self, showing: Callable[[str], list[Fault]]) -> None:
        """Feel the faults that are on."""
        self._slipping = [fault.channel for fault in showing("slipping_brake") if fault.channel < len(self.places)]
        self._stuck = [fault.channel for fault in showing("stuck_joint") if fault.channel < len(self.places)]
        self.is_stopped = bool(showing("stop_button"))
        if self.is_stopped and self.mode != "E":
            self._brake("E")

    def vent_ends(self, data: bytes) -> list[int]:
        """Where requests to brake end."""
        request = _line(b"H")
        return [at + len(request) for at in range(len(data)) if data.startswith(request, at)]

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host."""
        self.advance(now)
        *lines, self._heard = (self._heard + data).split(b"\n")
        self._heard = self._heard[-_BACKLOG:]
        for line in [] if self.is_hung else lines:
            payload, _, checksum = line.rpartition(b"*")
            if payload and checksum == _checksum(payload):
                kind, *words = payload.decode("ascii", "replace").split()
                self._obey(kind, words, now)

    def advance(self, now: float) -> None:
        """Let time pass."""
        if now - self._time > _LONGEST_CATCH_UP:
            self._time = now - _LONGEST_CATCH_UP
        while self._time + _STEP <= now:
            self._time += _STEP
            if self.mode == "D" and not self.is_hung and self._time - self._heard_point > self._watchdog:
                self._brake("W")
            self._move(_STEP)
        if self.mode == "D" and not self.is_hung and now - self._streamed >= STREAM_SECONDS:
            self._streamed = now
            self._tell()

    def _brake(self, mode: str) -> None:
        """Brake by itself, and say so."""
        self.mode = mode
        if not self.is_hung:
            self._tell()

    def _tell(self) -> None:
        self._say(b"S", [self.mode, *_words(self._measured), *_words(self.speeds)])

    def take_output(self) -> bytes:
        """Return and forget what was sent."""
        sent, self._output = self._output, b""
        return sent

    @property
    def _measured(self) -> Array:
        return np.asarray(_QUANTUM * np.round((self.places - self._offset) / _QUANTUM))

    def _move(self, seconds: float) -> None:
        if self.mode == "D":
            gap = self._target - (self.places - self._offset)
            way = np.abs(gap)
            fast = np.minimum.reduce([self._velocity, _EASE * np.sqrt(2.0 * self._acceleration * way), way / seconds])
            most = self._acceleration * seconds
            self.speeds = self.speeds + np.clip(np.sign(gap) * fast - self.speeds, -most, most)
        else:
            most = _BRAKING * self._acceleration * seconds
            self.speeds = self.speeds - np.clip(self.speeds, -most, most)
        self.speeds[self._stuck] = 0.0
        self.speeds[self._slipping] = _SLIP
        self.places = self.places + seconds * self.speeds

    def _obey(self, kind: str, words: list[str], now: float) -> None:
        if kind == "W":
            self._say(b"I", [str(len(self.places))])
        elif kind == "L":
            self._limit(words)
        elif kind == "H":
            self.mode = "E" if self.is_stopped else "B"
            self._say(b"H", _words(self._measured))
        elif kind == "Q":
            self._tell()
        elif kind == "D" and self.is_stopped:
            self._say(b"E", [])
        elif kind == "D":
            self.mode, self._target, self._heard_point = "D", self._measured, now
            self._say(b"D", _words(self._target))
        elif kind == "T" and self.mode == "D":
            point = _numbers(words, len(self.places))
            if point is not None and (point >= self._low - _QUANTUM).all() and (point <= self._high + _QUANTUM).all():
                self._target, self._heard_point = point, now

    def _limit(self, words: list[str]) -> None:
        count = len(self.places)
        given = _numbers(words, 1 + 4 * count)
        if given is None or self.mode == "D":
            return
        velocity, acceleration, self._low, self._high = given[1:].reshape(4, count)
        self._velocity, self._acceleration = (
            np.minimum(velocity, self._most[0]),
            np.minimum(acceleration, self._most[1]),
        )
        self._watchdog = float(given[0])
        taken = np.concatenate([given[:1], self._velocity, self._acceleration, self._low, self._high])
        self._say(b"L", _words(taken))

    def _say(self, kind: bytes, words: list[str]) -> None:
        self._output += _line(b" ".join([kind, *(word.encode("ascii") for word in words)]))


def _checksum(payload: bytes) -> bytes:
    return f"{binascii.crc_hqx(payload, 0):04X}".encode("ascii")


def _line(payload: bytes) -> bytes:
    return payload + b"*" + _checksum(payload) + b"\n"


def _words(values: Array) -> list[str]:
    return [f"{value:.6f}" for value in values.tolist()]


def _numbers(words: list[str], count: int) -> NDArray[np.float64] | None:
    try:
        found = np.array([float(word) for word in words])
    except ValueError:
        return None
    return found if len(found) == count and np.isfinite(found).all() else None
