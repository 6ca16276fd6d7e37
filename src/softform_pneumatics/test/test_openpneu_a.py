"""The OpenPneu board over a pseudo-terminal: handshake, targets, venting, and every way a port can be wrong."""

import contextlib
import functools
import os
import pty
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softform_actuation import ports
from softform_actuation.device import DeviceError, DeviceLostError
from softform_actuation.ports import PortError, open_port
from softform_actuation.serial_link import SerialLink
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA

BOOT_SECONDS = 0.05


@pytest.fixture
def board(scripted_board: Any) -> Iterator[OpenPneuBoardA]:
    board = OpenPneuBoardA(SerialLink(scripted_board.path), vent_threshold=100.0, boot_seconds=BOOT_SECONDS)
    yield board
    board.close()


def test_open_shakes_hands_and_vents(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    assert [text for _, text in scripted_board.requests] == ["AT", "AT+ADDRESS", "AT+VERSION", "V"]
    assert "firmware 2.0" in board.identity and scripted_board.path in board.identity


def test_start_zeroes_all_targets_before_it_runs(scripted_board: Any, board: OpenPneuBoardA) -> None:
    scripted_board.targets[:] = 3.0
    board.open()
    board.start(np.zeros(10))
    assert np.all(scripted_board.targets == 0.0)
    assert scripted_board.threshold == 0.1  # a board that has booted has forgotten it
    texts = [text for _, text in scripted_board.requests]
    assert texts.index("C") > max(i for i, text in enumerate(texts) if text.startswith("T="))


def test_targets_reach_their_channels_and_measurements_come_back_in_pascal(
    scripted_board: Any, board: OpenPneuBoardA, wait_until: Callable[..., None]
) -> None:
    board.open()
    board.start(np.zeros(10))
    wanted = np.array([100.0 * (channel + 1) for channel in range(10)])
    assert board.set_targets(wanted)
    last = np.zeros(10)

    def arrived() -> bool:
        nonlocal last
        for measurement in board.read(0.1):
            last = measurement.pressures
            assert 0.0 <= time.monotonic() - measurement.captured < 5.0
        return bool(np.allclose(last, wanted, atol=11.0))

    wait_until(arrived)


def test_vent_is_confirmed_and_stops_the_stream(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    board.start(np.zeros(10))
    assert board.read(1.0)
    assert board.vent()
    board.read(0.0)
    assert board.read(0.1) == []
    assert not scripted_board.runs
    assert board.measure() == {channel: pytest.approx(0.0, abs=50.0) for channel in range(10)}
    board.check_alive()


def test_a_vent_behind_a_lost_line_end_is_sent_again_behind_one(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    board._link.write(b"AT\r")  # its line feed is lost: what comes next is taken for a part of it
    began = time.monotonic()
    assert board.vent()
    assert time.monotonic() - began < 0.3
    assert scripted_board.requests_since(began, "V") == 1


def test_a_threshold_that_the_board_understood_wrong_is_not_taken_for_set(
    scripted_board: Any, board: OpenPneuBoardA
) -> None:
    board.open()
    answer = scripted_board._answer
    scripted_board._answer = lambda line: answer(b"ST=200.0\r" if line.startswith(b"ST=") else line)
    with pytest.raises(DeviceError, match="ST="):
        board.start(np.zeros(10))
    assert not scripted_board.runs


def test_a_vent_that_is_not_confirmed_is_tried_again_and_reported(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    before = time.monotonic()
    scripted_board.ignores_vent = True
    assert board.vent() is False
    assert scripted_board.requests_since(before, "V") == 3


def test_a_board_left_running_is_vented_at_once(scripted_board: Any) -> None:
    scripted_board.targets[:] = 3.0
    scripted_board.runs = True
    # With the time that boards boot for: a starved one may send nothing for a while.
    with contextlib.closing(OpenPneuBoardA(SerialLink(scripted_board.path), vent_threshold=100.0)) as board:
        board.open()
        assert scripted_board.requests[0][1] == "V"
        assert not scripted_board.runs


def test_corrupt_lines_are_counted_and_good_ones_between_them_read(scripted_board: Any, board: OpenPneuBoardA) -> None:
    scripted_board.noise = b"\xff\x00 T1.0,2\r\nGlobal Cha\r\n"
    board.open()
    board.start(np.zeros(10))
    assert board.read(1.0)
    assert board.counters.corrupt >= 2 and board.counters.bytes_dropped >= 15


def test_a_rejected_request_is_counted(
    scripted_board: Any, board: OpenPneuBoardA, wait_until: Callable[..., None]
) -> None:
    board.open()
    board.start(np.zeros(10))
    board._link.write(b"T3.0\r\n")

    def rejected() -> bool:
        board.read(0.02)
        return board.counters.rejected_requests == 1

    wait_until(rejected)


def test_a_target_is_not_sent_when_its_channel_is_not_confirmed(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    board.start(np.zeros(10))
    scripted_board.silent = True
    before = time.monotonic()
    wanted = np.where(np.arange(10) == 4, 1000.0, 0.0)
    with pytest.raises(DeviceError, match="SC="):
        for _ in range(50):
            assert not board.set_targets(wanted)
    assert 0.5 <= time.monotonic() - before < 1.5
    assert scripted_board.requests_since(before, "T=1.000") == 0


def test_what_an_interruption_left_comes_first_the_next_time(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    board.start(np.zeros(10))
    wanted = np.arange(10) * 100.0
    for _ in range(20):
        calls = iter([False] * 5)
        board.set_targets(wanted, functools.partial(next, calls, True))
    board.check_alive()
    assert np.allclose(scripted_board.targets * 1000.0, wanted)
    sent = [text for _, text in scripted_board.requests if text.startswith("T=") and text != "T=0.000"]
    assert sent[0] == "T=0.900"  # the largest change first


def test_what_was_not_confirmed_before_a_vent_is_no_fault_afterwards(
    scripted_board: Any, board: OpenPneuBoardA, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.open()
    board.start(np.zeros(10))
    calls = iter([False])
    assert not board.set_targets(np.full(10, 100.0), functools.partial(next, calls, True))  # no time for the reply
    assert board.vent()
    time.sleep(0.6)
    answer, lost = scripted_board._answer, []

    def lose_one(line: bytes) -> None:
        if line.startswith(b"SC=") and not lost:
            lost.append(line)
        else:
            answer(line)

    monkeypatch.setattr(scripted_board, "_answer", lose_one)
    board.start(np.zeros(10))
    assert lost and scripted_board.runs


def test_a_board_that_confirms_late_is_not_deaf(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    board.start(np.zeros(10))
    wanted = np.full(10, 100.0)
    started = time.monotonic()
    while time.monotonic() - started < 0.8:
        calls = iter([False])
        assert not board.set_targets(wanted, functools.partial(next, calls, True))  # no time for the reply
        board.read(0.02)
    assert board.set_targets(wanted)


def stand_still_after_writing(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the system ran something else after each request."""
    write = SerialLink.write

    def write_and_sleep(link: SerialLink, data: bytes) -> None:
        write(link, data)
        time.sleep(seconds)

    monkeypatch.setattr(SerialLink, "write", write_and_sleep)


def test_a_driver_that_slept_looks_at_what_came_meanwhile(
    scripted_board: Any, board: OpenPneuBoardA, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.open()
    board.start(np.zeros(10))
    stand_still_after_writing(0.15, monkeypatch)  # longer than any request is waited for
    unanswered = board.counters.unanswered_requests
    assert board.set_targets(np.where(np.arange(10) == 4, 100.0, 0.0))
    assert board.counters.unanswered_requests == unanswered


def test_a_driver_that_stood_still_between_channel_and_target_sends_no_target(
    scripted_board: Any, board: OpenPneuBoardA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its guardian may have vented meanwhile (seen with SIGSTOP: a target came on the wire behind the vent)."""
    board.open()
    board.start(np.zeros(10))
    stand_still_after_writing(1.2, monkeypatch)
    sent = len(scripted_board.requests)
    assert not board.set_targets(np.where(np.arange(10) == 4, 1000.0, 0.0))
    assert not [text for _, text in scripted_board.requests[sent:] if text.startswith("T=")]
    monkeypatch.undo()
    assert board.set_targets(np.where(np.arange(10) == 4, 1000.0, 0.0))


def test_a_board_is_not_deaf_because_driver_and_board_slept_together(
    scripted_board: Any, board: OpenPneuBoardA
) -> None:
    wanted = np.full(10, 100.0)
    board.open()
    board.start(np.zeros(10))
    scripted_board.silent = True
    assert not board.set_targets(wanted)
    time.sleep(0.6)
    assert not board.set_targets(wanted)
    scripted_board.silent = False
    assert board.set_targets(wanted)


def test_a_pulled_cable_is_a_lost_board(scripted_board: Any, board: OpenPneuBoardA) -> None:
    board.open()
    board.start(np.zeros(10))
    scripted_board.unplug()
    with pytest.raises(DeviceLostError, match="is lost"):
        for _ in range(100):
            board.read(0.1)
    with pytest.raises(DeviceLostError):
        board.vent()


def test_something_else_on_the_port_is_shown_by_its_first_bytes(scripted_board: Any, board: OpenPneuBoardA) -> None:
    scripted_board.greeting = b"$GPGGA,123519,4807.038,N*47\r\n"
    scripted_board.address = b"?"
    scripted_board._answer = lambda line: None
    with pytest.raises(DeviceError, match=r"does not speak.*GPGGA"):
        board.open()


def test_a_silent_port_is_reported_as_silent(scripted_board: Any, board: OpenPneuBoardA) -> None:
    scripted_board.silent = True
    with pytest.raises(DeviceError, match="Nothing answers"):
        board.open()


def test_another_board_of_the_family_is_rejected(scripted_board: Any, board: OpenPneuBoardA) -> None:
    scripted_board.address = b"OpenPneu3.1"
    with pytest.raises(DeviceError, match=r"OpenPneu3\.1"):
        board.open()


def test_a_missing_port_lists_those_found(tmp_path: Path) -> None:
    with pytest.raises(PortError, match=r"There is no port.*(Ports found|No serial port)"):
        open_port(str(tmp_path / "ttyUSB7"), 115200)


def test_no_port_at_all_is_said() -> None:
    with pytest.raises(PortError, match="No port is set"):
        open_port("", 115200)


def test_a_file_is_no_port(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    with pytest.raises(PortError, match="is not a serial port"):
        open_port(str(path), 115200)


def test_a_busy_port_names_its_holder(scripted_board: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "BUSY_GRACE_SECONDS", 0.1)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import serial, sys; port = serial.Serial(sys.argv[1], exclusive=True); print('open', flush=True); input()",
            scripted_board.path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        with pytest.raises(PortError, match=rf"is in use by .*\(process {holder.pid}\)"):
            open_port(scripted_board.path, 115200)
    finally:
        holder.kill()
        holder.communicate()


def test_a_port_that_may_not_be_opened_names_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    path = os.ttyname(slave)
    try:
        os.chmod(path, 0)
        if os.access(path, os.R_OK):  # root may open anything: let the system call itself say no
            system_open = os.open

            def reject(opened: str, *args: int, **kwargs: int) -> int:
                if opened == path:
                    raise PermissionError(13, "Permission denied", path)
                return system_open(opened, *args, **kwargs)

            monkeypatch.setattr("serial.serialposix.os.open", reject)
        with pytest.raises(PortError, match="dialout"):
            open_port(path, 115200)
    finally:
        monkeypatch.undo()
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        os.close(master)
        os.close(slave)
