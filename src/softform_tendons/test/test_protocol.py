"""The codec against ROBOTIS's own library, and against damaged streams.

The library (4.1.0) drops what it stuffs into an instruction, so instructions are compared where nothing is stuffed. It
takes our stuffed answers apart as it should, but for one pattern (see `_misread`).
"""

import dynamixel_sdk
from hypothesis import assume, example, given
from hypothesis import strategies as st

from softform_tendons import protocol
from softform_tendons.protocol import StatusReader, crc16, instruction

HARD_BYTES = st.lists(st.sampled_from([0xFF, 0xFF, 0xFD, 0x00, 0x55]) | st.integers(0, 255), max_size=60).map(bytes)
STUFFED = b"\xff\xff\xfd"


class _Wire:
    """A port of ROBOTIS's library that keeps what is written and hands out what is given."""

    is_using = False

    def __init__(self, answer: bytes = b"") -> None:
        self.written, self.answer = b"", answer

    def clearPort(self) -> None:  # noqa: N802
        pass

    def writePort(self, packet: list[int]) -> int:  # noqa: N802
        self.written += bytes(packet)
        return len(packet)

    def readPort(self, length: int) -> bytes:  # noqa: N802
        data, self.answer = self.answer[:length], self.answer[length:]
        return data

    def setPacketTimeout(self, length: int) -> None:  # noqa: N802
        pass

    def isPacketTimeout(self) -> bool:  # noqa: N802
        return not self.answer


def _status(motor: int, error: int, parameters: bytes) -> bytes:
    return instruction(motor, 0x55, bytes([error]) + parameters)


@given(st.lists(st.tuples(st.integers(0, 252), st.binary(min_size=4, max_size=4)), min_size=1, max_size=8))
def test_sync_instructions_are_those_of_robotis(values):
    wire, handler = _Wire(), dynamixel_sdk.PacketHandler(2.0)
    flat = [byte for motor, data in values for byte in (motor, *data)]
    handler.syncWriteTxOnly(wire, 116, 4, flat, len(flat))
    assume(STUFFED not in bytes(flat))
    motors = [motor for motor, _ in values]
    wire.is_using = False
    handler.syncReadTx(wire, 98, 49, motors, len(motors), False)
    assert protocol.sync_write(values, 116) + protocol.sync_read(motors, 98, 49) == wire.written


def _misread(packet: bytes, error: int, parameters: bytes) -> bool:
    """Whether FF FD FD comes after a stuffed byte: moved by one, its FF is taken for two, and an FD is dropped."""
    rest = (bytes([error]) + parameters).partition(STUFFED)[2]
    return b"\xff\xfd\xfd" in rest + packet[-2:-1]


@given(st.integers(0, 252), st.integers(0, 255), HARD_BYTES)
@example(0, 0, b"\xff\xff\xfd\xff\xfd\xfe")
def test_robotis_reads_our_answers_as_we_do(motor, error, parameters):
    packet = _status(motor, error, parameters)
    assume(not _misread(packet, error, parameters))
    theirs, result = dynamixel_sdk.PacketHandler(2.0).rxPacket(_Wire(packet), False)
    assert result == dynamixel_sdk.COMM_SUCCESS
    (ours,) = StatusReader().feed(packet)
    assert ours == (motor, error, parameters)
    assert (theirs[4], theirs[8], bytes(theirs[9 : 9 + len(parameters)])) == (motor, error, parameters)


def test_the_crc_of_the_manuals_example():
    # Ping of motor 1, https://emanual.robotis.com/docs/en/dxl/protocol2/#ping-0x01
    assert protocol.ping(1) == bytes.fromhex("fffffd0001030001194e")
    assert crc16(b"") == 0


@given(st.lists(st.tuples(st.integers(0, 252), st.integers(0, 255), HARD_BYTES), max_size=5), st.data())
def test_answers_are_found_however_the_stream_is_cut(answers, data):
    stream = b"".join(_status(*answer) for answer in answers)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader = StatusReader()
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [status for piece in pieces for status in reader.feed(piece)] == answers
    assert reader.damaged == 0


@given(HARD_BYTES, st.integers(0, 7), st.data())
def test_a_damaged_answer_is_never_taken_for_another_and_the_next_one_is_found(parameters, bit, data):
    packet = bytearray(_status(3, 0, parameters))
    place = data.draw(st.integers(0, len(packet) - 1))
    packet[place] ^= 1 << bit
    reader = StatusReader()
    found = reader.feed(bytes(packet))
    assert all(status.motor == 3 and status.parameters == parameters for status in found)
    # What is long by a wrong length is given up when its time is over.
    reader.forget()
    assert reader.feed(_status(4, 0, b"next"))[-1] == (4, 0, b"next")


@given(HARD_BYTES)
def test_noise_is_passed_over(noise):
    reader = StatusReader()
    reader.feed(noise)
    reader.forget()
    assert reader.feed(_status(1, 0, b"")) == [(1, 0, b"")]
