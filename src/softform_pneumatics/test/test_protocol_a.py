"""The codec of Protocol A: exact bytes out, and messages in whatever pieces and rubbish they come."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_pneumatics.boards import protocol_a as protocol
from softform_pneumatics.boards.lines import LONGEST_LINE
from softform_pneumatics.boards.protocol_a import Reply, ReplyKind, StreamLine, StreamParser

pressures_pa = st.floats(min_value=-100_000.0, max_value=100_000.0)
stream_values = st.lists(st.integers(-9999, 9999), min_size=10, max_size=10)  # hundredths of a kPa


def stream_bytes(hundredths: list[int]) -> bytes:
    """Write a stream line with integer arithmetic, independent of the codec's formatting."""
    numbers = [f"{'-' if v < 0 else ''}{abs(v) // 100}.{abs(v) % 100:02d}" for v in hundredths]
    return f"T{','.join(numbers)};\r\n".encode()


REPLIES = [
    (b"OK;Successful\r\n", Reply(ReplyKind.ALIVE)),
    (b"Version 2.0OK\r\n", Reply(ReplyKind.VERSION, "2.0")),
    (b"OpenPneu2.0\r\n", Reply(ReplyKind.ADDRESS, "OpenPneu2.0")),
    (b"Global Channel is 7\r\n", Reply(ReplyKind.CHANNEL_SELECTED, 7)),
    (b"Global Threshold is 0.10\r\n", Reply(ReplyKind.THRESHOLD_SET, 100.0)),
    (b"Timer Starts...\r\n", Reply(ReplyKind.STARTED)),
    (b"Timer Pauses...\r\n", Reply(ReplyKind.PAUSED)),
    (b"Stop All Motors\r\n", Reply(ReplyKind.STOPPED)),
    (b"Error command\r\n", Reply(ReplyKind.UNKNOWN_REQUEST)),
    (b"Error end check\r\n", Reply(ReplyKind.UNTERMINATED_REQUEST)),
    (b"-1.25\r\n", Reply(ReplyKind.PRESSURE, -1250.0)),
]


def test_requests_are_the_bytes_that_the_board_documents() -> None:
    assert protocol.ALIVE_REQUEST == b"AT\r\n"
    assert protocol.VERSION_REQUEST == b"AT+VERSION\r\n"
    assert protocol.ADDRESS_REQUEST == b"AT+ADDRESS\r\n"
    assert protocol.PRESSURE_REQUEST == b"AT+PRESSURE\r\n"
    assert protocol.START_REQUEST == b"C\r\n"
    assert protocol.VENT_REQUEST == b"V\r\n"
    assert protocol.STOP_ALL_CHANNELS_REQUEST == b"PP\r\n"
    assert protocol.select_channel_request(8) == b"SC=8\r\n"
    assert protocol.target_request(3210.0) == b"T=3.210\r\n"
    assert protocol.threshold_request(100.0) == b"ST=0.100\r\n"


@given(pressures_pa)
def test_a_target_is_written_with_fixed_decimals_and_reads_back(pressure: float) -> None:
    request = protocol.target_request(pressure)
    match = re.fullmatch(rb"T=(-?\d+\.\d{3})\r\n", request)
    assert match is not None
    assert float(match[1]) * 1000.0 == pytest.approx(pressure, abs=0.5001)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e9])
def test_a_target_that_no_board_can_mean_is_rejected(value: float) -> None:
    with pytest.raises(SoftformError):
        protocol.target_request(value)


@pytest.mark.parametrize("channel", [-1, 10, 255])
def test_a_channel_that_the_board_lacks_is_rejected(channel: int) -> None:
    with pytest.raises(SoftformError):
        protocol.select_channel_request(channel)


@given(stream_values)
def test_a_stream_line_reads_back_in_pascal(hundredths: list[int]) -> None:
    (message,) = StreamParser().feed(stream_bytes(hundredths))
    assert isinstance(message, StreamLine)
    assert message.pressures == pytest.approx([10.0 * value for value in hundredths], abs=1e-6)


@pytest.mark.parametrize(("line", "reply"), REPLIES)
def test_every_reply_is_understood(line: bytes, reply: Reply) -> None:
    parser = StreamParser()
    assert parser.feed(line) == [reply]
    assert parser.corrupt == 0


pieces = st.lists(
    st.one_of(
        stream_values.map(stream_bytes),
        st.sampled_from([line for line, _ in REPLIES]),
        st.binary(max_size=40),
        st.binary(min_size=LONGEST_LINE - 20, max_size=LONGEST_LINE + 20),
        st.just(b"\r\n"),
    ),
    max_size=12,
).map(b"".join)


@given(pieces, st.lists(st.integers(0, 4000), max_size=20))
def test_messages_do_not_depend_on_how_the_bytes_were_cut(data: bytes, cuts: list[int]) -> None:
    whole = StreamParser()
    expected = whole.feed(data)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    cut_parser = StreamParser()
    received = [message for a, b in zip(edges, edges[1:], strict=False) for message in cut_parser.feed(data[a:b])]
    assert received == expected
    assert cut_parser.corrupt == whole.corrupt


@given(st.lists(st.binary(max_size=600), max_size=8))
def test_rubbish_never_raises_and_the_next_good_line_is_read(rubbish: list[bytes]) -> None:
    parser = StreamParser()
    for piece in rubbish:
        parser.feed(piece)
    parser.feed(b"\r\n")
    assert parser.feed(b"T" + b",".join([b"1.00"] * 10) + b";\r\n") == [StreamLine((1000.0,) * 10)]


def test_an_endless_line_is_dropped_counted_once_and_takes_no_memory() -> None:
    parser = StreamParser()
    for _ in range(1000):
        assert parser.feed(b"x" * 100) == []
    assert parser.corrupt == 1
    assert len(parser._line) <= LONGEST_LINE
    assert parser.feed(b"\r\nOK;Successful\r\n") == [Reply(ReplyKind.ALIVE)]


def test_merged_lines_give_all_their_messages() -> None:
    line = stream_bytes([100] * 10).strip()
    parser = StreamParser()
    assert parser.feed(line + line + b"Timer Pauses...Stop All Motors\r\n") == [
        StreamLine((1000.0,) * 10),
        StreamLine((1000.0,) * 10),
        Reply(ReplyKind.PAUSED),
        Reply(ReplyKind.STOPPED),
    ]
    assert parser.corrupt == 0


def test_a_stream_line_printed_into_a_reply_spoils_neither() -> None:
    line = stream_bytes([-5] * 10).strip()
    messages = StreamParser().feed(b"Global Chan" + line + b"nel is 4\r\n")
    assert messages == [StreamLine((-50.0,) * 10), Reply(ReplyKind.CHANNEL_SELECTED, 4)]


@pytest.mark.parametrize(
    "line",
    [
        b"T1.00,1.00,1.00,1.00,1.00,1.00,1.00,1.00,1.00;",  # nine values
        b"T" + b",".join([b"1.00"] * 11) + b";",  # eleven values
        b"T" + b",".join([b"1.00"] * 10),  # no end mark
        b"T" + b",".join([b"1.00"] * 9 + [b"1.0"]) + b";",  # a digit was lost
        b"T" + b",".join([b"1.00"] * 9 + [b"nan"]) + b";",
        b"T" + b",".join([b"1.00"] * 9 + [b"1e30"]) + b";",
        b"T" + b",".join([b"1.00"] * 9 + [b"1.\xff0"]) + b";",
        b"Global Channel is 12",
        b"hello",
    ],
)
def test_a_corrupt_line_is_counted_and_gives_nothing(line: bytes) -> None:
    parser = StreamParser()
    assert parser.feed(line + b"\r\n") == []
    assert parser.corrupt == 1
