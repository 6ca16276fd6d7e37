"""Packets of Dynamixel Protocol 2.0: instructions to motors, and their answers out of a stream of bytes.

https://emanual.robotis.com/docs/en/dxl/protocol2/. A packet is FF FF FD 00, the id, the length of what follows as two
bytes, the instruction (of an answer 55 and an error), parameters, and a CRC-16; within instruction and parameters
FF FF FD is followed by one more FD.
"""

from collections.abc import Sequence
from typing import NamedTuple

PING, SYNC_READ, SYNC_WRITE = 0x01, 0x82, 0x83
EVERYBODY = 0xFE

_HEADER = b"\xff\xff\xfd\x00"
_STUFFED, _STUFFING = b"\xff\xff\xfd", b"\xff\xff\xfd\xfd"
_STATUS = 0x55
_BEFORE_LENGTH, _BEFORE_INSTRUCTION = 5, 7
_CRC_BYTES = 2
_SHORTEST = 4  # of a status: its instruction, error and CRC
_LONGEST = 512
_POLYNOMIAL = 0x8005


def _crc_row(byte: int) -> int:
    remainder = byte << 8
    for _ in range(8):
        remainder = (remainder << 1) ^ (_POLYNOMIAL if remainder & 0x8000 else 0)
    return remainder & 0xFFFF


_CRC = [_crc_row(byte) for byte in range(256)]


def crc16(data: bytes) -> int:
    """CRC-16 of the polynomial 8005, from 0, most significant bit first."""
    crc = 0
    for byte in data:
        crc = ((crc << 8) & 0xFFFF) ^ _CRC[(crc >> 8) ^ byte]
    return crc


def instruction(motor: int, code: int, parameters: bytes = b"") -> bytes:
    """Packet of one instruction, such as `PING`, to a motor or to `EVERYBODY`."""
    body = (bytes([code]) + parameters).replace(_STUFFED, _STUFFING)
    packet = _HEADER + bytes([motor]) + (len(body) + _CRC_BYTES).to_bytes(2, "little") + body
    return packet + crc16(packet).to_bytes(2, "little")


def ping(motor: int) -> bytes:
    """Ask one motor, or `EVERYBODY`, who is there."""
    return instruction(motor, PING)


def sync_read(motors: Sequence[int], address: int, length: int) -> bytes:
    """Ask several motors for the same registers; they answer one behind the other, in this order."""
    return instruction(EVERYBODY, SYNC_READ, _words(address, length) + bytes(motors))


def sync_write(values: Sequence[tuple[int, bytes]], address: int) -> bytes:
    """Set the same registers of several motors, by id, to data of one length; none of them answers."""
    length = len(values[0][1])
    return instruction(
        EVERYBODY, SYNC_WRITE, _words(address, length) + b"".join(bytes([motor]) + data for motor, data in values)
    )


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(2, "little") for value in values)


class Status(NamedTuple):
    """Answer of a motor: its id, an error (0 if all is well), and the requested bytes."""

    motor: int
    error: int
    parameters: bytes


class StatusReader:
    """Finds answers in a stream of bytes, whatever is lost or damaged between them.

    Attributes:
        damaged: Number of packets so far whose CRC is wrong.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self._bytes = b""

    def forget(self) -> None:
        """Drop the beginning of a packet whose end has not come."""
        self._bytes = b""

    def feed(self, data: bytes) -> list[Status]:
        """Answers that are complete with these bytes; instructions of others on the bus are passed over."""
        self._bytes += data
        found = []
        while (packet := self._next()) is not None:
            body = packet[_BEFORE_INSTRUCTION:-_CRC_BYTES].replace(_STUFFING, _STUFFED)
            if body[0] == _STATUS and len(body) > 1:
                found.append(Status(packet[_BEFORE_LENGTH - 1], body[1], body[2:]))
        return found

    def _next(self) -> bytes | None:
        """The next valid packet, taken from the bytes; None if there is none yet."""
        while True:
            start = self._bytes.find(_HEADER)
            if start < 0:
                self._bytes = self._bytes[-len(_HEADER) + 1 :]
                return None
            self._bytes = self._bytes[start:]
            if len(self._bytes) < _BEFORE_INSTRUCTION:
                return None
            length = int.from_bytes(self._bytes[_BEFORE_LENGTH:_BEFORE_INSTRUCTION], "little")
            end = _BEFORE_INSTRUCTION + length
            if not _SHORTEST - 1 <= length <= _LONGEST:
                self._skip()
                continue
            if len(self._bytes) < end:
                return None
            packet = self._bytes[:end]
            if crc16(packet[:-_CRC_BYTES]) != int.from_bytes(packet[-_CRC_BYTES:], "little"):
                self._skip()
                continue
            self._bytes = self._bytes[end:]
            return packet

    def _skip(self) -> None:
        """Look for another packet behind this header."""
        self.damaged += 1
        self._bytes = self._bytes[1:]
