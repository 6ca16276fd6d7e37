"""One input after the other for the codecs, as a fuzzer has them: no crash, no hang, and no wrong accept.

Each function takes any bytes, cuts them in two places that depend on them, and looks at every message that comes out.
"""

import re
from collections.abc import Callable
from typing import Protocol, TypeVar

from softform_core.units import PA_PER_KPA
from softform_pneumatics.boards import protocol_a, protocol_b, protocol_binary
from softform_pneumatics.boards.lines import CHANNELS

_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
_HIGHEST = 10_000 * PA_PER_KPA  # four digits of kPa
Message = TypeVar("Message")


class _Parser(Protocol[Message]):
    def feed(self, data: bytes) -> list[Message]: ...


def fuzz_protocol_a(data: bytes) -> None:
    """Feed Protocol A's parser.

    Raises:
        AssertionError: If it accepts what the board cannot have sent.
    """
    for message in _fed(protocol_a.StreamParser, data):
        match message:
            case protocol_a.StreamLine(values):
                assert len(values) == CHANNELS
                assert all(abs(pressure) < _HIGHEST for pressure in values)
                printed = ",".join(f"{pressure / PA_PER_KPA:.2f}" for pressure in values)
                assert printed.replace("-0.00", "0.00") in _without_zeros_sign(data)
            case protocol_a.Reply(kind, value):
                assert kind in protocol_a.ReplyKind
                if kind is protocol_a.ReplyKind.CHANNEL_SELECTED:
                    assert value in range(CHANNELS)
                if isinstance(value, float):
                    assert abs(value) < _HIGHEST


def fuzz_protocol_b(data: bytes) -> None:
    """Feed Protocol B's parser.

    Raises:
        AssertionError: If it accepts what the board cannot have sent.
    """
    for reply in _fed(protocol_b.ReplyParser, data):
        assert reply.kind in protocol_b.ReplyKind
        assert abs(reply.value) < _HIGHEST
        if reply.kind is protocol_b.ReplyKind.PRESSURE:
            assert f"Val={reply.value / PA_PER_KPA:.2f}".replace("-0.00", "0.00") in _without_zeros_sign(data)


def fuzz_protocol_binary(data: bytes) -> None:
    """Feed the binary board's parser.

    Raises:
        AssertionError: If it accepts what no module can have sent.
    """
    for answer in _fed(protocol_binary.PacketParser, data):
        assert 1 <= answer.module <= protocol_binary.MOST_MODULES
        assert _packet(answer) in data
        for word in answer.words:
            pressure = protocol_binary.pressure_of_word(word)
            assert pressure != pressure or protocol_binary.word_of_pressure(pressure) == word  # NaN: no valid reading


def _packet(answer: protocol_binary.Answer) -> bytes:
    body = bytes([0x50 | answer.module, 0x80 | answer.command, answer.argument])
    body += b"".join(word.to_bytes(2, "big") for word in answer.words) + bytes([answer.sequence])
    check = 0xFFFF
    for byte in body:  # bit by bit, unlike the codec
        check ^= byte << 8
        for _ in range(8):
            check = (check << 1 ^ 0x1021 if check & 0x8000 else check << 1) & 0xFFFF
    return body + check.to_bytes(2, "big")


def _without_zeros_sign(data: bytes) -> str:
    text = data.decode("latin-1").replace("\r", "").replace("\n", "")
    return _LEADING_ZEROS.sub("", text).replace("-0.00", "0.00")


def _fed(make: Callable[[], _Parser[Message]], data: bytes) -> list[Message]:
    whole, parts = make(), make()
    first, second = sorted((len(data) // 3, sum(data[:4]) % (len(data) + 1)))
    messages = whole.feed(data)
    cut = parts.feed(data[:first]) + parts.feed(data[first:second]) + parts.feed(data[second:])
    assert cut == messages, "messages depend on how the bytes were cut"
    return messages


SEEDS = {
    "fuzz_protocol_a": (
        b"T0.00,1.25,-3.50,0.02,5.00,0.00,12.34,-0.01,100.00,0.00;\r\n",
        b"Timer Pauses...\r\nStop All Motors\r\n",
        b"Global Channel is 3\r\nGlobal Threshold is 0.20\r\n",
        b"OK;Successful\r\nOpenPneu2.0\r\nVersion 2.0OK\r\n12.34\r\nError command\r\nError end check\r\n",
    ),
    "fuzz_protocol_b": (b"OK\r\nADD=01\r\nALL ON\r\nALL OFF\r\n", b"Val=-12.34\r\n03=1.50\r\n"),
    "fuzz_protocol_binary": tuple(
        _packet(protocol_binary.Answer(1, command, 1, (8000, 8100), 7)) for command in protocol_binary.Command
    ),
}
"""Valid inputs by the name of the function, from which mutation starts."""
