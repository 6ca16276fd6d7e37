"""The driver killed or frozen in the middle of a motion: its guardian vents the board."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from softform_actuation.conformance import now
from softform_actuation.device import DeviceError, ServedActuators
from softform_actuation.driver import Driver
from softform_actuation.guardian import HEARTBEAT_SECONDS, SOCKET_VARIABLE
from softform_actuation.serial_link import SerialLink
from softform_actuation.states import DriverSettings, State
from softform_core.robots import Robot
from softform_pneumatics import probe
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA
from softform_pneumatics.pneumatic_device import PneumaticDevice

WaitUntil = Callable[..., None]

# A whole driver that inflates the robot and keeps on commanding it; it says `guardian <process id>` once connected.
DRIVER_PROGRAM = """
import sys, time
from softform_core.robots import load_robot
from softform_pneumatics import probe
from softform_actuation.conformance import now
from softform_actuation.serial_link import SerialLink
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA
from softform_actuation.driver import Driver
from softform_actuation.states import DriverSettings
from softform_actuation.assembly import served_by_devices
from softform_pneumatics.pneumatic_device import PneumaticDevice

probe._DWELL_SECONDS = probe._VENT_SECONDS = 0.05
robot = load_robot("membrane")
board = OpenPneuBoardA(SerialLink(sys.argv[1]), vent_threshold=100.0, boot_seconds=0.05)
def say(report):
    sys.stdout.write(f"state {report.state.name} {report.reason}\\n"); sys.stdout.flush()  # at once, beside others
served = served_by_devices(robot)[0]
devices = [(PneumaticDevice(board, served), served)]
with Driver(devices, robot, DriverSettings(), say, lambda state: None) as driver:
    driver.connect()
    driver.activate()
    sys.stdout.write(f"guardian {board._link.guardian_process_id}\\n"); sys.stdout.flush()
    lease = driver.acquire("test", 0, now(driver), driver.fingerprint)
    while True:
        try:
            driver.command("test", lease, driver.fingerprint, robot.actuators, ["Pa"] * 9, [3000.0] * 9)
        except Exception:
            pass
        time.sleep(0.1)
"""


@pytest.fixture(autouse=True)
def no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers start guardians of their own, on whichever machine."""
    monkeypatch.setenv(SOCKET_VARIABLE, "")


class RunningDriver:
    def __init__(self, process: subprocess.Popen[str], guardian: psutil.Process) -> None:
        self.process = process
        self.guardian = guardian


@pytest.fixture
def running_driver(scripted_board: Any, wait_until: WaitUntil) -> Iterator[RunningDriver]:
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER_PROGRAM, scripted_board.path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        guardian = 0
        for line in process.stdout:
            if line.startswith("guardian"):
                guardian = int(line.split()[1])
                break
        assert guardian
        wait_until(lambda: bool(scripted_board.pressures[:9].min() > 2.0))
        yield RunningDriver(process, psutil.Process(guardian))
    finally:
        process.kill()
        process.communicate()


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_kill_9_of_the_driver_in_motion_ends_in_venting(
    scripted_board: Any, running_driver: RunningDriver, wait_until: WaitUntil
) -> None:
    running_driver.process.kill()
    wait_until(lambda: not scripted_board.runs and bool(scripted_board.pressures.max() < 0.1))
    wait_until(lambda: is_gone(running_driver.guardian))


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A guardian service, which `running_driver` finds."""
    path = tmp_path / "guardian.sock"
    process = subprocess.Popen([sys.executable, "-m", "softform_actuation.guardian_service", path])
    deadline = time.monotonic() + 10.0
    while not path.is_socket() and time.monotonic() < deadline:
        time.sleep(0.02)
    monkeypatch.setenv(SOCKET_VARIABLE, str(path))
    yield process
    process.terminate()
    process.wait()


def test_the_guardian_service_vents_when_the_driver_and_all_that_it_started_are_killed(
    scripted_board: Any, service: subprocess.Popen[bytes], running_driver: RunningDriver, wait_until: WaitUntil
) -> None:
    assert running_driver.guardian.pid == service.pid
    driver = psutil.Process(running_driver.process.pid)
    for process in [*driver.children(recursive=True), driver]:
        process.kill()
    wait_until(lambda: not scripted_board.runs and bool(scripted_board.pressures.max() < 0.1))
    running_driver.process.wait()
    board = OpenPneuBoardA(SerialLink(scripted_board.path), vent_threshold=100.0, boot_seconds=0.05)
    board.open()
    board.close()
    assert service.poll() is None


def test_a_new_driver_can_take_over_after_kill_9(
    scripted_board: Any, running_driver: RunningDriver, wait_until: WaitUntil
) -> None:
    running_driver.process.kill()
    running_driver.process.wait()
    board = OpenPneuBoardA(SerialLink(scripted_board.path), vent_threshold=100.0, boot_seconds=0.05)
    board.open()
    board.close()


def test_a_frozen_driver_is_vented_and_reports_it_when_it_thaws(
    scripted_board: Any, running_driver: RunningDriver, wait_until: WaitUntil
) -> None:
    os.kill(running_driver.process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not scripted_board.runs and bool(scripted_board.pressures.max() < 0.1))
    finally:
        os.kill(running_driver.process.pid, signal.SIGCONT)
    assert running_driver.process.stdout is not None
    states = iter(running_driver.process.stdout.readline, "")
    assert any("RUNNING" in state for state in states)
    # Its commander was frozen, too: an old command alone would let it go on with the next one.
    assert "state FAULT" in next(states)
    time.sleep(1.0)
    assert not scripted_board.runs


def test_signals_to_the_group_and_the_guardian_itself_do_not_end_it(
    scripted_board: Any, running_driver: RunningDriver, wait_until: WaitUntil
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        running_driver.guardian.send_signal(number)
    time.sleep(0.2)
    assert not is_gone(running_driver.guardian)
    assert os.getsid(running_driver.guardian.pid) != os.getsid(running_driver.process.pid)


def test_a_guardian_that_is_killed_is_replaced(
    scripted_board: Any, running_driver: RunningDriver, wait_until: WaitUntil
) -> None:
    running_driver.guardian.kill()
    driver = psutil.Process(running_driver.process.pid)
    wait_until(lambda: [c for c in driver.children() if c.pid != running_driver.guardian.pid and not is_gone(c)] != [])
    assert scripted_board.runs
    running_driver.process.kill()
    wait_until(lambda: not scripted_board.runs)


def test_a_guardian_that_is_frozen_is_replaced_and_vents_no_more(
    scripted_board: Any, running_driver: RunningDriver, wait_until: WaitUntil
) -> None:
    running_driver.guardian.send_signal(signal.SIGSTOP)
    driver = psutil.Process(running_driver.process.pid)
    wait_until(lambda: [c for c in driver.children() if c.pid != running_driver.guardian.pid and not is_gone(c)] != [])
    wait_until(lambda: is_gone(running_driver.guardian))
    assert scripted_board.runs and scripted_board.pressures[:9].min() > 2.0
    running_driver.process.kill()
    wait_until(lambda: not scripted_board.runs)


def test_close_vents_during_motion_and_ends_the_guardian(
    scripted_board: Any, robot: Robot, served: ServedActuators, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_DWELL_SECONDS", 0.05)
    monkeypatch.setattr(probe, "_VENT_SECONDS", 0.05)
    board = OpenPneuBoardA(SerialLink(scripted_board.path), vent_threshold=100.0, boot_seconds=0.05)
    devices = [(PneumaticDevice(board, served), served)]
    driver = Driver(devices, robot, DriverSettings(), lambda report: None, lambda readings: None)
    driver.connect()
    driver.activate()
    guardian = psutil.Process(board._link.guardian_process_id)

    lease = driver.acquire("test", 0, now(driver), driver.fingerprint)

    def is_inflated() -> bool:
        driver.command("test", lease, driver.fingerprint, robot.actuators, ["Pa"] * 9, [3000.0] * 9)
        return bool(scripted_board.pressures[:9].min() > 1.0)

    wait_until(is_inflated)
    assert driver.state is State.RUNNING
    before = time.monotonic()
    driver.close()
    assert scripted_board.requests_since(before, "V") >= 1
    assert board._link.guardian_process_id is None and is_gone(guardian)
    assert driver.state is State.OFFLINE
    wait_until(lambda: not scripted_board.runs and bool(np.abs(scripted_board.pressures).max() < 0.1))


def test_the_guardian_is_small(running_driver: RunningDriver) -> None:
    assert running_driver.guardian.memory_info().rss < 25 * 2**20  # all of it locked, where that is permitted


def test_a_program_that_ends_by_an_exception_vents(scripted_board: Any, wait_until: WaitUntil, tmp_path: Path) -> None:
    program = DRIVER_PROGRAM.replace(
        "while True:",
        "time.sleep(0.5)\n"
        "    driver.command('test', lease, driver.fingerprint, robot.actuators, ['Pa'] * 9, [3000.0] * 9)\n"
        "    time.sleep(0.5); 1 / 0\n    while True:",
    )
    ended = subprocess.run([sys.executable, "-c", program, scripted_board.path], capture_output=True, text=True)
    assert "ZeroDivisionError" in ended.stderr
    assert any(text.startswith("T=") and float(text[2:]) > 0.5 for _, text in scripted_board.requests)
    assert scripted_board.requests[-1][1] == "V"
    wait_until(lambda: bool(scripted_board.pressures.max() < 0.1))


def test_a_guardian_that_cannot_be_replaced_at_once_is_replaced_later(
    scripted_board: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = SerialLink(scripted_board.path)
    link.open(115200)
    link.guard(b"V")
    first = psutil.Process(link.guardian_process_id)
    first.kill()
    first.wait()
    start = subprocess.Popen

    def reject(*words: Any, **settings: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "Popen", reject)
    deadline = time.monotonic() + 5.0
    with pytest.raises(DeviceError, match="cannot be started: Cannot allocate memory"):
        while time.monotonic() < deadline:
            link.receive(0.01)
    monkeypatch.setattr(subprocess, "Popen", start)
    time.sleep(HEARTBEAT_SECONDS)
    link.receive(0.01)
    assert psutil.pid_exists(link.guardian_process_id) and link.guardian_process_id != first.pid
    link.close(emergency=False)
