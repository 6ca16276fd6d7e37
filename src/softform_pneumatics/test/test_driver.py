"""The driver's thread against a scripted board: following, settling, and every way that must end in venting."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from stepped import SteppedClock

from softform_actuation import connection as connection_module
from softform_actuation import driver as driver_module
from softform_actuation import supervisor as supervisor_module
from softform_actuation.assembly import served_by_devices
from softform_actuation.commands import CommandRejectedError
from softform_actuation.conformance import now
from softform_actuation.device import DeviceError
from softform_actuation.driver import Driver
from softform_actuation.lease import Grant, LeaseError
from softform_actuation.states import DriverReport, DriverSettings, Readings, State, Status
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA
from softform_pneumatics.pneumatic_device import PneumaticDevice

SETTINGS = DriverSettings(command_timeout=0.8, stream_timeout=1.0, settle_time=0.1, follow_timeout=0.5)
WaitUntil = Callable[..., None]


@dataclass
class Seen:
    """What the driver has reported."""

    reports: list[DriverReport] = field(default_factory=list)
    readings: list[Readings] = field(default_factory=list)


class Commander:
    """Asks for the lease once, then sends one command again and again, until it is stopped."""

    def __init__(self, clock: SteppedClock, driver: Driver, pressures: list[float]) -> None:
        self._driver = driver
        self.grant = driver.acquire("test", 0, now(driver), driver.fingerprint)
        self.pressures = pressures
        self.rejections: list[str] = []
        self._has_ended = False
        clock.every(0.05, self._send, lambda: self._has_ended)

    def _send(self) -> None:
        try:
            command(self._driver, self.grant, self.pressures)
        except CommandRejectedError as error:
            self.rejections.append(str(error))

    def end(self) -> None:
        self._has_ended = True


def command(driver: Driver, lease: Grant, pressures: list[float]) -> None:
    driver.command("test", lease, driver.fingerprint, [f"c{i + 1}" for i in range(9)], ["Pa"] * 9, pressures)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def make_driver(
    scripted_board: Any, robot: Robot, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Driver]]:
    monkeypatch.setattr(supervisor_module, "REST_SECONDS", 0.1)
    monkeypatch.setattr(connection_module, "ALIVE_CHECK_SECONDS", 0.1)
    monkeypatch.setattr("softform_pneumatics.probe._DWELL_SECONDS", 0.05)
    monkeypatch.setattr("softform_pneumatics.probe._VENT_SECONDS", 0.1)
    drivers = []

    def make(settings: DriverSettings = SETTINGS, robot: Robot = robot) -> Driver:
        board = OpenPneuBoardA(scripted_board.link(), vent_threshold=100.0, boot_seconds=0.05)
        served = served_by_devices(robot)[0]
        devices = [(PneumaticDevice(board, served), served)]
        driver = Driver(devices, robot, settings, seen.reports.append, seen.readings.append)
        drivers.append(driver)
        return driver

    yield make
    for driver in drivers:
        driver.close()


@pytest.fixture
def driver(make_driver: Callable[..., Driver]) -> Driver:
    driver = make_driver()
    driver.connect()
    return driver


@pytest.fixture
def commander(clock: SteppedClock, driver: Driver, scripted_board: Any, wait_until: WaitUntil) -> Iterator[Commander]:
    """Someone who has inflated the robot and goes on commanding."""
    driver.activate()
    commander = Commander(clock, driver, [3000.0] * 9)
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 1.0))
    assert driver.state is State.RUNNING
    yield commander
    commander.end()


def vented(board: Any) -> Callable[[], bool]:
    return lambda: not board.runs and bool(np.abs(board.pressures).max() < 0.1)


def test_connect_leaves_the_board_vented_and_takes_no_commands(
    scripted_board: Any, driver: Driver, wait_until: WaitUntil
) -> None:
    wait_until(lambda: driver.state is State.SAFE)
    assert not scripted_board.runs
    with pytest.raises(CommandRejectedError, match="not active"):
        command(driver, Grant(0, 0), [1000.0] * 9)


def test_a_command_is_followed_settles_and_leaves_unused_channels_at_zero(
    clock: SteppedClock, scripted_board: Any, driver: Driver, seen: Seen, wait_until: WaitUntil
) -> None:
    driver.activate()
    wait_until(lambda: bool(seen.readings))
    goal = [500.0 * i for i in range(9)]
    commander = Commander(clock, driver, goal)
    wait_until(lambda: bool(seen.readings) and bool((seen.readings[-1].status == Status.SETTLED).all()))
    commander.end()
    assert np.abs(seen.readings[-1].values - goal).max() < 100.0
    assert scripted_board.targets[9] == 0.0
    assert (seen.readings[0].status == Status.SAFE).all()
    states = [report.state for report in seen.reports]
    assert set(states[: states.index(State.RUNNING)]) == {State.MAKING_SAFE, State.SAFE}
    assert [report.holder for report in seen.reports][-1] == "test"


def test_targets_rise_no_faster_than_the_robot_allows(scripted_board: Any, commander: Commander, robot: Robot) -> None:
    commander.end()
    targets: list[tuple[float, float]] = []
    channel = -1
    for moment, text in scripted_board.requests:
        if text.startswith("SC="):
            channel = int(text[3:])
        elif text.startswith("T=") and channel == 4:
            targets.append((moment, float(text[2:]) * 1000.0))
    rising = [(moment, pressure) for moment, pressure in targets if pressure > 400.0]
    assert len(rising) >= 2
    steps, slew_rate = np.diff([pressure for _, pressure in rising]), robot.slew_rate.max()
    assert steps.max() <= slew_rate * 0.2 + 1.0  # no step is longer than the longest tick counts
    elapsed, climbed = rising[-1][0] - rising[0][0], rising[-1][1] - rising[0][1]
    assert climbed <= slew_rate * (elapsed + 0.2)


def test_a_lost_target_is_sent_again(
    clock: SteppedClock, scripted_board: Any, driver: Driver, wait_until: WaitUntil
) -> None:
    driver.activate()
    wait_until(lambda: scripted_board.runs)
    scripted_board.lose_targets = 40
    commander = Commander(clock, driver, [1000.0] * 9)
    wait_until(lambda: bool(np.allclose(scripted_board.targets[:9], 1.0)))
    assert scripted_board.lose_targets == 0
    commander.end()


def test_a_steady_error_is_taken_off_and_forgotten_once_vented(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    scripted_board.steady_error = 0.08
    wait_until(lambda: bool(np.abs(scripted_board.pressures[:9] - 3.0).max() < 0.015))
    assert bool(np.all(scripted_board.targets[:9] <= 3.0 + 0.1))

    commander.end()  # midway, with trimmed targets on the board
    wait_until(vented(scripted_board))
    scripted_board.steady_error = 0.0
    wait_until(lambda: driver.state is State.SAFE and scripted_board.runs)
    began = clock.now()
    again = Commander(clock, driver, [3000.0] * 9)
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 2.95))
    again.end()
    targets = [float(text[2:]) for at, text in scripted_board.requests if at >= began and text.startswith("T=")]
    assert max(targets) <= 3.0


def test_a_sensor_that_reads_too_low_does_not_pump_a_chamber_up(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 2.9))
    scripted_board.steady_error = 0.9  # just within what the driver bears
    clock.sleep(2.5)
    assert driver.state is State.RUNNING
    assert scripted_board.targets.max() <= 3.301


@pytest.mark.parametrize("bad", [[9000.0] * 9, [float("nan")] * 9, [-500.0] * 9])
def test_a_bad_command_changes_nothing_and_does_not_feed_the_watchdog(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil, bad: list[float]
) -> None:
    commander.pressures = bad
    wait_until(lambda: driver.state is State.SAFE)
    assert commander.rejections
    assert scripted_board.targets.max() <= 3.0
    assert "no command of 'test' came" in driver.reason
    assert driver.statistics.rejected_commands > 0


def test_a_commander_that_falls_silent_ends_in_venting_and_may_come_back(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    before = clock.now()
    commander.end()
    wait_until(lambda: scripted_board.requests_since(before, "V") >= 1)
    wait_until(lambda: bool(np.abs(scripted_board.pressures).max() < 0.1))
    wait_until(lambda: driver.state is State.SAFE)
    assert np.all(scripted_board.targets[:9] <= 3.0)
    again = Commander(clock, driver, [2000.0] * 9)
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 1.8))
    again.end()


def test_a_stream_that_stalls_vents_and_latches(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    scripted_board.stalls = True
    wait_until(lambda: driver.state is State.FAULT)
    wait_until(vented(scripted_board))
    assert "sent no measurements" in driver.reason
    scripted_board.stalls = False
    clock.sleep(0.3)
    assert driver.state is State.FAULT and not scripted_board.runs
    assert any("latched" in rejection for rejection in commander.rejections)


def test_a_driver_whose_computer_slept_vents_and_latches(
    clock: SteppedClock,
    scripted_board: Any,
    driver: Driver,
    commander: Commander,
    wait_until: WaitUntil,
) -> None:
    clock.slept = 3600.0
    wait_until(lambda: driver.state is State.FAULT)
    assert "The driver stood still for 3600." in driver.reason
    wait_until(vented(scripted_board))
    clock.sleep(0.3)
    assert driver.state is State.FAULT and not scripted_board.runs


def test_over_pressure_vents_and_latches(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    scripted_board.overshoots[3] = 40.0
    wait_until(lambda: driver.state is State.FAULT)
    wait_until(vented(scripted_board))
    assert "c4 is at" in driver.reason


def test_a_chamber_that_rises_beyond_its_setpoint_vents_and_latches_within_its_range(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil, robot: Robot
) -> None:
    """As when the board has understood another target: the range is not left yet."""
    scripted_board.overshoots[3] = 4.9
    wait_until(lambda: driver.state is State.FAULT)
    wait_until(vented(scripted_board))
    assert "c4 rises to" in driver.reason
    assert 1e3 * scripted_board.pressures.max() < robot.actuator_max.min()


def test_a_chamber_that_does_not_follow_vents_and_latches(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    scripted_board.leaks[6] = True
    wait_until(lambda: driver.state is State.FAULT)
    wait_until(vented(scripted_board))
    assert "c7 stays at" in driver.reason


def test_a_pulled_cable_is_a_fault_and_no_exception(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    scripted_board.unplug()
    wait_until(lambda: driver.state is State.FAULT)
    assert "is lost" in driver.reason
    assert "has not confirmed that it is safe" in driver.report.reason
    assert driver._thread is not None and driver._thread.is_alive()
    with pytest.raises(SoftformError, match="There is no port|cannot be opened|is lost"):
        driver.reset(now(driver))


def test_an_exception_in_the_loop_vents_and_latches(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(readings: Readings) -> None:
        raise ZeroDivisionError("planted")

    confirmed: list[bool] = []
    log = lambda *told: confirmed.append(driver._supervisor.connections[0].acknowledged)  # noqa: E731
    monkeypatch.setattr(driver_module._log, "exception", log)  # a log that nobody reads may stand still
    driver._supervisor._on_readings = fail
    wait_until(lambda: driver.state is State.FAULT)
    wait_until(vented(scripted_board))
    assert "planted" in driver.reason
    wait_until(lambda: bool(confirmed))
    assert confirmed[0]


def test_stop_vents_at_once_and_latches_until_reset(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    before = clock.now()
    driver.stop()
    assert scripted_board.requests_since(before, "V") >= 1
    assert driver.state is State.FAULT and "stopped by request" in driver.reason
    wait_until(vented(scripted_board))
    clock.sleep(0.3)
    assert not scripted_board.runs  # the commander goes on, the latch holds
    driver.reset(now(driver))
    clock.sleep(1.0)
    assert driver.state is State.SAFE  # the commander goes on: its lease is dead, and it does not ask again
    assert "stopped by request" in commander.rejections[-1] or "reset" in commander.rejections[-1]
    again = Commander(clock, driver, [3000.0] * 9)
    wait_until(lambda: driver.state is State.RUNNING)
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 2.8))
    again.end()


def test_deactivate_vents_during_motion(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    before = clock.now()
    driver.deactivate()
    assert scripted_board.requests_since(before, "V") >= 1
    assert driver.state is State.SAFE
    wait_until(vented(scripted_board))
    clock.sleep(0.2)
    assert not scripted_board.runs
    assert any("not active" in rejection for rejection in commander.rejections)


def test_a_vent_that_is_not_confirmed_is_repeated_until_it_is(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    scripted_board.ignores_vent = True
    with pytest.raises(SoftformError, match="does not confirm"):
        driver.stop()
    assert "has not confirmed" in driver.report.reason
    with pytest.raises(SoftformError, match="does not confirm"):
        driver.reset(now(driver))
    scripted_board.ignores_vent = False
    wait_until(vented(scripted_board))
    wait_until(lambda: driver.health()["confirmed safe"] is True)


def test_a_board_that_runs_again_by_itself_is_vented_again(
    clock: SteppedClock, scripted_board: Any, driver: Driver, wait_until: WaitUntil
) -> None:
    scripted_board.targets[:] = 3.0
    before = clock.now()
    clock.sleep(0.35)
    scripted_board.runs = True
    wait_until(lambda: scripted_board.requests_since(before, "V") >= 1 and not scripted_board.runs)


def test_a_board_that_dies_at_rest_is_a_fault(scripted_board: Any, driver: Driver, wait_until: WaitUntil) -> None:
    scripted_board.silent = True
    wait_until(lambda: driver.state is State.FAULT)
    scripted_board.silent = False
    driver.reset(now(driver))
    assert driver.state is State.SAFE


def test_the_shipped_firmware_is_rejected_when_activated_and_vented(
    scripted_board: Any, make_driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softform_pneumatics.probe._RISE_SECONDS", 0.3)
    scripted_board.behave_as_shipped()
    driver = make_driver()
    driver.connect()
    with pytest.raises(DeviceError, match="of the 9 independent chambers"):
        driver.activate()
    assert not scripted_board.runs
    with pytest.raises(LeaseError, match="not active"):
        driver.acquire("test", 0, now(driver), driver.fingerprint)
    driver.close()
    OpenPneuBoardA(scripted_board.link(), vent_threshold=100.0, boot_seconds=0.05).open()


def test_a_robot_beyond_a_channels_range_is_rejected_once_the_board_is_vented(
    scripted_board: Any, make_driver: Callable[..., Driver], robot: Robot
) -> None:
    drive = robot.drive.model_copy(update={"minimum": -5000.0})
    driver = make_driver(robot=robot.model_copy(update={"drive": drive}))
    with pytest.raises(DeviceError, match="Chamber c2 works between -5000"):
        driver.connect()
    requests = [request for _, request in scripted_board.requests]
    assert requests[-1] == "V" and "C" not in requests, "whoever drove it before may have left pressure"


def test_health_counts_what_the_loop_does(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    scripted_board.noise = b"T1.2\r\n"
    wait_until(lambda: int(str(driver.health()["corrupt lines"])) > 10)
    health = driver.health()
    assert health["state"] == "RUNNING"
    assert health["holding a shape"] is True and str(health["held without renewal (s)"]).endswith(" of 600")
    assert int(str(health["measurements"])) > 10
    assert int(str(health["loop ticks"])) > 3
    assert driver.state is State.RUNNING  # corrupt lines between good ones disturb nothing


def test_settings_may_be_changed(make_driver: Callable[..., Driver], wait_until: WaitUntil) -> None:
    driver = make_driver(replace(SETTINGS, loop_rate=50.0))
    driver.connect()
    wait_until(lambda: driver.state is State.SAFE)


def test_a_process_goes_on_as_an_ordinary_one_once_its_driver_is_closed(
    make_driver: Callable[..., Driver], wait_until: WaitUntil
) -> None:
    driver = make_driver(replace(SETTINGS, realtime_priority=1))
    driver.connect()
    wait_until(lambda: driver.health()["loop thread"] != "not running")
    if driver.health()["loop thread"] == "SCHED_FIFO 1":  # else this user has no right to it
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
    driver.close()
    assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_OTHER


def test_connecting_moves_no_air(scripted_board: Any, driver: Driver, wait_until: WaitUntil) -> None:
    """It is measured while all channels are stopped, at targets of zero."""
    wait_until(lambda: driver.state is State.SAFE)
    texts = [text for _, text in scripted_board.requests]
    first, then = texts[: texts.index("V") + 1], texts[texts.index("V") + 1 :]
    assert set(first) <= {"AT", "AT+ADDRESS", "AT+VERSION", "V"}
    assert {text for text in then if not text.startswith("SC=")} == {"AT", "T=0.000", "PP", "C", "V"}
    assert then.index("PP") < then.index("C") < len(then) - 1 - then[::-1].index("PP") < len(then) - 1


def test_one_commander_at_a_time_is_followed(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    with pytest.raises(LeaseError, match="'test' holds the lease"):
        driver.acquire("stranger", 0, now(driver), driver.fingerprint)
    held = commander.grant
    wrong = [("stranger", Grant(0, 0)), ("stranger", held), ("test", held._replace(lease=held.lease - 1))]
    for source, lease in (*wrong, ("test", Grant(driver.report.lease, 0))):  # what everybody can hear is not enough
        with pytest.raises(CommandRejectedError, match="'test' holds the lease"):
            driver.command(source, lease, driver.fingerprint, [f"c{i + 1}" for i in range(9)], ["Pa"] * 9, [5000.0] * 9)
    assert "'test' holds" in str(driver.health()["last rejection"])
    clock.sleep(1.5)
    assert driver.state is State.RUNNING and scripted_board.targets.max() <= 3.301


def test_a_lease_given_up_makes_safe_at_once(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    before, lease = clock.now(), commander.grant
    with pytest.raises(LeaseError, match="'test' holds"):
        driver.release("stranger", lease)
    driver.release("test", lease)
    assert scripted_board.requests_since(before, "V") >= 1 and driver.state is State.MAKING_SAFE
    clock.sleep(1.0)
    wait_until(vented_or_at_rest(scripted_board))
    assert any("gave it up" in rejection for rejection in commander.rejections)


def vented_or_at_rest(board: Any) -> Callable[[], bool]:
    return lambda: bool(np.abs(board.pressures).max() < 0.1)


def test_a_commander_that_wakes_up_does_not_inflate_the_robot_again(
    clock: SteppedClock, scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    lease = commander.grant
    commander.end()  # as SIGSTOP does
    clock.sleep(3.0)
    assert driver.state is State.SAFE
    for _ in range(50):  # as SIGCONT does
        with pytest.raises(CommandRejectedError, match="no command of 'test' came"):
            command(driver, lease, [3000.0] * 9)
        clock.sleep(0.05)
    assert bool(np.abs(scripted_board.pressures).max() < 0.1)


@pytest.mark.parametrize("late", [0.6, -0.2])
def test_a_command_of_another_time_is_rejected_and_renews_nothing(
    clock: SteppedClock, driver: Driver, commander: Commander, wait_until: WaitUntil, late: float
) -> None:
    lease = commander.grant
    commander.end()
    began = clock.now()
    while driver.state is State.RUNNING:
        with pytest.raises(CommandRejectedError, match="ago|future|lease"):
            driver.command(
                "test", lease, driver.fingerprint, [f"c{i + 1}" for i in range(9)], ["Pa"] * 9, [5000.0] * 9, age=late
            )
        clock.sleep(0.05)
        assert clock.now() - began < 2.0
    wait_until(lambda: driver.state is State.SAFE)


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_stop_and_a_signal_interrupt_the_test_of_the_chambers(
    clock: SteppedClock, scripted_board: Any, driver: Driver, wait_until: WaitUntil, how: str
) -> None:
    scripted_board.regulates[:] = False  # so that the test of the chambers takes its time
    failures: list[str] = []

    def activate() -> None:
        try:
            driver.activate()
        except SoftformError as error:
            failures.append(str(error))

    activating = threading.Thread(target=activate)
    activating.start()
    wait_until(lambda: scripted_board.runs)
    began = clock.now()
    if how == "stop":
        driver.stop()
    else:
        driver.interrupt()
    wait_until(lambda: not scripted_board.runs)
    assert clock.now() - began < 0.3
    activating.join()
    assert "interrupted" in failures[0]
    assert driver.state in ((State.FAULT,) if how == "stop" else (State.SAFE, State.MAKING_SAFE))


def test_a_sensor_that_shows_what_it_showed_under_pressure_is_not_believed_at_rest(
    scripted_board: Any, driver: Driver, commander: Commander, wait_until: WaitUntil
) -> None:
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 2.8))
    scripted_board.shown_as[4] = 0.4  # kPa, within the tolerance
    wait_until(lambda: driver.state is State.FAULT)
    with pytest.raises(SoftformError, match="the pressure of c5 is not known"):
        driver.stop()
    assert not driver.health()["confirmed safe"]
    assert [one.name for one in driver.report.actuators if not one.at_rest] == ["c5"]
