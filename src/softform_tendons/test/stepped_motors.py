"""An emulated bus of tendon motors without a terminal, by a stepped clock; its wire loses what a test says."""

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path

from softform_actuation.assembly import served_by_devices
from softform_actuation.clock import Clock
from softform_core.robots import Robot, load_robot
from softform_rig.motor_bus import MotorBus
from softform_rig.motor_emulation import MotorErrors, make_motors
from softform_tendons.tendon_bus import TendonBus

ROBOT = load_robot("tendon_rod")
MOTORS = ROBOT.devices[0].channels
_HEADER = b"\xff\xff\xfd\x00"


class SteppedClock:
    """Time passes only while somebody waits, and for the motors, too."""

    def __init__(self) -> None:
        self.at = 1.0
        self.passes: Callable[[float], None] = lambda now: None

    def now(self) -> float:
        return self.at

    def since_boot(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        end = self.at + max(seconds, 0.0)
        while self.at < end:
            self.at = min(self.at + 0.1, end)
            self.passes(self.at)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.sleep(seconds)
        return event.is_set()


class Wire:
    """The line between the driver and the bus; no other process guards it."""

    path = "/dev/stepped"

    def __init__(self, clock: SteppedClock, bus: MotorBus) -> None:
        self.clock: Clock = clock
        self._clock, self._bus = clock, bus
        clock.passes = bus.advance
        self.lost_answers = 0
        self.emergency = self.later = b""
        self.seconds = 0.0
        self.writes = self.answers = 0
        self.spoil_write: Callable[[int, bytes], bytes] = lambda n, data: data
        self.spoil_answer: Callable[[int, bytes], bytes] = lambda n, packet: packet
        self.after_write: Callable[[], None] = lambda: None

    def open(self, baud_rate: int) -> None:
        self._bus.advance(self._clock.now())

    def guard(self, emergency: bytes, later: bytes = b"", seconds: float = 0.0) -> None:
        """Nobody: what a guardian would write is written at the end."""
        self.emergency, self.later, self.seconds = emergency, later, seconds

    def receive(self, timeout: float) -> bytes:
        if not (data := self._bus.take_output()):
            self._clock.sleep(timeout)
            data = self._bus.take_output()
        if data and self.lost_answers:
            self.lost_answers -= 1
            return b""
        return b"".join(map(self._spoilt, data.split(_HEADER)[1:]))

    def _spoilt(self, rest: bytes) -> bytes:
        self.answers += 1
        return self.spoil_answer(self.answers, _HEADER + rest)

    def write(self, data: bytes) -> None:
        self.writes += 1
        self._bus.receive(self.spoil_write(self.writes, data), self._clock.now())
        self.after_write()

    def close(self, emergency: bool) -> None:
        if emergency:
            self._bus.receive(self.emergency, self._clock.now())


class Motors:
    """Motors on a bus of a robot, and a device that drives them; the settings are changes of the robot's."""

    def __init__(self, folder: Path, robot: Robot = ROBOT, **settings: object) -> None:
        self.clock, self.robot = SteppedClock(), robot
        self.bus = make_motors(robot, robot.devices[0], MotorErrors())
        self.wire = Wire(self.clock, self.bus)
        (described,) = served_by_devices(robot)
        self.served = dataclasses.replace(described, settings={**described.settings, **settings})
        self.device = TendonBus(self.served, self.wire, 1_000_000, folder / "homes.json")  # type: ignore[arg-type]

    def drive(self, goal: object, seconds: float) -> None:
        """Lead a driven device there at the slew rate, and read it in every period."""
        at = self.bus.actuator_values(self.robot.devices[0].channels)
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            step = self.robot.slew_rate * 0.02
            at = at + (goal - at).clip(-step, step)  # type: ignore[operator]
            self.device.set_targets(at, lambda: False)
            self.device.read(0.02)
