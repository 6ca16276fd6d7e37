"""A lost board, a new driver, a calibration: what comes back by itself, and that pressure never does."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stepped import SteppedBoard, SteppedClock, SteppedLink

from softform_actuation import connection as connection_module
from softform_actuation import supervisor as supervisor_module
from softform_actuation.assembly import served_by_devices
from softform_actuation.commands import CommandRejectedError
from softform_actuation.conformance import now
from softform_actuation.driver import Driver
from softform_actuation.latch import Latch
from softform_actuation.lease import Grant
from softform_actuation.requests import Requests
from softform_actuation.states import DriverSettings, State
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_pneumatics import offsets as offsets_module
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA
from softform_pneumatics.offsets import OffsetStore
from softform_pneumatics.pneumatic_device import PneumaticDevice

pytestmark = pytest.mark.slow

WaitUntil = Callable[..., None]
CHAMBERS = [f"c{i + 1}" for i in range(9)]
SETTINGS = DriverSettings(command_timeout=0.8, stream_timeout=1.0, settle_time=0.1, follow_timeout=0.8)


class Lab:
    """A port whose board may be pulled and put back, and drivers one after the other."""

    def __init__(self, folder: Path, clock: SteppedClock, board: SteppedBoard, robot: Robot) -> None:
        self.clock, self.board, self.robot, self.folder = clock, board, robot, folder
        self.drivers: list[Driver] = []
        self._commanders = 0

    def plug(self, board: SteppedBoard) -> None:
        self.board = board

    def driver(self, *, connect: bool = True) -> Driver:
        link = SteppedLink(self.clock, lambda: self.board)
        board = OpenPneuBoardA(link, vent_threshold=100.0, boot_seconds=0.05)
        served = served_by_devices(self.robot)[0]
        offsets = OffsetStore(self.folder / "offsets.json", served, self.board.path, 500.0)
        driver = Driver(
            [(PneumaticDevice(board, served, offsets=offsets), served)],
            self.robot,
            SETTINGS,
            lambda report: None,
            lambda readings: None,
            Latch(self.folder / "latch.json"),
        )
        self.drivers.append(driver)
        if connect:
            driver.connect()
            driver.activate()
        return driver

    def command_for_ever(self) -> None:
        """A commander that never tires, whatever happens, and never asks for the lease again."""
        lease, commanded = (
            self.drivers[-1].acquire("test", 0, now(self.drivers[-1]), self.drivers[-1].fingerprint),
            self.drivers[-1],
        )

        def command() -> None:
            with contextlib.suppress(CommandRejectedError):
                commanded.command("test", lease, commanded.fingerprint, CHAMBERS, ["Pa"] * 9, [3000.0] * 9)

        self.rest()
        self._commanders += 1
        own = self._commanders
        self.clock.every(0.02, command, lambda: self._commanders != own)

    def rest(self) -> None:
        """End the commander."""
        self._commanders += 1

    def is_inflated(self) -> bool:
        driver = self.drivers[-1]
        assert "reset" in driver.reason or driver.state is not State.FAULT, driver.reason
        return bool(self.board.pressures[:9].min() > 2.0)

    def stays_vented(self, seconds: float = 0.5) -> bool:
        self.clock.sleep(seconds)
        return bool(np.abs(self.board.pressures).max() < 0.1)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def lab(
    clock: SteppedClock, scripted_board: Any, robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lab]:
    monkeypatch.setattr(supervisor_module, "REST_SECONDS", 0.1)
    monkeypatch.setattr(connection_module, "ALIVE_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(offsets_module, "EMPTYING_SECONDS", 0.3)
    monkeypatch.setattr(offsets_module, "MEASURING_SECONDS", 0.4)
    monkeypatch.setattr("softform_pneumatics.probe._DWELL_SECONDS", 0.05)
    monkeypatch.setattr("softform_pneumatics.probe._VENT_SECONDS", 0.1)
    lab = Lab(tmp_path, clock, scripted_board, robot)
    yield lab
    lab.rest()
    for driver in lab.drivers:
        driver.close()


def test_a_board_that_comes_back_is_found_and_vented_and_waits_for_a_reset(
    lab: Lab, make_board: Callable[[], Any], wait_until: WaitUntil
) -> None:
    driver = lab.driver()
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    lab.board.unplug()
    wait_until(lambda: driver.state is State.FAULT and "is lost" in driver.reason)
    lab.clock.sleep(0.3)
    assert driver.health()["reconnections"] == 0
    back = make_board()
    back.targets[:], back.runs = 3.0, True  # it went on regulating: it has no watchdog
    lab.plug(back)
    wait_until(lambda: "is back on its port" in driver.reason)
    assert driver.state is State.FAULT and lab.stays_vented()
    driver.reset(now(driver))
    assert lab.stays_vented()  # nobody has asked
    lab.command_for_ever()
    wait_until(lab.is_inflated)


def test_another_board_in_its_place_is_vented_and_a_fault_until_the_first_one_is_back(
    lab: Lab, make_board: Callable[[], Any], wait_until: WaitUntil
) -> None:
    driver = lab.driver()
    first = lab.board
    first.unplug()
    wait_until(lambda: driver.state is State.FAULT)
    other = make_board()
    say = other.say
    other.say = lambda data: say(data.replace(b"Version 2.0", b"Version 2.1"))
    lab.plug(other)
    wait_until(lambda: "V" in [text for _, text in other.requests])
    with pytest.raises(SoftformError, match="firmware 2.0.* was there at configure, .*firmware 2.1.* is there now"):
        driver.reset(now(driver))
    assert driver.state is State.FAULT and {text for _, text in other.requests} == {
        "AT",
        "AT+ADDRESS",
        "AT+VERSION",
        "V",
    }
    first.start()
    lab.plug(first)
    wait_until(lambda: "is back on its port" in driver.reason)


def test_a_board_that_boots_in_motion_is_latched(lab: Lab, wait_until: WaitUntil) -> None:
    driver = lab.driver()
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    lab.board.say(b"\x00\xff OpenPneu2.0 boot\r\nT1.00,2.")
    lab.board.runs, lab.board.silent = False, True
    wait_until(lambda: driver.state is State.FAULT)
    lab.board.silent, lab.board.threshold = False, 2.0
    wait_until(lambda: driver.health()["confirmed safe"] is True)
    assert lab.stays_vented()
    driver.reset(now(driver))
    assert lab.stays_vented()  # nobody has asked
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    assert lab.board.threshold == 0.1


@pytest.mark.parametrize("how", ["stop", "fault", "dies"])
def test_a_new_driver_finds_the_latch_of_the_one_before(lab: Lab, how: str, wait_until: WaitUntil) -> None:
    driver = lab.driver()
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    if how == "stop":
        driver.stop()
    elif how == "fault":
        lab.board.leaks[4] = True
        wait_until(lambda: driver.state is State.FAULT)
        lab.board.leaks[4] = False
    left = (lab.folder / "latch.json").read_bytes()
    driver.close()
    if how == "dies":  # as kill -9 leaves it: what was there while it was active
        assert not (lab.folder / "latch.json").exists()
        (lab.folder / "latch.json").write_bytes(left)
    again = lab.driver()
    assert again.state is State.FAULT and "Latched before this start" in again.reason
    assert lab.stays_vented()
    again.reset(now(again))
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    again.deactivate()
    assert not (lab.folder / "latch.json").exists()


def test_a_stop_interrupts_the_test_of_the_chambers_that_a_reset_makes(lab: Lab, wait_until: WaitUntil) -> None:
    lab.driver().stop()
    lab.drivers[-1].close()
    driver = lab.driver()
    lab.board.regulates[:] = False  # so that the test of the chambers takes its time
    failures: list[str] = []

    def reset() -> None:
        try:
            driver.reset(now(driver))
        except SoftformError as error:
            failures.append(str(error))

    resetting = threading.Thread(target=reset)
    resetting.start()
    wait_until(lambda: lab.board.runs)
    started = lab.clock.now()
    driver.stop()
    assert lab.clock.now() - started < 1.5
    resetting.join()
    assert "interrupted" in failures[0]
    assert driver.state is State.FAULT and lab.stays_vented()


def test_a_reset_does_not_undo_a_stop_that_came_after_it_was_asked_for(lab: Lab, wait_until: WaitUntil) -> None:
    driver = lab.driver()
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    driver.stop()
    asked = now(driver)
    driver.stop()
    with pytest.raises(SoftformError, match="asked for before"):
        driver.reset(asked)
    assert driver.state is State.FAULT and lab.stays_vented()
    driver.reset(now(driver))
    assert lab.stays_vented()  # nobody has asked
    lab.command_for_ever()
    wait_until(lab.is_inflated)


def test_a_robot_that_was_left_in_doubt_is_not_called_vented(lab: Lab, wait_until: WaitUntil) -> None:
    driver = lab.driver()
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    lab.board.unplug()
    wait_until(lambda: driver.state is State.FAULT and "is lost" in driver.reason)
    with pytest.raises(SoftformError, match="no port"):
        driver.deactivate()
    driver.close()
    assert driver.state is State.OFFLINE and "did not confirm that it is safe" in driver.reason
    with pytest.raises(SoftformError, match="nothing was made safe now"):
        driver.stop()


def test_a_stop_while_the_driver_is_being_closed_is_not_forgotten(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    driver, told = lab.driver(), []
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    device, stopping = driver._devices[0], threading.Thread(target=lambda: told.append(driver.stop()))
    let_go = device.close

    def close() -> None:
        stopping.start()
        lab.clock.sleep(1.0)  # as long as it takes to end the guardian
        let_go()

    monkeypatch.setattr(device, "close", close)
    driver.close()
    wait_until(lambda: bool(told))
    assert told == ["The driver is not configured and moves nothing. Latched."]
    again = lab.driver()
    assert again.state is State.FAULT and "stopped by request" in again.reason


def test_a_stop_between_the_last_command_and_the_end_of_the_loop_is_confirmed_and_stays_latched(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    driver, told = lab.driver(), []
    lab.command_for_ever()
    wait_until(lab.is_inflated)
    device, stopping = driver._devices[0], threading.Thread(target=lambda: told.append(driver.stop()))
    vent = device.make_safe

    def make_safe() -> bool:
        if stopping.ident is None:
            stopping.start()
            lab.clock.sleep(0.1)
        return vent()

    monkeypatch.setattr(device, "make_safe", make_safe)
    driver.close()
    wait_until(lambda: bool(told))
    assert told == ["Measured at rest, and latched; call 'reset' to go on."]
    assert lab.driver().state is State.FAULT


def test_a_stop_while_the_driver_connects_is_not_forgotten(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    lab.driver().close()
    driver = lab.driver(connect=False)
    stopping, read = threading.Thread(target=driver.stop), driver._latch.read

    def read_and_be_stopped() -> str | None:
        monkeypatch.setattr(driver._latch, "read", read)
        latched = read()
        stopping.start()
        time.sleep(0.1)
        return latched

    monkeypatch.setattr(driver._latch, "read", read_and_be_stopped)
    driver.connect()
    wait_until(lambda: not stopping.is_alive())
    assert driver.state is State.FAULT and (lab.folder / "latch.json").exists()


def test_a_connection_that_is_interrupted_once_the_board_is_open_is_none(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, is_open = lab.driver(connect=False), []
    device = driver._devices[0]
    opened = device.open

    def open_it(interrupted: Callable[[], bool]) -> None:
        opened(interrupted)
        is_open.append(True)

    monkeypatch.setattr(device, "open", open_it)
    with pytest.raises(SoftformError, match="interrupted"):
        driver.connect(lambda: bool(is_open))
    assert driver.state is State.OFFLINE and lab.board.user is None


def test_what_waits_behind_a_request_may_interrupt_it_and_late_ones_are_forgotten(clock: SteppedClock) -> None:
    requests, done = Requests(clock), []

    def slow() -> str:
        deadline = clock.now() + 5.0
        while not requests.are_waiting and clock.now() < deadline:
            clock.sleep(0.01)
        done.append("interrupted" if requests.are_waiting else "ended")
        return ""

    def ask(work: Callable[[], str], late: bool = True) -> None:
        with contextlib.suppress(SoftformError):
            requests.ask(work, 0.5, late)

    asking = [threading.Thread(target=ask, args=(work,)) for work in (slow, lambda: done.append("stop") or "")]
    for thread in asking:
        thread.start()
        clock.sleep(0.1)
    requests.answer()
    for thread in asking:
        thread.join()
    ask(lambda: done.append("late stop") or "")
    ask(lambda: done.append("late reset") or "", late=False)
    requests.answer()
    assert done == ["interrupted", "stop", "late stop"]


def test_offsets_are_measured_at_rest_stored_and_applied(lab: Lab, wait_until: WaitUntil) -> None:
    lab.board.offsets[:9] = np.linspace(0.0, 0.4, 9)
    driver = lab.driver()
    assert "Stored and applied" in driver.calibrate()
    wait_until(lambda: driver.state is State.SAFE)
    lab.command_for_ever()
    wait_until(lambda: bool(np.allclose(lab.board.pressures[:9], 3.0, atol=0.05)))
    lab.rest()
    driver.close()
    assert lab.driver().health()["offsets (Pa)"] == "0, 50, 100, 150, 200, 250, 300, 350, 400"


def test_what_is_too_large_or_not_steady_is_no_offset_and_the_one_before_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = lab.driver()
    lab.board.offsets[2] = 0.1
    driver.calibrate()
    lab.board.offsets[2] = 0.9
    with pytest.raises(SoftformError, match="sensor of chamber c3 reads 900 Pa"):
        driver.calibrate()
    regulate = lab.board._regulate

    def drift() -> None:
        lab.board.offsets[5] += 0.01
        regulate()

    monkeypatch.setattr(lab.board, "_regulate", drift)
    with pytest.raises(SoftformError, match="not steady"):
        driver.calibrate()
    assert driver.health()["offsets (Pa)"] == "0, 0, 100, 0, 0, 0, 0, 0, 0"
    assert lab.stays_vented(0.0) or driver.state is State.SAFE


def test_a_stop_interrupts_a_calibration(lab: Lab, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil) -> None:
    monkeypatch.setattr(offsets_module, "MEASURING_SECONDS", 5.0)
    driver = lab.driver()
    failures: list[str] = []

    def calibrate() -> None:
        try:
            driver.calibrate()
        except SoftformError as error:
            failures.append(str(error))

    calibrating = threading.Thread(target=calibrate)
    calibrating.start()
    wait_until(lambda: lab.board.stopped and lab.board.runs)
    with pytest.raises(CommandRejectedError, match="being calibrated"):
        driver.command("test", Grant(0, 0), driver.fingerprint, CHAMBERS, ["Pa"] * 9, [1000.0] * 9)
    started = lab.clock.now()
    driver.stop()
    assert lab.clock.now() - started < 1.5
    calibrating.join()
    assert "interrupted" in failures[0]
    assert driver.state is State.FAULT and lab.stays_vented()
    assert not (lab.folder / "offsets.json").exists()


def test_a_cable_pulled_from_a_calibration_is_a_fault(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    monkeypatch.setattr(offsets_module, "MEASURING_SECONDS", 5.0)
    driver = lab.driver()
    lab.clock.after(0.8, lab.board.unplug)
    with pytest.raises(SoftformError, match="is lost|not open"):
        driver.calibrate()
    assert driver.state is State.FAULT


def test_the_loop_tells_its_times_and_sends_a_target_each_period(lab: Lab, wait_until: WaitUntil) -> None:
    driver = lab.driver()
    lab.command_for_ever()
    wait_until(lambda: int(str(driver.health()["loop ticks"])) > 150)
    health = driver.health()
    assert float(str(health["loop period mean (ms)"])) > 19.0
    assert float(str(health["command to wire p99 (ms)"])) > 0.0
    channels = [text for _, text in list(lab.board.requests) if text.startswith("SC=")]
    assert len(channels) > 100  # at least one target a period, though nothing has changed
