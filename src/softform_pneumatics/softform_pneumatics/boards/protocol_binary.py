"""Codec of the binary board: ten-byte packets over RS-485, as docs/boards.md defines them.

Pascal on this side; on the wire a pressure is a word, kPa = 0.0125 word - 100. A packet carries a CRC and the sequence
number of its request, so that an answer can be distinguished from noise and from a late answer.
"""

import binascii
import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from softform_core.errors import SoftformError
from softform_core.units import PA_PER_KPA

PACKET_BYTES = 10
BAUD_RATE = 1_000_000
CHANNELS_OF_A_MODULE = 4
MOST_MODULES = 4
ALL_MODULES = 0
DEFINITION = 1
MARK = 0x5046

_FROM_HOST, _FROM_MODULE = 0xA0, 0x50
_ANSWER = 0x80
_CRC_START = 0xFFFF
_PASCAL_A_COUNT = 0.0125 * PA_PER_KPA
_LOWEST = -100.0 * PA_PER_KPA
_INVALID_WORD = 0xFFFF
_LAYOUT = struct.Struct(">BBBHHB")


class Command(IntEnum):
    """What the host asks."""

    WHO = 0x01
    CONFIGURE = 0x02
    START = 0x03
    SET = 0x04
    READ = 0x05
    VENT = 0x06


class Status(IntFlag):
    """What a module says of itself in every answer but that to WHO."""

    RUNNING = 1
    TRIPPED = 2
    REFUSED = 4
    SENSOR_FAULT = 8
    BOOTED = 16
    SECOND_PAIR = 32


_COMMANDS = frozenset(int(command) for command in Command)
_ALL_STATUS = sum(Status)


@dataclass(frozen=True)
class Answer:
    """One packet of a module.

    Args:
        module: Address of the module, 1 … 4.
        command: The answered command.
        argument: Status of the module, or to WHO the version of the definition.
        words: Two numbers of 0 … 65535.
        sequence: Number of the request.
    """

    module: int
    command: Command
    argument: int
    words: tuple[int, int]
    sequence: int

    @property
    def status(self) -> Status:
        """What the module says of itself."""
        return Status(self.argument)


def request(module: int, command: Command, sequence: int, argument: int = 0, words: tuple[int, int] = (0, 0)) -> bytes:
    """Return the packet that asks `module` (`ALL_MODULES`: all, which do not answer).

    Raises:
        SoftformError: If there is no such module, or a number does not fit into its place.
    """
    if not 0 <= module <= MOST_MODULES:
        raise SoftformError(f"The bus has no module {module}.", f"Use 1 … {MOST_MODULES}.")
    try:
        body = _LAYOUT.pack(_FROM_HOST | module, command, argument, *words, sequence)
    except struct.error as error:
        raise SoftformError(f"A request cannot carry {argument}, {words}: {error}.", "Report this.") from error
    return body + binascii.crc_hqx(body, _CRC_START).to_bytes(2, "big")


def word_of_pressure(pressure: float) -> int:
    """Return the word of a pressure (Pa), the nearest.

    Raises:
        SoftformError: If it is not a finite number that a word can hold.
    """
    # `not <=` also catches NaN.
    if not _LOWEST <= pressure <= _LOWEST + (_INVALID_WORD - 1) * _PASCAL_A_COUNT:
        raise SoftformError(f"{pressure} Pa cannot be sent to the board.", "Give a finite pressure in Pa gauge.")
    return round((pressure - _LOWEST) / _PASCAL_A_COUNT)


def pressure_of_word(word: int) -> float:
    """Return the pressure (Pa) that a word means; NaN for "no valid reading"."""
    return float("nan") if word == _INVALID_WORD else word * _PASCAL_A_COUNT + _LOWEST


class PacketParser:
    """Turns the bytes of the bus, in pieces of any size, into answers.

    It looks for a packet at every byte, so that it finds the next one behind noise or half a packet. What is no packet
    is dropped and counted; nothing raises, and memory stays bounded.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._in_noise = False
        self.corrupt = 0
        self.dropped_bytes = 0

    def feed(self, data: bytes) -> list[Answer]:
        """Take the next bytes and return the answers that they complete, oldest first."""
        self._bytes += data
        answers, start = [], 0
        while len(self._bytes) - start >= PACKET_BYTES:
            answer = _answer(bytes(self._bytes[start : start + PACKET_BYTES]))
            if answer is None:
                self.corrupt += not self._in_noise  # a run of noise counts once
                self._in_noise = True
                self.dropped_bytes += 1
                start += 1
            else:
                self._in_noise = False
                answers.append(answer)
                start += PACKET_BYTES
        del self._bytes[:start]
        return answers


def _answer(packet: bytes) -> Answer | None:
    body, check = packet[:-2], int.from_bytes(packet[-2:], "big")
    address, command, argument, first, second, sequence = _LAYOUT.unpack(body)
    module = address - _FROM_MODULE
    asked = command - _ANSWER
    if not 1 <= module <= MOST_MODULES or asked not in _COMMANDS or binascii.crc_hqx(body, _CRC_START) != check:
        return None
    if asked != Command.WHO and argument > _ALL_STATUS:
        return None
    return Answer(module, Command(asked), argument, (first, second), sequence)
