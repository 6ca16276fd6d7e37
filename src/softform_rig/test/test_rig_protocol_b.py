"""The emulated Protocol B against the bytes that docs/boards.md gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.plant import load_plant
from softform_rig.line_board import ProtocolBBoard

PLANT = load_plant()


def ask(board: ProtocolBBoard, request: str, now: float = 0.0) -> str:
    board.receive(request.encode() + b"\r\n", now)
    return board.take_output().decode().removesuffix("\r\n")


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        ("AT", "OK"),
        ("AT+ADD", "ADD=00"),
        ("AT+SADD=07", "SADD=07"),
        ("PREAD=03", "Val=0.00"),
        ("PSET=03,2.50", "03=2.50"),
        ("PSET=03,-2.50", "03=-2.50"),
        ("PSET:" + ",".join(["1.00"] * 10) + ";", "OK"),
        ("CON=03", "ON"),
        ("CON:ALL", "ALL ON"),
        ("COFF=03", "OFF"),
        ("COFF:ALL", "ALL OFF"),
        ("VON=03", "OK"),
        ("VOFF=03", "OK"),
        ("PSPEED=03,50", "OK"),
        ("AT+RST", "OK"),
        ("", "Error command"),
        ("AT+ADDRESS", "Error command"),
        ("PREAD=3", "Error command"),
        ("PREAD=10", "Error command"),
        ("PSET=03", "Error command"),
        ("PSET=03,2.5", "Error command"),
        ("PSET=03,nan", "Error command"),
        ("PSET:1.00;", "Error command"),
        ("PSET:" + ",".join(["1.00"] * 10), "Error command"),
        ("AT+SADD=7", "Error command"),
        ("PSPEED=03,200", "Error command"),
        ("C", "Error command"),
    ],
)
def test_replies(request_: str, reply: str) -> None:
    assert ask(ProtocolBBoard(PLANT), request_) == reply


def test_a_request_without_cr_is_an_error() -> None:
    board = ProtocolBBoard(PLANT)
    board.receive(b"AT\n", 0.0)
    assert board.take_output() == b"Error end check\r\n"


def test_it_regulates_channels_that_are_on_and_speaks_only_when_asked() -> None:
    board = ProtocolBBoard(PLANT)
    ask(board, "PSET:" + ",".join(f"{pressure}.00" for pressure in range(1, 11)) + ";")
    ask(board, "CON:ALL")
    ask(board, "COFF=09")
    board.advance(3.0)
    assert board.take_output() == b""
    board.advance(6.0)
    pressures = board.pressures()
    assert pressures[:9] == pytest.approx(np.arange(1.0, 10.0), abs=0.5)
    assert abs(pressures[9]) < 0.05
    assert float(ask(board, "PREAD=04", 6.0).removeprefix("Val=")) == pytest.approx(5.0, abs=0.6)
    ask(board, "COFF:ALL", 6.0)
    for now in (7.0, 8.0):
        board.advance(now)
    assert np.abs(board.pressures()).max() < 0.1, "off is the vent"
    assert ask(board, "PREAD=04", 8.0) == "Val=0.00", "and it goes on answering"


def test_by_hand_a_closed_valve_holds_what_the_pump_gave() -> None:
    board = ProtocolBBoard(PLANT)
    for request in ("VOFF=02", "PSPEED=02,100"):
        assert ask(board, request) == "OK"
    board.advance(1.0)
    given_ = board.pressures()[2]
    assert given_ > 10.0
    ask(board, "PSPEED=02,0", 1.0)
    board.advance(1.5)
    assert board.pressures()[2] > 0.7 * given_


def test_a_reset_forgets_and_vents() -> None:
    board = ProtocolBBoard(PLANT)
    for request in ("PSET=02,5.00", "CON:ALL"):
        ask(board, request)
    board.advance(1.0)
    assert ask(board, "AT+RST", 1.0) == "OK"
    assert ask(board, "AT", 2.0) == "", "deaf while it boots"
    assert ask(board, "AT", 2.6) == "OK"
    assert board.pressures()[2] < 0.2


def test_requests_to_vent_are_found_on_the_wire() -> None:
    board = ProtocolBBoard(PLANT)
    assert board.vent_ends(b"COFF:ALL\r\nxCOFF:ALL\r\nPREAD=00\r\nCOFF:ALL\r\n") == [10, 41]


@settings(max_examples=50)
@given(
    st.lists(st.binary(max_size=20) | st.sampled_from([b"PSET=", b"CON=0", b"PSET:", b",", b";", b"\r\n"]), max_size=20)
)
def test_no_garbage_stops_the_board(pieces: list[bytes]) -> None:
    board = ProtocolBBoard(PLANT)
    for piece in pieces:
        board.receive(piece, 0.0)
    board.take_output()
    board.receive(b"\r\nAT\r\n", 0.0)
    assert board.take_output().endswith(b"OK\r\n")
