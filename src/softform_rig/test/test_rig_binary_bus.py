"""The emulated binary modules against the packets that docs/boards.md gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.plant import load_plant
from softform_rig.binary_bus import BinaryBus

PLANT = load_plant()
WHO, CONFIGURE, START, SET, READ, VENT = 1, 2, 3, 4, 5, 6
RUNNING, TRIPPED, REFUSED, BOOTED, SECOND_PAIR = 1, 2, 4, 16, 32
AMBIENT = 8000


def crc(data: bytes) -> int:
    """CRC-16/IBM-3740, bit by bit as its definition reads."""
    value = 0xFFFF
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = ((value << 1) ^ 0x1021 if value & 0x8000 else value << 1) & 0xFFFF
    return value


def packet(module: int, command: int, argument: int = 0, first: int = 0, second: int = 0, sequence: int = 7) -> bytes:
    head = bytes([0xA0 + module, command, argument]) + first.to_bytes(2, "big") + second.to_bytes(2, "big")
    return head + bytes([sequence]) + crc(head + bytes([sequence])).to_bytes(2, "big")


def ask(bus: BinaryBus, request: bytes, now: float = 0.0) -> tuple[int, int, int]:
    """Byte 2 and both words of the answer."""
    bus.receive(request, now)
    answer = bus.take_output()
    assert len(answer) == 10 and crc(answer[:8]) == int.from_bytes(answer[8:], "big")
    assert (answer[0], answer[1], answer[7]) == (request[0] - 0x50, request[1] + 0x80, request[7])
    return answer[2], int.from_bytes(answer[3:5], "big"), int.from_bytes(answer[5:7], "big")


def word(kilopascal: float) -> int:
    return round((kilopascal + 100.0) / 0.0125)


def running(target: float = 4.0) -> BinaryBus:
    bus = BinaryBus(PLANT)
    for module in (1, 2, 3):
        ask(bus, packet(module, VENT))
        ask(bus, packet(module, CONFIGURE, 0, 250, word(10.0)))
        ask(bus, packet(module, SET, 0, word(target), word(target)))
        ask(bus, packet(module, SET, 1, word(target), word(target)))
        ask(bus, packet(module, START))
    return bus


def feed(bus: BinaryBus, begin: float, end: float, modules: tuple[int, ...] = (1, 2, 3), target: float = 4.0) -> None:
    for now in np.arange(begin, end, 0.05):
        for module in modules:
            ask(bus, packet(module, SET, 0, word(target), word(target)), now)


def test_the_checksum_is_the_one_of_the_page() -> None:
    assert crc(b"123456789") == 0x29B1


def test_who_is_answered_by_each_module_and_by_no_other() -> None:
    bus = BinaryBus(PLANT)
    for module in (1, 2, 3):
        assert ask(bus, packet(module, WHO)) == (1, 0x5046, 0x0100)
    bus.receive(packet(4, WHO) + packet(0, WHO), 0.0)
    assert bus.take_output() == b"", "the fourth is not there, and nobody answers what is meant for all"


def test_status_from_boot_to_running() -> None:
    bus = BinaryBus(PLANT)
    assert ask(bus, packet(1, READ)) == (BOOTED, AMBIENT, AMBIENT)
    assert ask(bus, packet(1, CONFIGURE, 0, 250, word(10.0))) == (BOOTED, 250, word(10.0))
    assert ask(bus, packet(1, VENT)) == (0, 0, 0)
    assert ask(bus, packet(1, START))[0] == RUNNING
    assert ask(bus, packet(1, READ, 1))[0] == RUNNING | SECOND_PAIR


@pytest.mark.parametrize(
    "request_",
    [
        packet(1, CONFIGURE, 0, 19, word(10.0)),
        packet(1, CONFIGURE, 0, 2001, word(10.0)),
        packet(1, CONFIGURE, 0, 250, 63121),
        packet(1, SET, 0, AMBIENT - 1, AMBIENT),
        packet(1, SET, 0, AMBIENT, 63121),
        packet(1, SET, 2, AMBIENT, AMBIENT),
        packet(1, READ, 2),
        packet(1, 0x33),
    ],
)
def test_what_does_not_fit_is_rejected_and_answered(request_: bytes) -> None:
    assert ask(BinaryBus(PLANT), request_)[0] & REFUSED


def test_configuring_while_running_is_rejected() -> None:
    assert ask(running(), packet(1, CONFIGURE, 0, 500, word(10.0))) == (RUNNING | REFUSED, 250, word(10.0))


def test_it_regulates_while_it_is_fed() -> None:
    bus = running()
    feed(bus, 0.0, 2.0)
    assert bus.pressures()[:10] == pytest.approx(np.full(10, 4.0), abs=0.2)
    status, first, _ = ask(bus, packet(2, READ, 1), 2.0)
    assert status == RUNNING | SECOND_PAIR
    assert 0.0125 * first - 100.0 == pytest.approx(4.0, abs=0.2)


def test_a_module_that_is_not_fed_vents_by_itself_and_needs_a_vent_to_start_again() -> None:
    bus = running()
    feed(bus, 0.0, 1.0)
    feed(bus, 1.0, 2.0, modules=(1, 3))
    assert ask(bus, packet(2, READ), 2.0)[0] == TRIPPED
    assert np.abs(bus.pressures()[4:8]).max() < 0.3 and bus.pressures()[0] > 3.5
    assert ask(bus, packet(2, START), 2.0)[0] == TRIPPED | REFUSED
    assert ask(bus, packet(2, VENT), 2.0)[0] == 0
    assert ask(bus, packet(2, START), 2.0)[0] == RUNNING


def test_a_rig_that_is_held_up_trips_nothing_by_that() -> None:
    bus = running()
    feed(bus, 0.0, 1.0)
    assert ask(bus, packet(1, SET, 0, word(4.0), word(4.0)), 5.0)[0] == RUNNING


def test_reading_does_not_feed_the_watchdog() -> None:
    bus = running()
    for now in np.arange(0.0, 0.6, 0.05):
        ask(bus, packet(1, READ), now)
    assert ask(bus, packet(1, READ), 0.6)[0] == TRIPPED


def test_a_pressure_above_the_highest_trips() -> None:
    bus = running()
    feed(bus, 0.0, 0.5)
    bus.channels.pressure[1] = 11.0
    bus.advance(0.55)
    assert ask(bus, packet(1, READ), 0.55)[0] == TRIPPED
    assert ask(bus, packet(2, READ), 0.55)[0] == RUNNING


def test_venting_all_modules_at_once_has_no_answer() -> None:
    bus = running()
    feed(bus, 0.0, 0.5)
    bus.receive(packet(0, VENT), 0.5)
    assert bus.take_output() == b""
    for now in np.arange(0.5, 1.6, 0.05):
        bus.advance(now)
    assert np.abs(bus.pressures()).max() < 0.2


def test_a_packet_cut_off_does_not_hide_the_next() -> None:
    bus = running()
    bus.receive(packet(1, SET, 0, word(1.0), word(1.0))[:6] + packet(1, VENT), 0.1)
    answer = bus.take_output()
    assert answer[1] == VENT + 0x80 and len(answer) == 10


def test_a_packet_with_a_wrong_checksum_is_no_packet() -> None:
    bus = running()
    bus.receive(packet(1, SET, 0, word(1.0), word(1.0))[:9] + b"\x00", 0.1)
    assert bus.take_output() == b""


def test_requests_to_vent_are_found_on_the_wire() -> None:
    bus = BinaryBus(PLANT)
    noise = b"\xa1\x06 not a packet "
    assert bus.vent_ends(noise + packet(1, VENT) + packet(2, READ) + packet(0, VENT)) == [
        len(noise) + 10,
        len(noise) + 30,
    ]


def test_opening_the_port_does_not_restart_it_and_a_boot_is_quick() -> None:
    bus = running()
    assert not bus.boots_on_open
    bus.boot(1.0)
    bus.receive(packet(1, READ), 1.4)
    assert bus.take_output() == b""
    for now in np.arange(1.4, 3.0, 0.05):
        bus.advance(now)
    status, *words = ask(bus, packet(1, READ), 3.0)
    assert status == BOOTED and words == pytest.approx([AMBIENT, AMBIENT], abs=10), "vented"


@settings(max_examples=50)
@given(
    st.lists(
        st.binary(max_size=12) | st.builds(packet, st.integers(0, 4), st.integers(0, 255), st.integers(0, 3)),
        max_size=20,
    )
)
def test_no_garbage_stops_the_bus(pieces: list[bytes]) -> None:
    bus = BinaryBus(PLANT)
    for piece in pieces:
        bus.receive(piece, 0.0)
    bus.take_output()
    bus.receive(bytes(9) + packet(1, WHO), 0.0)
    assert bus.take_output()[-10:-5] == bytes([0x51, 0x81, 1, 0x50, 0x46])
