"""Emulated arms without a terminal, by a stepped clock; their wire loses what a test says."""

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from softform_actuation.assembly import served_by_devices
from softform_actuation.clock import Clock
from softform_arms.arms import Arms
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_rig.arm_emulation import ArmEmulation, ArmErrors
from softform_rig.rig_settings import RigSettings

PATH = config_dir() / "arms" / "two_arms.yaml"
ROBOT = load_robot(PATH)
START = np.array(ROBOT.devices[0].settings["start"])
GOAL = START + np.linspace(0.05, 0.16, 12) * np.where(np.arange(12) % 2, 1.0, -1.0)
SETTINGS = RigSettings(Path("port"), Path("scans"), [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
PERIOD = 0.02


class SteppedClock:
    """Time passes only while somebody waits, and for the arms, too."""

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
            self.at = min(self.at + 0.01, end)
            self.passes(self.at)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.sleep(seconds)
        return event.is_set()


class Wire:
    """The line between driver and controller; what a guardian would write is kept."""

    path = "/dev/stepped"

    def __init__(self, controller) -> None:
        self._controller, self._clock = controller, SteppedClock()
        self.clock: Clock = self._clock
        self._clock.passes = controller.advance
        self.is_open, self.emergency = False, b""
        self.spoil_answer: Callable[[bytes], bytes] = lambda data: data
        self.spoil_request: Callable[[bytes], bytes] = lambda data: data

    def open(self, baud_rate: int) -> None:
        self.is_open = True

    def guard(self, emergency: bytes, later: bytes = b"", seconds: float = 0.0) -> None:
        self.emergency = emergency

    def receive(self, timeout: float) -> bytes:
        if not (data := self._controller.take_output()):
            self._clock.sleep(min(timeout, 0.02))
            data = self._controller.take_output()
        return self.spoil_answer(data)

    def write(self, data: bytes) -> None:
        self._controller.receive(self.spoil_request(data), self._clock.now())

    def close(self, emergency: bool) -> None:
        self.is_open = False
        if emergency:
            self._controller.receive(self.emergency, self._clock.now())


class SteppedArms:
    """Arms on a wire, and a device that drives them."""

    def __init__(self, **settings: object) -> None:
        (described,) = ROBOT.devices
        self.controller = ArmEmulation().make(ROBOT, described, ArmErrors(), SETTINGS)
        self.controller.advance(1.0)
        self.wire = Wire(self.controller)
        self.clock = self.wire.clock
        (served,) = served_by_devices(ROBOT)
        self.device = Arms(dataclasses.replace(served, settings={**served.settings, **settings}), self.wire, 921600)

    def drive(self, goal, seconds: float, slew=ROBOT.slew_rate) -> list:
        """Lead the device to a goal (k,) at the slew rate; what it measured."""
        target, found = self.controller.places.copy(), []
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            target = target + np.clip(goal - target, -slew * PERIOD, slew * PERIOD)
            self.device.set_targets(target, lambda: False)
            until = self.clock.now() + PERIOD
            found += self.device.read(0.0)
            self.clock.sleep(until - self.clock.now())
        return found

    def fault(self, kind: str, joint: int = 0) -> None:
        """Let the controller suffer one fault."""
        one = type("Fault", (), {"channel": joint})()
        self.controller.suffer(lambda asked: [one] if asked == kind else [])
