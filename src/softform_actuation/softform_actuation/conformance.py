"""The conformance test of device families: what any device must do under the driver, in real time on its port.

A family tells a `Bench` how to look at the true actuators, and how to pull the cable; then it runs every check::

    @pytest.mark.parametrize("check", conformance.CHECKS)
    def test_conformance(check: conformance.Check, bench: conformance.Bench) -> None:
        check(bench)

A check raises `AssertionError`, which says what the device did not do. All share one driver, where they need none of
their own: opening and testing a device takes seconds. Who made the bench closes it.

The latch has to be kept apart from the machine's: a test sets `state_files.OVERRIDE` to a folder of its own.
"""

import contextlib
import functools
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softform_actuation.assembly import make_devices, make_driver, parameters_of, served_by_devices
from softform_actuation.commands import CommandRejectedError
from softform_actuation.device import Device, DeviceLostError
from softform_actuation.driver import Driver
from softform_actuation.latch import LEFT_ACTIVE
from softform_actuation.lease import Asked, LeaseError
from softform_actuation.parameters import PARAMETERS
from softform_actuation.states import Readings, State, Status
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot

SOURCE = "conformance"
CONFIRM_SECONDS = 0.5
"""Within which `make_safe` returns."""

_COMMAND_SECONDS = 0.05
_PATIENCE_SECONDS = 20.0
_BEGIN_SECONDS = 5.0  # after a stop or a stale command, until the driver drives again
_REST_SECONDS = 1.5  # over which what was made safe must stay so
_BLOCKED_SECONDS = 10.0  # until what does not move is found out: stale commands, a rest, and `follow_timeout`
_LATE_SECONDS = 0.3  # measurements may be under way so long; see `Device.read`
_INTERRUPTED_SECONDS = 3.0  # a port that is busy or boots may take some of it
_GUARDIAN_SECONDS = 1.0  # from the death of the driver to the guardian's request, on a busy machine
_PERIOD_SECONDS = 0.02


@dataclass
class Bench:
    """A robot on a port, emulated or real, and a look at it that does not pass through the driver.

    Attributes:
        robot: Name or path of its description.
        values: Parameters of driver and devices that differ from the defaults, such as the port.
        goal: (k,) command that moves every actuator, each to another value.
        tolerance: How near to a command, and to what was measured, the true values come: one for all or (k,), in their
            units.
        true_values: Returns the true values of the actuators, (k,).
        is_safe: Whether they are safe as `Device.safe_action` says.
        safe_seconds: Within which they are, from the request on the wire.
        pull_cable: Take the connection away, and return once it is gone; the device keeps its power.
        plug_in: Give it back, under the same name.
        block: Keep the last actuator from becoming safe, whatever is asked of it: where it is, or on the move if
            safe is to hold. A check of the first one alone is none.
        free: Let them move again.
    """

    robot: str
    values: Mapping[str, Any]
    goal: Array
    tolerance: Array | float
    true_values: Callable[[], Array]
    is_safe: Callable[[], bool]
    safe_seconds: float
    pull_cable: Callable[[], None]
    plug_in: Callable[[], None]
    block: Callable[[], None]
    free: Callable[[], None]
    readings: list[Readings] = field(default_factory=list)
    _driver: Driver | None = None

    @property
    def description(self) -> Robot:
        """The robot's description."""
        return load_robot(self.robot)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters of driver and devices."""
        rows = (*PARAMETERS, *parameters_of(self.description))
        return {row.name: row.default for row in rows} | dict(self.values)

    def new_driver(self) -> Driver:
        """Close the driver and return the next one, not connected, whose measurements are kept in `readings`."""
        self.close()
        self._driver = make_driver(self.parameters, self.description, lambda report: None, self.readings.append)
        return self._driver

    def active_driver(self) -> Driver:
        """Return the driver, active and at rest; one that is at fault is reset."""
        driver = self._driver or self.new_driver()
        if driver.state is State.OFFLINE:
            driver.connect()
        driver.activate()
        driver.reset(now(driver))
        _wait(self.is_safe, "the bench to be safe before a check")
        return driver

    def close(self) -> None:
        """Close the driver."""
        if self._driver is not None:
            self._driver.close()
        self._driver = None
        self.readings.clear()

    def device(self) -> Device:
        """Return the first device by itself, not opened."""
        return make_devices(self.parameters, self.description)[0][0]

    def is_near(self, goal: Array) -> bool:
        """Whether the true values are near `goal`, (k,)."""
        return bool((np.abs(self.true_values() - goal) <= self.tolerance).all())


Check = Callable[[Bench], None]


def now(driver: Driver) -> Asked:
    """What somebody asks for who has just looked at the driver."""
    return Asked(0.0, driver.epoch)


class _Commander:
    """Holds a lease; commands while something is waited for."""

    def __init__(self, bench: Bench, driver: Driver) -> None:
        self._bench, self._driver, self._robot = bench, driver, bench.description
        bench.readings.clear()
        self.lease = driver.acquire(SOURCE, 0, now(driver), driver.fingerprint)  # what holds is not driven without one
        _wait(lambda: bool(bench.readings), "measurements once the driver is active", _BEGIN_SECONDS)

    def send(self, goal: Array) -> None:
        robot = self._robot
        wanted = robot.actuators, robot.actuator_units, goal.tolist()
        self._driver.command(SOURCE, self.lease, self._driver.fingerprint, *wanted)

    def drive(self, goal: Array, condition: Callable[[], bool], what: str) -> None:
        """Command the goal, (k,), until the condition holds."""
        last = -np.inf

        def send_and_look() -> bool:
            nonlocal last
            _require(self._driver.state is not State.FAULT, f"{what}, but: {self._driver.reason}")
            if time.monotonic() - last >= _COMMAND_SECONDS:
                last = time.monotonic()
                self.send(goal)
            return condition()

        _wait(send_and_look, what)

    def reach_goal(self) -> None:
        goal = self._bench.goal
        self.drive(goal, lambda: self._bench.is_near(goal), f"the true values to come near {goal.tolist()}")


def check_that_opening_moves_nothing(bench: Bench) -> None:
    """Connecting makes safe, moves nothing, and takes no commands."""
    _require(bench.is_safe(), "the bench must begin safe")
    before = bench.true_values()
    driver = bench.new_driver()
    driver.connect()
    _stays(lambda: bench.is_near(before) and bench.is_safe(), "the actuators moved when the device was opened")
    _wait(lambda: driver.state is not State.MAKING_SAFE, "the driver to measure the actuators")
    resting = (State.SAFE, State.HOLDING)
    _require(driver.state in resting, f"connected, the driver is {driver.state.name}: {driver.reason}")


def check_targets(bench: Bench) -> None:
    """Every actuator goes to its own target, is measured there, and settles; then to another one."""
    _require(len(set(bench.goal.tolist())) == len(bench.goal), "each actuator needs a goal of its own")
    with _active(bench) as (driver, commander):
        commander.reach_goal()
        for goal in (bench.goal, 0.5 * (bench.goal + bench.description.safe)):
            commander.drive(goal, functools.partial(_has_settled, bench, goal), "all actuators to settle")
            deviation = np.abs(bench.readings[-1].values - bench.true_values())
            _require(
                bool((deviation <= bench.tolerance).all()),
                f"{driver.health()['devices']} measures {bench.readings[-1].values}, true is {bench.true_values()}",
            )


def check_slew(bench: Bench) -> None:
    """No actuator moves faster than the robot's slew rate allows, from the first command on."""
    robot = bench.description
    with _active(bench) as (_, commander):
        start, began = bench.true_values(), time.monotonic()
        direction = np.sign(bench.goal - start)

        def moves_in_time() -> bool:
            allowed = robot.slew_rate * (time.monotonic() - began) + bench.tolerance
            moved = direction * (bench.true_values() - start)
            _require(bool((moved <= allowed).all()), f"moved by {moved} where {allowed} were allowed")
            return bench.is_near(bench.goal)

        commander.drive(bench.goal, moves_in_time, "the goal, at the slew rate")


def check_stale_commands(bench: Bench) -> None:
    """A commander that falls silent ends in safety; its lease is dead, and nothing moves again."""
    with _active(bench) as (driver, commander):
        commander.reach_goal()
        _wait(bench.is_safe, "safety after stale commands", bench.parameters["command_timeout"] + bench.safe_seconds)
        _wait(lambda: driver.state in (State.SAFE, State.HOLDING), "the driver to be SAFE", _BEGIN_SECONDS)
        with contextlib.suppress(CommandRejectedError):
            commander.send(bench.goal)
            _require(False, "a command under a dead lease was taken")
        _stays(bench.is_safe, "the actuators moved again by themselves")
        _Commander(bench, driver).reach_goal()


def check_blocked_actuators(bench: Bench) -> None:
    """What does not come to rest is never reported safe, whichever way out is taken; freed, a reset drives it on."""
    for way_out in (None, Driver.stop, Driver.deactivate):
        with _active(bench) as (driver, commander):
            commander.reach_goal()
            bench.block()
            try:
                if way_out is None:
                    _wait(
                        lambda: driver.state is State.FAULT,  # noqa: B023
                        "a fault of actuators that stay where they are",
                        _BLOCKED_SECONDS,
                    )
                else:
                    with contextlib.suppress(SoftformError):
                        way_out(driver)
                        _require(False, f"{way_out.__name__} did not say that the actuators stay where they are")
                    _require(driver.state is State.FAULT, f"after {way_out.__name__} it is {driver.state.name}")
                _require(not driver.health()["confirmed safe"], "it counts as safe though actuators are not at rest")
                at_rest = [one.at_rest for one in driver.report.actuators]
                _require(not all(at_rest), f"every actuator counts as at rest: {driver.report.actuators}")
                if way_out is Driver.stop:
                    with contextlib.suppress(SoftformError):
                        driver.reset(now(driver))
                        _require(False, "a reset cleared the fault though an actuator stays where it is")
            finally:
                bench.free()
            _wait(bench.is_safe, "safety once the actuators are free")
            driver.activate()
            driver.reset(now(driver))
            _Commander(bench, driver).reach_goal()


def check_closing_while_blocked(bench: Bench) -> None:
    """A driver that is closed while an actuator does not come to rest leaves the next one latched."""
    with _active(bench) as (_, commander):
        commander.reach_goal()
        bench.block()
        try:
            driver = bench.new_driver()
        finally:
            bench.free()
    _wait(bench.is_safe, "safety once the actuators are free")
    driver.connect()
    _require(driver.state is State.FAULT, f"the next driver is {driver.state.name}: {driver.reason}")
    _wait(lambda: bool(driver.health()["confirmed safe"]), "the next driver to measure all at rest")
    driver.reset(now(driver))


def check_queued_requests(bench: Bench) -> None:
    """A lease or a reset that was asked for before a stop, or too long ago, is rejected, and nothing moves."""
    with _active(bench) as (driver, commander):
        asked = now(driver)
        commander.drive(bench.goal, lambda: not bench.is_safe(), "the actuators to move")
        driver.stop()
        for late in (asked, Asked(3.0, driver.epoch), Asked(math.nan, driver.epoch), Asked(0.0, 0)):
            with contextlib.suppress(LeaseError):
                driver.reset(late)
                _require(False, f"a reset that was asked for as {late} was carried out")
        driver.reset(now(driver))
        for late in (asked, Asked(3.0, driver.epoch), Asked(math.nan, driver.epoch), Asked(0.0, 0)):
            with contextlib.suppress(LeaseError):
                driver.acquire(SOURCE, 0, late, driver.fingerprint)
                _require(False, f"a lease that was asked for as {late} was given")
        _wait(bench.is_safe, "safety after a stop and a reset", bench.safe_seconds)
        _stays(bench.is_safe, "the actuators moved for what was asked for before")


def check_stop_and_reset(bench: Bench) -> None:
    """`stop` makes safe in motion and holds until `reset`; then a new lease drives on."""
    with _active(bench) as (driver, commander):
        commander.drive(bench.goal, lambda: not bench.is_safe(), "the actuators to move")
        driver.stop()
        _wait(bench.is_safe, "safety after a stop", bench.safe_seconds)
        _require(driver.state is State.FAULT, f"stopped, the driver is {driver.state.name}")
        _require(bool(driver.health()["confirmed safe"]), "the device has not confirmed that it is safe")
        _stays(bench.is_safe, "the actuators moved again after a stop")
        driver.reset(now(driver))
        _stays(bench.is_safe, "the actuators moved after a reset without a command")
        _Commander(bench, driver).reach_goal()


def check_pulled_cable(bench: Bench) -> None:
    """A device that is gone is a fault; it is made safe as soon as it is back, and drives on after a reset."""
    with _active(bench) as (driver, commander):
        commander.reach_goal()
        bench.pull_cable()
        try:
            _wait(lambda: driver.state is State.FAULT, "a fault after the cable was pulled", _BEGIN_SECONDS)
            _require(not driver.health()["confirmed safe"], "nothing can have confirmed while the cable is pulled")
        finally:
            bench.plug_in()
        _wait(lambda: bool(driver.health()["confirmed safe"]), "the device to be found again and made safe")
        _wait(bench.is_safe, "safety once it is found again", bench.safe_seconds)
        _require(driver.state is State.FAULT, "the fault was left without a reset")
        driver.reset(now(driver))
        _Commander(bench, driver).reach_goal()


def check_restart(bench: Bench) -> None:
    """A driver that is closed in motion leaves all safe and nothing latched; one that was stopped stays latched."""
    _Commander(bench, bench.active_driver()).reach_goal()
    driver = bench.new_driver()
    _wait(bench.is_safe, "safety after the driver was closed", bench.safe_seconds)
    driver.connect()
    _require(driver.state is not State.FAULT, f"after a driver that ended in order: {driver.reason}")
    driver.stop()
    driver = bench.new_driver()
    driver.connect()
    driver.activate()
    _require(driver.state is State.FAULT, "a stop was forgotten over a restart")
    _stays(bench.is_safe, "the actuators moved though the driver is latched")
    driver.reset(now(driver))
    with _active(bench) as (_, commander):
        commander.reach_goal()


def check_kill(bench: Bench) -> None:
    """SIGKILL in motion: the guardian makes safe, and the next driver is latched."""
    bench.close()
    # What was moved before may be near the goal still: the wait below must not end before the process commands it.
    _wait(bench.is_safe, "safety before a driver in another process starts", bench.safe_seconds)
    words = [bench.robot, json.dumps(bench.parameters), json.dumps(bench.goal.tolist())]
    process = subprocess.Popen([sys.executable, "-m", __name__, *words])
    try:
        driven = functools.partial(_drives_at_goal, bench)  # what holds may be at the goal undriven
        _wait(driven, "a driver in another process to reach the goal", 4 * _PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    _wait(bench.is_safe, "safety after the driver was killed", _GUARDIAN_SECONDS + bench.safe_seconds)
    driver = bench.new_driver()
    driver.connect()
    latched = driver.state is State.FAULT and LEFT_ACTIVE in driver.reason
    _require(latched, f"after a driver that was killed the next is {driver.state.name}: {driver.reason}")
    _stays(bench.is_safe, "the actuators moved again after the driver was killed")
    driver.reset(now(driver))


def check_that_making_safe_is_confirmed(bench: Bench) -> None:
    """`make_safe` returns in time, with the device's own confirmation; without a connection it confirms nothing."""
    bench.close()
    device = bench.device()
    device.open()
    try:
        held = device.begin()
        _drive_alone(bench, device, held)
        _require(_makes_safe(device), f"{device.identity} did not confirm that it is safe")
        done = device.clock.now()
        _wait(bench.is_safe, "safety after make_safe", bench.safe_seconds)
        while device.clock.now() < done + _REST_SECONDS:
            stray = [m for m in device.read(_PERIOD_SECONDS) if m.captured > done + _LATE_SECONDS]
            _require(not stray, "the device goes on measuring though it is safe")
        rest = device.check()
        _require(rest.complaint == "", f"check() says: {rest.complaint}")
        at_rest = rest.at_rest.all() or device.is_holding
        _require(bool(at_rest), f"check() measures {rest.values}, and {rest.at_rest} of them at rest")
        device.begin()
        _drive_alone(bench, device, held)
        bench.pull_cable()
        with contextlib.suppress(DeviceLostError):
            _require(not _makes_safe(device), "make_safe() confirmed without a connection")
        device.close()
        device.close()
    finally:
        device.close()
        bench.plug_in()
    driver = bench.new_driver()  # whoever opens it next makes it safe
    _wait(lambda: _connects(driver), "the device to be opened again")
    _wait(bench.is_safe, "safety after the device was opened", bench.safe_seconds)


def check_interruption(bench: Bench) -> None:
    """`open` and `test` give up soon once they are interrupted, and leave all safe."""
    bench.close()
    device = bench.device()
    try:
        began = time.monotonic()
        with contextlib.suppress(SoftformError):
            device.open(lambda: True)
        _require(time.monotonic() - began < _INTERRUPTED_SECONDS, "an interrupted open() went on")
        device.close()
        device.open()
        began = time.monotonic()
        with contextlib.suppress(SoftformError):
            device.test(lambda: True)
        _require(time.monotonic() - began < _INTERRUPTED_SECONDS, "an interrupted test() went on")
        _wait(bench.is_safe, "safety after an interrupted test", bench.safe_seconds)
    finally:
        device.close()


CHECKS: tuple[Check, ...] = (
    check_that_opening_moves_nothing,
    check_targets,
    check_slew,
    check_stale_commands,
    check_blocked_actuators,
    check_closing_while_blocked,
    check_queued_requests,
    check_stop_and_reset,
    check_pulled_cable,
    check_restart,
    check_kill,
    check_that_making_safe_is_confirmed,
    check_interruption,
)


@contextlib.contextmanager
def _active(bench: Bench) -> Iterator[tuple[Driver, _Commander]]:
    driver = bench.active_driver()
    commander = _Commander(bench, driver)
    yield driver, commander
    with contextlib.suppress(SoftformError):  # it has ended, with what was checked
        driver.release(SOURCE, commander.lease)


def _has_settled(bench: Bench, goal: Array) -> bool:
    return bench.is_near(goal) and bool((bench.readings[-1].status == Status.SETTLED).all())


def _drives_at_goal(bench: Bench) -> bool:
    return bench.is_near(bench.goal) and not bench.is_safe()


def _drive_alone(bench: Bench, device: Device, held: Array) -> None:
    """Lead a device by itself from `held` towards the goal, both (k,), until it is no longer safe."""
    robot = bench.description
    indices = [robot.actuators.index(name) for name in served_by_devices(robot)[0].actuators]
    _require(held.shape == (len(indices),), f"begin() returned {held.shape}, not ({len(indices)},)")
    began = time.monotonic()

    def step() -> bool:
        reach = robot.slew_rate[indices] * (time.monotonic() - began)
        device.set_targets(held + np.clip(bench.goal[indices] - held, -reach, reach), lambda: False)
        device.read(_PERIOD_SECONDS)
        return not bench.is_safe()

    _wait(step, "the device alone to move")


def _makes_safe(device: Device) -> bool:
    began = time.monotonic()
    try:
        return device.make_safe()
    finally:
        _require(time.monotonic() - began < CONFIRM_SECONDS, "make_safe() took too long")


def _connects(driver: Driver) -> bool:
    try:
        driver.connect()
    except SoftformError:
        return False
    return True


def _stays(condition: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + _REST_SECONDS
    while time.monotonic() < end:
        _require(condition(), otherwise)
        time.sleep(_PERIOD_SECONDS)


def _wait(condition: Callable[[], bool], what: str, seconds: float = _PATIENCE_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        _require(time.monotonic() < end, f"waited {seconds:g} s in vain for {what}")
        time.sleep(_PERIOD_SECONDS)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise AssertionError(otherwise)


def main() -> None:
    """Command a goal until `check_kill` kills this process: ROBOT PARAMETERS GOAL, the last two as JSON."""
    robot, (values, goal) = load_robot(sys.argv[1]), map(json.loads, sys.argv[2:])
    with make_driver(values, robot, lambda report: None, lambda readings: None) as driver:
        driver.connect()
        driver.activate()
        lease = driver.acquire(SOURCE, 0, now(driver), driver.fingerprint)
        while True:
            driver.command(SOURCE, lease, driver.fingerprint, robot.actuators, robot.actuator_units, goal)
            time.sleep(_COMMAND_SECONDS)


if __name__ == "__main__":
    main()
