"""The codec of the binary board: packets as the page on boards defines them, found behind any noise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_pneumatics.boards import protocol_binary
from softform_pneumatics.boards.protocol_binary import Answer, Command, PacketParser, Status, request


def crc(data: bytes) -> int:
    """CRC-16/IBM-3740 bit by bit, independent of the codec's."""
    value = 0xFFFF
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ 0x1021 if value & 0x8000 else value << 1) & 0xFFFF
    return value


def packet(module: int, command: int, argument: int, first: int, second: int, sequence: int) -> bytes:
    body = bytes([0x50 | module, command | 0x80, argument, *first.to_bytes(2, "big"), *second.to_bytes(2, "big")])
    body += bytes([sequence])
    return body + crc(body).to_bytes(2, "big")


words = st.integers(0, 0xFFFF)
answers = st.builds(
    Answer,
    st.integers(1, 4),
    st.sampled_from(list(Command)),
    st.integers(0, 63),
    st.tuples(words, words),
    st.integers(0, 255),
)


def bytes_of(answer: Answer) -> bytes:
    return packet(answer.module, answer.command, answer.argument, *answer.words, answer.sequence)


def test_the_crc_is_the_one_that_the_page_names() -> None:
    assert crc(b"123456789") == 0x29B1


def test_a_request_is_ten_bytes_as_defined() -> None:
    asked = request(2, Command.SET, 7, argument=1, words=(8000, 8400))
    assert asked[:8] == bytes([0xA2, 0x04, 0x01, 0x1F, 0x40, 0x20, 0xD0, 0x07])
    assert int.from_bytes(asked[8:], "big") == crc(asked[:8])
    assert request(0, Command.VENT, 0)[0] == 0xA0


@pytest.mark.parametrize("module", [-1, 5])
def test_a_module_that_the_bus_lacks_is_rejected(module: int) -> None:
    with pytest.raises(SoftformError):
        request(module, Command.READ, 0)


def test_a_number_that_does_not_fit_is_rejected() -> None:
    with pytest.raises(SoftformError):
        request(1, Command.SET, 0, words=(70000, 0))


@given(st.floats(-100_000.0, 700_000.0))
def test_a_pressure_reads_back_to_half_a_count(pressure: float) -> None:
    word = protocol_binary.word_of_pressure(pressure)
    assert protocol_binary.pressure_of_word(word) == pytest.approx(pressure, abs=6.251)


@pytest.mark.parametrize("pressure", [math.nan, math.inf, -200_000.0, 1e6])
def test_a_pressure_that_no_word_holds_is_rejected(pressure: float) -> None:
    with pytest.raises(SoftformError):
        protocol_binary.word_of_pressure(pressure)


def test_ambient_the_highest_pressure_and_no_reading_are_the_words_of_the_page() -> None:
    assert protocol_binary.word_of_pressure(0.0) == 8000
    assert protocol_binary.word_of_pressure(689_000.0) == 63120
    assert math.isnan(protocol_binary.pressure_of_word(0xFFFF))


@given(st.lists(st.one_of(answers, st.binary(max_size=25)), max_size=8), st.lists(st.integers(0, 300), max_size=6))
def test_answers_are_found_behind_noise_however_the_bytes_are_cut(
    pieces: list[Answer | bytes], cuts: list[int]
) -> None:
    data = b"".join(bytes_of(piece) if isinstance(piece, Answer) else piece for piece in pieces)
    whole = PacketParser()
    expected = whole.feed(data)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parser = PacketParser()
    assert [a for i, j in zip(edges, edges[1:], strict=False) for a in parser.feed(data[i:j])] == expected
    assert parser.dropped_bytes == whole.dropped_bytes
    if all(isinstance(piece, Answer) for piece in pieces):
        assert expected == pieces and whole.dropped_bytes == 0


@given(answers, st.integers(0, 79))
def test_a_flipped_bit_is_never_accepted(answer: Answer, bit: int) -> None:
    spoilt = bytearray(bytes_of(answer))
    spoilt[bit // 8] ^= 1 << bit % 8
    assert PacketParser().feed(bytes(spoilt)) == []


@given(st.binary(max_size=200))
def test_any_bytes_do_no_harm_and_the_next_answer_is_read(data: bytes) -> None:
    parser = PacketParser()
    parser.feed(data)
    answer = Answer(1, Command.VENT, int(Status.BOOTED), (0, 0), 3)
    parser.feed(bytes_of(answer))
    assert answer in parser.feed(bytes_of(answer)) or parser.dropped_bytes <= len(data)


def test_a_request_of_the_host_itself_is_no_answer() -> None:
    parser = PacketParser()  # some RS-485 adapters echo what they send
    assert parser.feed(request(1, Command.READ, 5) + packet(1, Command.READ, 0, 8000, 8000, 5)) == [
        Answer(1, Command.READ, 0, (8000, 8000), 5)
    ]
    assert parser.dropped_bytes == 10
