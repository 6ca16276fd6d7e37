"""The driver's tendon motors against the emulated bus on a pseudo-terminal, with the body of a reality behind it."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import serial

from softform_actuation.assembly import served_by_devices
from softform_actuation.clock import Clock
from softform_actuation.device import DeviceError, DeviceLostError, SafeAction, ServedActuators, UnsafeError
from softform_actuation.guardian import SILENCE_SECONDS
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.live_body import LiveBody
from softform_rig.motor_emulation import EMULATION, make_motors
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_rig.reality import load_reality
from softform_rig.tendon_motor import TICKS_A_TURN
from softform_tendons.settings import SLACKENED_WITHIN
from softform_tendons.tendon_bus import WATCHDOG_SECONDS, TendonBus

ROBOT = load_robot("tendon_rod")
BENT = ROBOT.actuators_of(np.array([0.008, 0.0, 0.001]))
BUSY_MACHINE = 0.3  # s that it may keep the guardian waiting

# A whole driver that pulls the tendons and keeps on commanding them.
DRIVER_PROGRAM = """
import sys, time
from contextlib import suppress
from softform_actuation.assembly import make_driver, parameters_of
from softform_actuation.commands import CommandRejectedError
from softform_actuation.conformance import now
from softform_actuation.parameters import PARAMETERS
from softform_core.robots import load_robot

robot = load_robot("tendon_rod")
values = {row.name: row.default for row in (*PARAMETERS, *parameters_of(robot))} | {"port": sys.argv[1]}
with make_driver(values, robot, lambda report: None, lambda readings: None) as driver:
    driver.connect()
    driver.activate()
    lease = driver.acquire("test", 0, now(driver), driver.fingerprint)
    while True:
        with suppress(CommandRejectedError):
            goal = list(map(float, sys.argv[2:]))
            driver.command("test", lease, driver.fingerprint, robot.actuators, ["m"] * 4, goal)
        time.sleep(0.1)
"""


class Line:
    """A serial line without a guardian."""

    clock = Clock()

    def __init__(self, path: str) -> None:
        self.path = path
        self.emergency = b""
        self._port: serial.Serial | None = None

    def open(self, baud_rate: int) -> None:
        self._port = serial.Serial(self.path, baud_rate, timeout=0.0, write_timeout=1.0, exclusive=True)

    def guard(self, emergency: bytes, later: bytes = b"", seconds: float = 0.0) -> None:
        self.emergency = emergency

    def receive(self, timeout: float) -> bytes:
        assert self._port is not None
        try:
            ready, _, _ = select.select([self._port.fileno()], [], [], timeout)
            return bytes(self._port.read(4096)) if ready else b""
        except OSError as error:
            raise DeviceLostError(f"{self.path} is lost: {error}.", "Look at the cable.") from error

    def write(self, data: bytes) -> None:
        assert self._port is not None
        try:
            self._port.write(data)
        except OSError as error:
            raise DeviceLostError(f"{self.path} is lost: {error}.", "Look at the cable.") from error

    def close(self, emergency: bool) -> None:
        if self._port is not None:
            if emergency:
                with contextlib.suppress(OSError):
                    self._port.write(self.emergency)
            self._port.close()
            self._port = None


def served(**settings: object) -> ServedActuators:
    (described,) = served_by_devices(ROBOT)
    return replace(described, settings={**described.settings, **settings})


class Bench:
    """Motors, their tendons' tension, and the device that drives them."""

    def __init__(self, folder: Path, reality: str = "ideal") -> None:
        self.folder = folder
        described = load_reality(reality, ROBOT)
        self.bus = make_motors(ROBOT, ROBOT.devices[0], described.errors_of(EMULATION))
        self.body = LiveBody(ROBOT, described)
        self.schedule = FaultSchedule()
        self.terminal = PseudoTerminal(self.bus, folder / "bus", self.schedule)
        self.terminal.start()
        self.devices: list[TendonBus] = []
        self.body.shape(self.pulls)
        self.bus.loads = self.body.tendon_loads()  # compiles
        self._stop = threading.Event()
        self._body = threading.Thread(target=self._feel)
        self._body.start()

    def device(self, **settings: object) -> TendonBus:
        made = TendonBus(served(**settings), Line(str(self.folder / "bus")), 1_000_000, self.folder / "homes.json")
        self.devices.append(made)
        return made

    def inject(self, *faults: str) -> None:
        for fault in faults:
            self.schedule.inject(parse_fault(fault))

    @property
    def pulls(self) -> np.ndarray:
        return self.bus.actuator_values(ROBOT.devices[0].channels)

    def drive(self, device: TendonBus, to: np.ndarray, seconds: float, start: np.ndarray | None = None) -> np.ndarray:
        """Lead all tendons there at their slew rate and stay for the rest of the time; the last measurement.

        `start` are the targets so far of a device that is driven already.
        """
        at = device.begin() if start is None else start
        begun, last = time.monotonic(), np.full(4, np.nan)
        while time.monotonic() - begun < seconds:
            step = ROBOT.slew_rate * 0.02
            at = at + np.clip(to - at, -step, step)
            device.set_targets(at, lambda: False)
            for measurement in device.read(0.02):
                last = measurement.values
            time.sleep(0.015)
        return last

    def wait_until(self, condition: Callable[[], bool], seconds: float, is_wanted: bool = True) -> float:
        """Wait for what is wanted, or see that it does not come; s that it took."""
        begun = time.monotonic()
        while not (came := condition()) and time.monotonic() - begun < seconds:
            time.sleep(0.005)
        assert came == is_wanted, self.pulls
        return time.monotonic() - begun

    def _feel(self) -> None:
        while not self._stop.wait(0.05):
            self.body.shape(self.pulls)
            self.bus.loads = self.body.tendon_loads()

    def close(self) -> None:
        for device in self.devices:
            device.close()
        self._stop.set()
        self._body.join()
        self.terminal.stop()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def test_tendons_are_pulled_measured_and_slackened_in_time(bench):
    device = bench.device()
    device.open()
    assert device.safe_action is SafeAction.SLACKEN
    measured = bench.drive(device, BENT, 2.0)
    np.testing.assert_allclose(measured, BENT, atol=2e-4)
    np.testing.assert_allclose(bench.pulls, BENT, atol=2e-4)
    assert bench.bus.loads is not None
    assert bench.bus.loads.tension[0] > 1.0 and bench.bus.loads.tension[1] < 0.1
    health = device.health()
    assert "XC330-T288, 11." in str(health.values["motor 1 (t1)"])
    assert "°C" in str(health.values["motor 4 (t4)"])
    begun = time.monotonic()
    assert device.make_safe()
    assert time.monotonic() - begun < 0.2
    time.sleep(max(0.0, begun + SLACKENED_WITHIN - time.monotonic()))
    np.testing.assert_allclose(bench.pulls, ROBOT.safe, atol=2e-4)
    assert device.check().complaint == ""
    assert not any(motor.torque_on for motor in bench.bus.motors.values())
    assert device.read(0.01) == []


def test_motors_stop_by_themselves_when_the_driver_falls_silent_and_the_guardians_bytes_slacken(bench):
    device = bench.device()
    device.open()
    line = device._line
    device.begin()
    device.set_targets(BENT, lambda: False)
    time.sleep(WATCHDOG_SECONDS + 0.3)
    stood = bench.pulls
    time.sleep(0.2)
    np.testing.assert_allclose(bench.pulls, stood, atol=1e-5)
    with pytest.raises(UnsafeError, match="stopped by themselves"):
        device.read(0.1)
    # Behind half of another request, as a driver that died within it leaves it.
    line.write(b"\xff\xff\xfd\x00\xfe\x20\x00\x83\x74" + line.emergency)
    time.sleep(SLACKENED_WITHIN)
    np.testing.assert_allclose(bench.pulls, ROBOT.safe, atol=2e-4)


@pytest.mark.parametrize(("number", "noticed"), [(signal.SIGKILL, 0.0), (signal.SIGSTOP, SILENCE_SECONDS)])
def test_the_guardian_slackens_in_time_when_the_driver_is_gone(bench, tmp_path, number, noticed):
    words = [sys.executable, "-c", DRIVER_PROGRAM, str(tmp_path / "bus"), *map(str, BENT)]
    process = subprocess.Popen(words, env={**os.environ, "SOFTFORM_STATE": str(tmp_path)})
    try:
        bench.wait_until(lambda: np.abs(bench.pulls - BENT).max() < 2e-4, 60.0)
        process.send_signal(number)
        took = bench.wait_until(lambda: np.abs(bench.pulls - ROBOT.safe).max() < 2e-4, 20.0)
        assert noticed < took < noticed + BUSY_MACHINE + SLACKENED_WITHIN
        process.send_signal(signal.SIGCONT)
        bench.wait_until(lambda: (bench.pulls > ROBOT.safe + 1e-3).any(), 2.0, is_wanted=False)
    finally:
        process.kill()
        process.wait()


def test_motors_that_lost_their_power_for_a_moment_are_not_wound_a_turn_too_far(bench):
    for motor in bench.bus.motors.values():
        motor.home, motor.position = motor.home + TICKS_A_TURN, motor.position + TICKS_A_TURN
    device = bench.device()
    device.open()
    time.sleep(0.2)
    assert device.check().complaint == ""
    before = device._line.emergency
    bench.inject("reboot")
    time.sleep(0.2)
    np.testing.assert_allclose(bench.drive(device, BENT, 2.0), BENT, atol=2e-4)
    assert device._line.emergency != before
    assert device.make_safe()
    time.sleep(SLACKENED_WITHIN)
    np.testing.assert_allclose(bench.pulls, ROBOT.safe, atol=2e-4)


def test_a_robot_that_is_held_keeps_its_shape(bench):
    device = bench.device(safe_action="hold")
    device.open()
    bench.drive(device, BENT, 1.6)
    assert device.make_safe()
    time.sleep(0.5)
    np.testing.assert_allclose(bench.pulls, BENT, atol=2e-4)
    assert device.check().complaint == ""


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("cut_bus=3", "ids 1-2 answer, 3-4 do not.*cable between 2 and 3"),
        ("cut_bus=1", "No motor answers"),
        ("missing_motor=2", "ids 1, 3-4 answer, 2 does not.*of motor 2"),
        ("doubled_motor=3", "id 3 arrive damaged.*Two motors may have the id 3"),
        ("hot_motor=4", "Motor 4 .t4. has shut down: overheated"),
    ],
)
def test_a_broken_bus_is_not_opened_and_is_said_where_to_look(bench, fault, complaint):
    bench.inject(fault)
    time.sleep(0.1)
    device = bench.device()
    with pytest.raises(SoftformError, match=complaint):
        device.open()
    bench.schedule.clear()
    time.sleep(0.1)
    if not fault.startswith("hot"):
        device.open()
        assert device.check().complaint == ""


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("cut_bus=3", "cable between 2 and 3"),
        ("missing_motor=2", "of motor 2"),
        ("hot_motor=1", "overheated"),
        ("blocked_motor=1", "t1 .motor 1. stands at"),
        ("torn_tendon=1", "carries nothing"),
    ],
)
def test_what_goes_wrong_while_it_is_driven_is_unsafe(bench, fault, complaint):
    device = bench.device(taut_from=0.005, taut_current=0.018)
    device.open()
    bench.drive(device, BENT, 1.5)
    bench.inject(fault)
    to = ROBOT.actuators_of(np.array([0.0095, 0.0, 0.0]))
    with pytest.raises(UnsafeError, match=complaint):
        bench.drive(device, to, 4.0, BENT)
    device.make_safe()
    time.sleep(SLACKENED_WITHIN + 0.1)
    if fault.startswith(("blocked", "hot")):
        assert "t1 (id 1) may not be slack" in device.check().complaint


def test_a_pulled_cable_is_a_lost_device_and_the_motors_stop(bench):
    device = bench.device()
    device.open()
    device.begin()
    device.set_targets(BENT, lambda: False)
    bench.inject("disconnect+1.5")
    with pytest.raises(DeviceLostError):
        for _ in range(200):
            device.read(0.01)
            time.sleep(0.01)
    device.close()
    time.sleep(WATCHDOG_SECONDS + 0.2)
    stood = bench.pulls
    time.sleep(0.3)
    np.testing.assert_allclose(bench.pulls, stood, atol=1e-5)
    time.sleep(1.0)
    again = bench.device()
    again.open()
    time.sleep(SLACKENED_WITHIN)
    np.testing.assert_allclose(bench.pulls, ROBOT.safe, atol=2e-4)


def test_calibration_finds_where_the_tendons_are_taut_and_remembers_it_after_a_loss_of_power(bench):
    for motor in bench.bus.motors.values():
        motor.home += 60.0  # 0.74 mm
    device = bench.device()
    device.open()
    before = device._line.emergency
    told = device.calibrate(lambda: False)
    assert "taut at" in told and device._line.emergency != before
    device.close()
    bench.inject("reboot")
    time.sleep(0.2)
    again = bench.device()
    again.open()
    bench.drive(again, BENT, 2.0)
    np.testing.assert_allclose(bench.pulls[:3], BENT[:3], atol=3e-4)
    np.testing.assert_allclose(bench.pulls[3], BENT[3], atol=6e-4)  # the helix twists the rod long before it is taut


def test_a_torn_tendon_is_found_by_calibration(bench):
    bench.inject("torn_tendon=2")
    device = bench.device()
    device.open()
    with pytest.raises(DeviceError, match="tendons t2 never became taut"):
        device.calibrate(lambda: False)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"slacken_speed": 0.01}, "slackening takes 1.60 s"),
        ({"drum_radius": 0.002}, "more than one turn"),
        ({"drum_radius": [0.008, 0.008]}, "drum_radius has 2 values"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_settings_that_do_not_fit_are_rejected(bench, settings, complaint):
    with pytest.raises(SoftformError, match=complaint):
        bench.device(**settings)
