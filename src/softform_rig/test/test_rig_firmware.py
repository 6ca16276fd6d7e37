"""The emulated board against the bytes of the public description of the protocol."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.plant import Plant, load_plant
from softform_rig.emulated_board import BOOT_SECONDS, Sensors
from softform_rig.line_board import Firmware

PLANT: Plant = load_plant()


def board(kind="regulated", **sensors) -> Firmware:
    return Firmware(PLANT, Sensors(**sensors), kind)


def ask(firmware: Firmware, request: bytes, now: float = 0.0) -> bytes:
    firmware.receive(request, now)
    return firmware.take_output()


def last_line(firmware: Firmware) -> list[float]:
    line = firmware.take_output().split(b"\r\n")[-2]
    assert line.startswith(b"T")
    assert line.endswith(b";")
    return [float(value) for value in line[1:-1].split(b",")]


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (b"AT\r\n", b"OK;Successful\r\n"),
        (b"AT+VERSION\r\n", b"Version 2.0OK\r\n"),
        (b"AT+ADDRESS\r\n", b"OpenPneu2.0\r\n"),
        (b"AT+PRESSURE\r\n", b"0.00\r\n"),
        (b"SC=3\r\n", b"Global Channel is 3\r\n"),
        (b"T=4.5\r\n", b""),
        (b"C\r\n", b"Timer Starts...\r\n"),
        (b"V\r\n", b"Timer Pauses...\r\nStop All Motors\r\n"),
        (b"P\r\n", b""),
        (b"PP\r\n", b""),
        (b"HELLO\r\n", b"Error command\r\n"),
        (b"\r\n", b"Error command\r\n"),
        (b"SC=10\r\n", b"Error command\r\n"),
        (b"SC=-1\r\n", b"Error command\r\n"),
        (b"T=nan\r\n", b"Error command\r\n"),
        (b"T=\r\n", b"Error command\r\n"),
        (b"AT\n", b"Error end check\r\n"),
        (b"at\r\n", b"Error command\r\n"),
        (b"A" * 200 + b"\r\n", b"Error command\r\n"),
    ],
)
def test_replies(request_: bytes, reply: bytes) -> None:
    assert ask(board(), request_) == reply


def test_threshold_reply_names_the_threshold() -> None:
    assert ask(board(), b"ST=0.5\r\n").startswith(b"Global Threshold is 0.5")


def test_stream_line_format_and_rate() -> None:
    firmware = board()
    ask(firmware, b"C\r\n")
    firmware.advance(1.0 + 1e-6)
    lines = firmware.take_output().split(b"\r\n")[:-1]
    assert len(lines) == 30
    assert set(lines) == {b"T" + b",".join([b"0.00"] * 10) + b";"}


def test_no_stream_before_start_and_after_stop() -> None:
    firmware = board()
    firmware.advance(0.5)
    assert firmware.take_output() == b""
    ask(firmware, b"C\r\nV\r\n", 0.5)
    firmware.advance(1.0)
    assert firmware.take_output() == b""


def test_all_ten_channels_reach_their_own_targets() -> None:
    firmware = board()
    for channel in range(10):
        ask(firmware, b"SC=%d\r\nT=%.1f\r\n" % (channel, 0.5 * channel))
    ask(firmware, b"C\r\n")
    for step in range(1, 11):
        firmware.advance(0.5 * step)
    assert last_line(firmware) == pytest.approx([0.5 * c for c in range(10)], abs=0.15)


def test_shipped_firmware_sets_pairs_copies_sensors_and_regulates_two_channels() -> None:
    firmware = board("shipped")
    ask(firmware, b"SC=3\r\nT=4.0\r\nSC=0\r\nT=3.0\r\nC\r\n")
    for step in range(1, 9):
        firmware.advance(0.5 * step)
    shown = last_line(firmware)
    assert shown[0] == shown[1] == 0.0
    assert shown[2] == shown[3] == pytest.approx(4.0, abs=0.2)
    assert firmware.pressures()[[2, 3]] == pytest.approx([4.0, 4.0], abs=0.3)
    assert firmware.pressures()[[0, 1, 4, 9]] == pytest.approx([0.0] * 4, abs=1e-9)


def test_stop_vents_and_a_single_channel_can_be_stopped() -> None:
    firmware = board()
    ask(firmware, b"SC=0\r\nT=5\r\nSC=1\r\nT=5\r\nC\r\n")
    firmware.advance(1.0)
    assert firmware.pressures()[:2] == pytest.approx([5.0, 5.0], abs=0.5)
    ask(firmware, b"P\r\n", 1.0)
    firmware.advance(2.0)
    assert firmware.pressures()[:2] == pytest.approx([5.0, 0.0], abs=0.3)
    ask(firmware, b"V\r\n", 2.0)
    firmware.advance(3.0)
    firmware.advance(4.0)
    assert np.abs(firmware.pressures()).max() < 0.01


def test_a_lower_threshold_vents_small_steps_down() -> None:
    settled = {}
    for threshold in (b"2", b"0.2"):
        firmware = board()
        ask(firmware, b"ST=" + threshold + b"\r\nT=3\r\nC\r\n")
        firmware.advance(1.0)
        firmware.advance(2.0)
        ask(firmware, b"T=1.5\r\n", 2.0)
        firmware.advance(2.3)
        settled[threshold] = firmware.pressures()[0]
    assert settled[b"2"] > 2.7
    assert settled[b"0.2"] < 2.0


def test_boot_is_silent_and_deaf_and_forgets_targets() -> None:
    firmware = board()
    ask(firmware, b"T=5\r\nC\r\n")
    firmware.advance(1.0)
    firmware.boot(1.0)
    assert ask(firmware, b"AT\r\n", 1.0 + BOOT_SECONDS - 0.01) == b""
    assert ask(firmware, b"AT\r\n", 1.0 + BOOT_SECONDS + 0.01) == b"OK;Successful\r\n"
    firmware.advance(4.0)
    assert firmware.take_output() == b""
    assert np.abs(firmware.pressures()).max() < 0.05


def test_sensor_gain_and_offset_make_the_true_pressure_differ_from_the_reading() -> None:
    firmware = board(gain=np.full(10, 1.1), offset=np.full(10, -0.2))
    ask(firmware, b"T=4\r\nC\r\n")
    for step in range(1, 7):
        firmware.advance(0.5 * step)
    assert last_line(firmware)[0] == pytest.approx(4.0, abs=0.1)
    assert firmware.pressures()[0] == pytest.approx((4.0 + 0.2) / 1.1, abs=0.1)


def test_sensor_quantum_and_one_sided_odd_sensors() -> None:
    sensors = Sensors(noise=0.03)
    readings = np.array([sensors.read(np.linspace(-3.0, 3.0, 10)) for _ in range(50)])
    even, odd = readings[:, ::2] / 0.016, readings[:, 1::2] / 0.008
    assert np.allclose(even, np.round(even))
    assert np.allclose(odd, np.round(odd))
    assert readings[:, 1].min() == 0.0, "a 0–15 psi sensor reads nothing below ambient"
    assert readings[:, 0].max() < -2.5


def test_a_reading_beyond_100_kpa_is_skipped() -> None:
    firmware = board(offset=np.array([150.0] + [0.0] * 9))
    ask(firmware, b"T=5\r\nC\r\n")
    firmware.advance(1.0)
    assert firmware.pressures()[0] == 0.0


def test_targets_are_not_clamped() -> None:
    firmware = board()
    ask(firmware, b"T=30\r\nC\r\n")
    for step in range(1, 7):
        firmware.advance(0.5 * step)
    assert firmware.pressures()[0] > 25.0


@settings(max_examples=60)
@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=12))
def test_replies_do_not_depend_on_how_bytes_are_chunked(data: bytes, cuts: list[int]) -> None:
    message = b"SC=4\r\nT=2.5\r\n" + data + b"\r\nAT+ADDRESS\r\n"
    whole = ask(board(), message)
    edges = [0, *sorted(min(cut, len(message)) for cut in cuts), len(message)]
    pieces = board()
    for start, end in zip(edges, edges[1:], strict=False):
        pieces.receive(message[start:end], 0.0)
    assert pieces.take_output() == whole
    assert whole.endswith(b"OpenPneu2.0\r\n")


@settings(max_examples=60)
@given(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b"C\r\n", b"V\r\n", b"T=9e9\r\n", b"SC=7\r\n"]))))
def test_no_garbage_stops_the_board(chunks: list[bytes]) -> None:
    firmware = board()
    now = 0.0
    for chunk in chunks:
        now += 0.05
        firmware.receive(chunk, now)
        firmware.take_output()
    firmware.receive(b"\r\nV\r\n", now)
    firmware.take_output()
    assert ask(firmware, b"AT\r\n", now) == b"OK;Successful\r\n"
    assert np.isfinite(firmware.pressures()).all()
