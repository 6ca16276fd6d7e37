"""An emulated board as a `Device`, and the guardian beside it, both in virtual time; valves may stick."""

import math
from collections.abc import Callable

import numpy as np

from softform_actuation.device import (
    DeviceHealth,
    DeviceLostError,
    Measurement,
    Rest,
    SafeAction,
    ServedActuators,
    never,
)
from softform_actuation.guardian import FAREWELL, HEARTBEAT_SECONDS, SILENCE_SECONDS, Action, Watch
from softform_core.arrays import Array
from softform_system_tests.schedules.virtual_time import Process, VirtualClock, World

PERIOD = 0.1
_ANSWER_SECONDS = 0.01
_TIME_CONSTANT = 0.08


class Chambers:
    """True pressures, which go to their targets, or to zero while the board vents, but for valves that stick."""

    def __init__(self, world: World, count: int) -> None:
        self._world = world
        self.pressures, self._targets = [0.0] * count, [0.0] * count
        self.runs, self.stuck = False, False
        self._seen = self._time()
        self.on_targets: Callable[[float], None] = lambda value: None

    def _time(self) -> float:
        return self._world.now + self._world.slept

    def advance(self) -> None:
        """Bring the pressures up to the present; those behind a valve that sticks rise and do not fall."""
        now = self._time()
        passed, self._seen = now - self._seen, now
        if passed <= 0.0:
            return
        kept = math.exp(-passed / _TIME_CONSTANT)
        for index, target in enumerate(self._targets):
            wanted = target if self.runs else 0.0
            here = self.pressures[index]
            if not (self.stuck and index == len(self._targets) - 1 and wanted < here):
                self.pressures[index] = wanted + (here - wanted) * kept

    def regulate(self, targets: list[float]) -> None:
        """Take targets, Pa; regulate from now on."""
        self.advance()
        self._targets, self.runs = targets, True
        self.on_targets(max(targets))

    def vent(self) -> None:
        """Open everything."""
        self.advance()
        self.runs, self._targets = False, [0.0] * len(self._targets)

    @property
    def wanted(self) -> float:
        """The highest target, Pa."""
        return max(self._targets)

    def highest(self) -> float:
        """The highest pressure now, Pa."""
        self.advance()
        return max(self.pressures)


class SimulatedGuardian:
    """The guardian process of a driver: vents when the heartbeats end."""

    def __init__(self, world: World, chambers: Chambers, driver: Process) -> None:
        self._world, self._chambers = world, chambers
        self._heard, self._is_gone, self._watch = world.now, False, Watch()
        driver.on_death.append(self._on_end)
        self._look()

    def beat(self) -> None:
        """Take a heartbeat."""
        self._heard = self._world.now

    def leave(self) -> None:
        """Take the farewell."""
        self._do(self._watch.on_beats(FAREWELL))

    def _on_end(self) -> None:
        if not self._is_gone:
            self._do(self._watch.on_end())

    def _do(self, action: Action) -> None:
        if Action.MAKE_SAFE in action:
            self._chambers.vent()
        self._is_gone = self._is_gone or Action.LEAVE in action

    def _look(self) -> None:
        if self._is_gone:
            return
        if self._world.now - self._heard >= SILENCE_SECONDS:
            self._do(self._watch.on_silence())
        self._world.call_at(self._world.now + HEARTBEAT_SECONDS, self._look)


class SimulatedBoard:
    """A `Device` of the driver; what it is asked takes a moment, and measurements come ten times a second."""

    safe_action = SafeAction.VENT
    identity, is_holding = "simulated board", False

    def __init__(self, world: World, process: Process, chambers: Chambers, served: ServedActuators) -> None:
        self.clock = VirtualClock(world, process)
        self._process, self._chambers, self._served = process, chambers, served
        self._world = world
        self._guardian: SimulatedGuardian | None = None
        self._next = self._beaten = 0.0
        self._drives = False

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """As `Device.open`."""
        if self._guardian is None:
            self._guardian = SimulatedGuardian(self._world, self._chambers, self._process)
        self.make_safe()

    def test(self, interrupted: Callable[[], bool]) -> None:
        """As `Device.test`; there is nothing to find out."""

    def begin(self) -> Array:
        """As `Device.begin`."""
        self._ask()
        self._drives, self._next = True, self.clock.now() + PERIOD
        self._chambers.regulate(self._served.safe.tolist())
        return self._served.safe

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """As `Device.set_targets`."""
        self._beat()
        self._chambers.regulate(targets.tolist())
        return True

    def read(self, timeout: float) -> list[Measurement]:
        """As `Device.read`."""
        self._beat()
        end = self.clock.now() + timeout
        if not self._drives or self._next > end:
            self.clock.sleep(max(timeout, 0.0))
            return []
        self.clock.sleep(max(self._next - self.clock.now(), 0.0))
        self._next = self.clock.now() + PERIOD
        return [Measurement(self._measured(), self.clock.now())]

    def make_safe(self) -> bool:
        """As `Device.make_safe`."""
        self._drives = False
        self._chambers.vent()
        self._ask()
        return True

    def check(self) -> Rest:
        """As `Device.check`."""
        self._ask()
        values = self._measured()
        at_rest = np.abs(values - self._served.safe) <= self._served.tolerances.follow
        names = [name for name, rests in zip(self._served.actuators, at_rest, strict=True) if not rests]
        return Rest(values, at_rest, f"{', '.join(names)} not at rest" if names else "")

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """As `Device.calibrate`."""
        return ""

    def close(self) -> None:
        """As `Device.close`."""
        if self._guardian is not None:
            self._guardian.leave()
            self._guardian = None

    def health(self) -> DeviceHealth:
        """As `Device.health`."""
        return DeviceHealth()

    def _measured(self) -> Array:
        self._chambers.advance()
        return np.array(self._chambers.pressures)

    def _beat(self) -> None:
        if self._guardian is None:
            raise DeviceLostError("It is not open.")
        if self.clock.now() - self._beaten >= HEARTBEAT_SECONDS:
            self._beaten = self.clock.now()
            self._guardian.beat()

    def _ask(self) -> None:
        self.clock.sleep(_ANSWER_SECONDS)
        self._beat()
