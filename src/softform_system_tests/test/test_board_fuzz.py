"""Bytes of any kind at the parsers of the boards: rejected or read, never a crash, a hang or a wrong message."""

from hypothesis import given
from hypothesis import strategies as st

from softform_system_tests.fuzz_targets.boards import fuzz_protocol_a, fuzz_protocol_b, fuzz_protocol_binary

REPLIES = [
    *(b"OK\r\n", b"ADD=07\r\n", b"Val=-2.48\r\n", b"03=2.50\r\n", b"ALL ON\r\n", b"ALL OFF\r\n", b"ON\r\n", b"OFF\r\n"),
    *(b"Error command\r\n", b"Error end check\r\n"),
]
pieces = st.lists(st.one_of(st.sampled_from(REPLIES), st.binary(max_size=30), st.just(b"\r\n")), max_size=10).map(
    b"".join
)


@given(pieces)
def test_any_bytes_at_the_protocols_of_lines(data: bytes) -> None:
    fuzz_protocol_b(data)
    fuzz_protocol_a(data)


@given(st.binary(max_size=200))
def test_any_bytes_at_the_binary_protocol(data: bytes) -> None:
    fuzz_protocol_binary(data)
