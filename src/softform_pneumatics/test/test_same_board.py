"""A board whose cable was pulled is known again by what it said of itself at configure; another one is only vented."""

from collections.abc import Callable

import numpy as np
import pytest

from softform_actuation.device import DeviceError
from softform_actuation.serial_link import SerialLink
from softform_core.plant import load_plant
from softform_pneumatics.boards import protocol_binary
from softform_pneumatics.boards.binary_board import BinaryBoard
from softform_pneumatics.boards.interface import PressureBoard
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA
from softform_pneumatics.boards.openpneu_b import OpenPneuBoardB
from softform_rig.binary_bus import with_crc
from softform_rig.board_emulation import make_board
from softform_rig.emulated_board import Sensors
from softform_rig.rig_settings import BoardName


class Wire(SerialLink):
    """A line to an emulated board, which a test may answer for; no process guards it."""

    def __init__(self, kind: BoardName) -> None:
        super().__init__("/dev/wire")
        self._board = make_board(kind, load_plant(), Sensors())
        self._opened = False
        self.sent: list[bytes] = []
        self.spoil: Callable[[bytes], bytes] = lambda answer: answer

    @property
    def is_open(self) -> bool:
        return self._opened

    def open(self, baud_rate: int) -> None:
        self._opened, self.sent = True, []

    def guard(self, emergency: bytes) -> None:
        pass

    def receive(self, timeout: float) -> bytes:
        return self.spoil(self._board.take_output())

    def write(self, data: bytes) -> None:
        self.sent.append(data)
        self._board.receive(data, self.clock.now())

    def close(self, emergency: bool) -> None:
        assert not emergency
        self._opened = False


def other_firmware(answer: bytes) -> bytes:
    """Of module 2, whichever it has."""
    packet = protocol_binary.PacketParser().feed(answer)
    if not packet or (packet[0].module, packet[0].command) != (2, protocol_binary.Command.WHO):
        return answer
    changed = bytearray(answer[:-2])
    changed[6] ^= 1
    return with_crc(bytes(changed))


KINDS = {
    "openpneu_a": (lambda answer: answer.replace(b"Version 2.0", b"Version 2.1"), "firmware 2.0.* was .*firmware 2.1"),
    "openpneu_b": (lambda answer: answer.replace(b"ADD=00", b"ADD=02"), "address 00.* was .*address 02"),
    "binary": (other_firmware, "2 with firmware .* was there at configure, .*2 with firmware"),
}


def board_of(kind: str, wire: Wire) -> PressureBoard:
    if kind == "openpneu_a":
        return OpenPneuBoardA(wire, vent_threshold=100.0, boot_seconds=0.0)
    channels = list(range(9))
    return OpenPneuBoardB(wire, channels, boot_seconds=0.0) if kind == "openpneu_b" else BinaryBoard(wire, channels)


@pytest.mark.parametrize("kind", KINDS)
def test_another_board_than_at_configure_is_vented_and_not_used(kind: BoardName) -> None:
    wire = Wire(kind)
    board, (other, complaint) = board_of(kind, wire), KINDS[kind]
    board.open()
    opening = len(wire.sent)
    board.close()
    board.open()
    board.close()
    wire.spoil = other
    for _ in range(2):  # it stays another one
        with pytest.raises(DeviceError, match=complaint):
            board.open()
        assert len(wire.sent) == opening and not wire.is_open, "more was sent than was asked and the vent"
    wire.spoil = lambda answer: answer
    board.open()
    board.start(np.zeros_like(board.pressure_max))
    board.vent()
    board.close()
