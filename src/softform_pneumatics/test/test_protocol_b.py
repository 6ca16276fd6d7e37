"""The codec of Protocol B: exact bytes out, replies only in exactly the assumed form."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_pneumatics.boards import protocol_b
from softform_pneumatics.boards.protocol_b import Reply, ReplyKind, ReplyParser

REPLIES = [
    (b"OK\r\n", Reply(ReplyKind.DONE)),
    (b"ADD=07\r\n", Reply(ReplyKind.ADDRESS, 7.0)),
    (b"Val=-2.48\r\n", Reply(ReplyKind.PRESSURE, -2480.0)),
    (b"03=2.50\r\n", Reply(ReplyKind.TARGET, 2500.0)),
    (b"ALL ON\r\n", Reply(ReplyKind.CONTROL_ALL)),
    (b"ALL OFF\r\n", Reply(ReplyKind.STOPPED_ALL)),
    (b"ON\r\n", Reply(ReplyKind.CONTROL)),
    (b"OFF\r\n", Reply(ReplyKind.STOPPED)),
    (b"Error command\r\n", Reply(ReplyKind.UNKNOWN_REQUEST)),
    (b"Error end check\r\n", Reply(ReplyKind.UNTERMINATED_REQUEST)),
]


def test_requests_are_the_bytes_of_the_page_on_boards() -> None:
    assert protocol_b.ALIVE_REQUEST == b"AT\r\n"
    assert protocol_b.ADDRESS_REQUEST == b"AT+ADD\r\n"
    assert protocol_b.VENT_REQUEST == b"COFF:ALL\r\n"
    assert protocol_b.CONTROL_ALL_REQUEST == b"CON:ALL\r\n"
    assert protocol_b.read_request(3) == b"PREAD=03\r\n"
    assert protocol_b.targets_request([0.0, -1000.0, 2500.0] + [0.0] * 7) == (
        b"PSET:0.00,-1.00,2.50,0.00,0.00,0.00,0.00,0.00,0.00,0.00;\r\n"
    )


@given(st.lists(st.floats(-100_000.0, 100_000.0), min_size=10, max_size=10))
def test_targets_read_back(pressures: list[float]) -> None:
    match = re.fullmatch(rb"PSET:((?:-?\d+\.\d\d,){9}-?\d+\.\d\d);\r\n", protocol_b.targets_request(pressures))
    assert match is not None
    assert [1000.0 * float(text) for text in match[1].split(b",")] == pytest.approx(pressures, abs=5.001)


@pytest.mark.parametrize("bad", [[0.0] * 9, [0.0] * 9 + [math.nan], [math.inf] + [0.0] * 9, [1e9] + [0.0] * 9])
def test_targets_that_no_board_can_mean_are_rejected(bad: list[float]) -> None:
    with pytest.raises(SoftformError):
        protocol_b.targets_request(bad)


@pytest.mark.parametrize(("line", "reply"), REPLIES)
def test_every_reply_is_understood(line: bytes, reply: Reply) -> None:
    parser = ReplyParser()
    assert parser.feed(line) == [reply]
    assert parser.corrupt == 0


@pytest.mark.parametrize(
    "line",
    [b"OK;Successful", b"OKOK", b"Val=2.4", b"Val=2.488", b"Val=nan", b"Val=2.48Val=2.48", b"ADD=7", b"ALL", b"ok"],
)
def test_what_is_not_exactly_a_reply_is_dropped_and_counted(line: bytes) -> None:
    parser = ReplyParser()
    assert parser.feed(line + b"\r\n") == []
    assert parser.corrupt == 1 and parser.dropped_bytes == len(line)


pieces = st.lists(
    st.one_of(st.sampled_from([line for line, _ in REPLIES]), st.binary(max_size=30), st.just(b"\r\n")), max_size=10
).map(b"".join)


@given(pieces)
def test_any_bytes_do_no_harm(data: bytes) -> None:
    parser = ReplyParser()
    parser.feed(data + b"\r\n")
    assert parser.feed(b"ALL OFF\r\n") == [Reply(ReplyKind.STOPPED_ALL)]
