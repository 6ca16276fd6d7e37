"""The emulated modules of the binary board on one RS-485 bus: ten-byte packets, a watchdog; see docs/boards.md."""

import binascii
import struct
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from softform_core.arrays import Array
from softform_rig.control import regulate
from softform_rig.emulated_board import CHANNELS, EmulatedBoard

MODULES, VALVES, PAIR = 3, 4, 2
PACKET = struct.Struct(">BBBHHB")
PACKET_LENGTH = PACKET.size + 2
WHO, CONFIGURE, START, SET, READ, VENT = range(1, 7)
ANSWER = 0x80
RUNNING, TRIPPED, REFUSED, BAD_SENSOR, BOOTED, SECOND_PAIR = (1 << bit for bit in range(6))

_FROM_HOST, _FROM_MODULE, _EVERYBODY = 0xA0, 0x50, 0
_VERSION, _IDENTITY, _FIRMWARE = 1, 0x5046, 0x0100
_AMBIENT, _HIGHEST, _NO_READING = 8000, 63120, 0xFFFF
_STEP, _LOWEST_KPA = 0.0125, -100.0  # kPa
_SHORTEST_WATCHDOG, _LONGEST_WATCHDOG = 20, 2000  # ms
_THRESHOLD = 0.05  # kPa; its proportional valves let go what is more than that above the target


def with_crc(packet: bytes) -> bytes:
    """A packet's first eight bytes with their CRC-16/IBM-3740 behind them."""
    return packet + binascii.crc_hqx(packet, 0xFFFF).to_bytes(2, "big")


def to_word(pressure: float) -> int:
    """A pressure in kPa as the word that stands for it."""
    return int(np.clip(round((pressure - _LOWEST_KPA) / _STEP), 0, _NO_READING - 1))


def from_word(word: int) -> float:
    """The pressure in kPa that a word stands for."""
    return _STEP * word + _LOWEST_KPA


@dataclass
class _Module:
    """State of one module; targets in kPa, one for each valve."""

    first: int
    targets: Array = field(default_factory=lambda: np.zeros(VALVES))
    watchdog: int = 250  # ms
    highest: int = _HIGHEST
    status: int = BOOTED
    fed_at: float = 0.0
    too_high: int = 0  # measurements in a row

    @property
    def valves(self) -> slice:
        return slice(self.first, self.first + VALVES)


class BinaryBus(EmulatedBoard):
    """Three modules of four valves; the last two valves are there, but no robot's description can name them."""

    channel_count: ClassVar[int] = MODULES * VALVES
    control_rate: ClassVar[float] = 250.0
    usual_boot_seconds = 0.5
    boots_on_open: ClassVar[bool] = False
    longest_catch_up: ClassVar[float] = 0.1

    def vent_ends(self, data: bytes) -> list[int]:
        """As `EmulatedBoard.vent_ends`."""
        starts = (i for i in range(len(data) - PACKET_LENGTH + 1) if data[i + 1] == VENT)
        return [i + PACKET_LENGTH for i in starts if _is_request(data[i : i + PACKET_LENGTH])]

    def _forget(self) -> None:
        self._heard = b""
        self._modules = [_Module(VALVES * number) for number in range(MODULES)]

    def _read(self) -> Array:
        pressure = self.channels.pressure
        return np.concatenate([self.sensors.read(pressure[:CHANNELS], self._powered), pressure[CHANNELS:]])

    def _hear(self, data: bytes) -> None:
        self._heard += data
        while len(self._heard) >= PACKET_LENGTH:
            if _is_request(self._heard[:PACKET_LENGTH]):
                self._take(self._heard[:PACKET_LENGTH])
                self._heard = self._heard[PACKET_LENGTH:]
            else:
                self._heard = self._heard[1:]

    def _act(self) -> None:
        channels = self.channels
        for module in self._modules:
            if not module.status & RUNNING:
                continue
            valves = module.valves
            measured = self._readings[valves]
            module.too_high = module.too_high + 1 if (measured > from_word(module.highest)).any() else 0
            if module.too_high > 1 or self._time - module.fed_at > module.watchdog / 1000.0:
                self._vent(module)
                module.status |= TRIPPED
                continue
            commands = (channels.inflate[valves], channels.deflate[valves], channels.vent[valves])
            regulate(module.targets, measured, _THRESHOLD, *commands)

    def _skip(self, seconds: float) -> None:
        """No watchdog runs out because this process was held up: requests were waiting all the while."""
        super()._skip(seconds)
        for module in self._modules:
            module.fed_at += seconds

    def _take(self, packet: bytes) -> None:
        start, command, argument, first, second, sequence = PACKET.unpack(packet[: PACKET.size])
        address = start - _FROM_HOST
        for number, module in enumerate(self._modules, start=1):
            if address in (number, _EVERYBODY):
                status, words = self._obey(module, command, argument, (first, second))
                answer = PACKET.pack(_FROM_MODULE + number, command | ANSWER, status, *words, sequence)
                if address != _EVERYBODY:
                    self._output += with_crc(answer)

    def _obey(self, module: _Module, command: int, pair: int, words: tuple[int, int]) -> tuple[int, tuple[int, int]]:
        """Byte 2 and words of the answer."""
        if command == WHO:
            return _VERSION, (_IDENTITY, _FIRMWARE)
        understood, answer = True, (0, 0)
        if command == CONFIGURE:
            understood = self._configure(module, *words)
            answer = (module.watchdog, module.highest)
        elif command == START:
            understood = self._start(module)
        elif command == VENT:
            self._vent(module)
            module.status = 0
        elif command in (SET, READ) and pair < VALVES // PAIR:
            understood = command == READ or self._set(module, pair, words)
            measured = self._readings[module.first + PAIR * pair :][:PAIR]
            answer = (to_word(float(measured[0])), to_word(float(measured[1])))
        else:
            understood = False
        status = module.status | (0 if understood else REFUSED)
        return status | (SECOND_PAIR if command in (SET, READ) and pair == 1 else 0), answer

    def _configure(self, module: _Module, watchdog: int, highest: int) -> bool:
        fits = _SHORTEST_WATCHDOG <= watchdog <= _LONGEST_WATCHDOG and _AMBIENT <= highest <= _HIGHEST
        if module.status & RUNNING or not fits:
            return False
        module.watchdog, module.highest = watchdog, highest
        return True

    def _start(self, module: _Module) -> bool:
        if module.status & TRIPPED:
            return False
        if not module.status & RUNNING:
            module.status |= RUNNING
            module.fed_at, module.too_high = self._time, 0
        return True

    def _set(self, module: _Module, pair: int, words: tuple[int, int]) -> bool:
        if not all(_AMBIENT <= word <= module.highest for word in words):
            return False
        module.targets[PAIR * pair : PAIR * (pair + 1)] = [from_word(word) for word in words]
        module.fed_at = self._time
        return True

    def _vent(self, module: _Module) -> None:
        module.status &= ~RUNNING
        module.targets[:] = 0.0
        self.channels.stop(list(range(module.first, module.first + VALVES)))


def _is_request(packet: bytes) -> bool:
    """Whether ten bytes are a packet from the host to a module that may be there."""
    return packet[0] & 0xF0 == _FROM_HOST and with_crc(packet[: PACKET.size]) == packet
