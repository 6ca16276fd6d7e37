"""A device in memory whose faults are switches, a clock that is set by hand, and the driver's loop in one thread."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from softform_actuation.assembly import served_by_devices
from softform_actuation.clock import Clock
from softform_actuation.device import (
    DeviceError,
    DeviceHealth,
    DeviceLostError,
    Measurement,
    Rest,
    SafeAction,
    ServedActuators,
    never,
)
from softform_actuation.latch import Latch
from softform_actuation.lease import Asked, Grant, LeaseError
from softform_actuation.states import DriverReport, DriverSettings, Readings, State
from softform_actuation.statistics import LoopStatistics
from softform_actuation.supervisor import Supervisor
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_core.robots.devices import Device

PERIOD = 0.02
COMPLAINT_SECONDS = 5.0
"""After which a device complains of an actuator that is not at rest."""


class SetClock(Clock):
    """A clock that is set by hand; who waits by it moves it on.

    Attributes:
        at: s.
        slept: How long the computer has slept, s.
    """

    def __init__(self, at: float = 1000.0) -> None:
        self.at, self.slept = at, 0.0

    def now(self) -> float:
        return self.at

    def since_boot(self) -> float:
        return self.at + self.slept

    def sleep(self, seconds: float) -> None:
        self.at += seconds


class SteppedDevice:
    """k actuators that are where they were sent at once, and safe `falls_for` seconds after `make_safe`.

    Attributes:
        calls: Methods that were called, in order, but `read` and `set_targets`.
        targets: Every target it was sent.
        values: (k,) where its actuators were when it was last sent something, or made safe.
        is_open: Whether its port is.
        drives: Whether it regulates.
        falls_for: s.
        stuck: (k,) actuators that never come to rest.
        unmeasured: (k,) actuators that are not measured at rest.
        leaves: (k,) how far its actuators stay away from their targets.
        unconfirmed: It confirms nothing.
        lost: Its cable is pulled.
        silent: It does not answer, and sends no measurements.
        fails: Methods that raise `DeviceError`.
        on_call: Called with each of `calls`.
        strays: What it measures unasked.
    """

    safe_action = SafeAction.VENT

    def __init__(self, clock: SetClock, served: ServedActuators, identity: str = "board") -> None:
        self.clock, self.served, self.identity = clock, served, identity
        count = len(served.actuators)
        self.calls: list[str] = []
        self.targets: list[Array] = []
        self.is_open = self.drives = False
        self.falls_for = 0.3
        self.stuck, self.unmeasured = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        self.leaves = np.zeros(count)
        self.unconfirmed = self.lost = self.silent = False
        self.fails: set[str] = set()
        self.on_call: Callable[[str], None] = lambda name: None
        self.strays: list[Measurement] = []
        self.values, self._safe_at = served.safe.copy(), clock.at
        self._measured_at = 0.0

    @property
    def is_holding(self) -> bool:
        return self.safe_action is SafeAction.HOLD

    def _note(self, name: str) -> None:
        self.calls.append(name)
        self.on_call(name)
        if self.lost:
            raise DeviceLostError(f"{self.identity} is lost.", "Plug it in, then reset.")
        if name in self.fails:
            raise DeviceError(f"{self.identity} fails in {name}.", "Mend it, then reset.")

    def _require(self, interrupted: Callable[[], bool]) -> None:
        if interrupted():
            raise DeviceError(f"{self.identity} was interrupted.", "Ask again.")

    def _where(self) -> Array:
        is_still_there = self.stuck | (self.clock.at < self._safe_at + self.falls_for)
        return np.where(is_still_there | self.drives, self.values, self.served.safe)

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        self._note("open")
        self._require(interrupted)
        self.values, self.drives, self._safe_at, self.is_open = self._where(), False, self.clock.at, True

    def test(self, interrupted: Callable[[], bool]) -> None:
        self._note("test")
        self._require(interrupted)

    def begin(self) -> Array:
        self._note("begin")
        self.drives, self.values = True, self.served.safe.copy()
        return self.values.copy()

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        if self.lost:
            raise DeviceLostError(f"{self.identity} is lost.", "Plug it in, then reset.")
        if interrupted():
            return False
        self.targets.append(targets.copy())
        self.values = targets + self.leaves
        return True

    def read(self, timeout: float) -> list[Measurement]:
        if self.lost:
            raise DeviceLostError(f"{self.identity} is lost.", "Plug it in, then reset.")
        self.clock.at += max(timeout, 1e-6)
        if self.drives and not self.silent and self.clock.at - self._measured_at > PERIOD / 2:
            self._measured_at = self.clock.at
            return [Measurement(self._where(), self.clock.at)]
        strays, self.strays = self.strays, []
        return strays

    def make_safe(self) -> bool:
        self._note("make_safe")
        if self.unconfirmed or self.silent:
            return False
        self.values, self.drives, self._safe_at = self._where(), False, self.clock.at
        return True

    def check(self) -> Rest:
        self._note("check")
        if self.silent:
            raise DeviceError(f"{self.identity} does not answer.", "Check it, then reset.")
        values = np.where(self.unmeasured, np.nan, self._where())
        at_rest = np.abs(values - self.served.safe) <= self.served.tolerances.vent_threshold
        late = self.clock.at - self._safe_at > COMPLAINT_SECONDS and not at_rest.all()
        names = ", ".join(np.array(self.served.actuators)[~at_rest])
        return Rest(values, at_rest, f"{names} of {self.identity} does not come to rest. Cut its supply." * late)

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        self._note("calibrate")
        self._require(interrupted)
        return f"{self.identity} is calibrated." * bool(self.served.actuators)

    def close(self) -> None:
        self.calls.append("close")
        self.is_open = False

    def health(self) -> DeviceHealth:
        return DeviceHealth()


class HoldingDevice(SteppedDevice):
    """Motors that hold the robot under power when they are made safe."""

    safe_action = SafeAction.HOLD


def two_devices(*, dead_man: bool = False) -> Robot:
    """The three chambers on two boards in an order of their own, or on one beside a device that serves none."""
    robot = load_robot("three_chamber")
    if dead_man:
        none = Device(name="dead_man", kind="dead_man", actuators=[], channels=[])
        return robot.model_copy(update={"devices": [none, *robot.devices]})
    left = Device(name="left", actuators=["c3", "c1"], channels=[0, 2])
    right = Device(name="right", actuators=["c2"], channels=[4])
    return robot.model_copy(update={"devices": [left, right]})


class Rig:
    """A supervisor, and what calls it: the loop, and one commander.

    Attributes:
        goal: What the commander, `planner`, commands in each period; None while it is silent.
        rejections: What it was told.
    """

    def __init__(
        self,
        robot: Robot | None = None,
        kinds: Sequence[type[SteppedDevice]] = (SteppedDevice,),
        settings: DriverSettings | None = None,
        latch_file: Path | None = None,
    ) -> None:
        self.robot = robot or load_robot("three_chamber")
        self.clock = SetClock()
        parts = served_by_devices(self.robot)
        self.devices = [kind(self.clock, part, part.device) for kind, part in zip(kinds, parts, strict=True)]
        self.statistics, self.latch_file = LoopStatistics(), latch_file
        self.latch = Latch(*([latch_file] if latch_file else []))
        self.reports: list[DriverReport] = []
        self.readings: list[Readings] = []
        self.goal: Array | None = None
        self.rejections: list[str] = []
        self.grant = Grant(0, 0)
        self.supervisor = Supervisor(
            list(zip(self.devices, parts, strict=True)),
            self.robot,
            settings or DriverSettings(settle_time=0.1),
            self.statistics,
            self.reports.append,
            self.readings.append,
            self.latch,
            ("no dead-man",),
        )

    @property
    def device(self) -> SteppedDevice:
        return self.devices[0]

    @property
    def state(self) -> State:
        return self.supervisor.state

    @property
    def reason(self) -> str:
        return self.supervisor.reason

    def now(self) -> Asked:
        """What somebody asks for who has just looked at the driver."""
        return Asked(0.0, self.supervisor.commands.epoch)

    def run(self, seconds: float) -> None:
        """Go on for so long as the driver's thread does."""
        end = self.clock.at + seconds - PERIOD / 2
        while self.clock.at < end:
            self.command()
            try:
                self.supervisor.tick(self.clock.at, never)
                self.supervisor.watch_until(self.clock.at + PERIOD, never)
            except SoftformError as error:
                self.supervisor.fault(str(error))
            if all(device.lost for device in self.devices):
                self.clock.at += PERIOD

    def command(self) -> None:
        if self.goal is not None:
            try:
                self.supervisor.commands.put("planner", self.grant, self.goal)
            except LeaseError as error:
                self.rejections.append(str(error))

    def connected(self) -> "Rig":
        self.supervisor.open(never)
        self.supervisor.begin(never)
        return self

    def active(self) -> "Rig":
        """Connected, active, and driving at rest unless only a lease makes it."""
        self.connected()
        self.supervisor.activate(never)
        self.run(1.0)
        return self

    def acquire(self) -> Grant:
        self.grant = self.supervisor.acquire("planner", 5, self.now(), self.robot.command_fingerprint())
        return self.grant

    def running(self, *goal: float) -> "Rig":
        """Active, with a commander that holds the actuators at 10 kPa, or at `goal`."""
        self.active()
        self.acquire()
        self.goal = np.array(goal or [10_000.0] * len(self.robot.actuators))
        self.run(1.0)
        assert self.state is State.RUNNING, self.reason
        return self

    def stop(self) -> None:
        """As an operator does."""
        with contextlib.suppress(SoftformError):
            self.supervisor.stop()

    def at_rest(self) -> list[bool]:
        return [one.at_rest for one in self.supervisor.report.actuators]
