"""What every emulated board has, whatever it speaks: channels, sensors, a boot; bytes in, bytes out, time handed in.

No port, no thread, no clock of its own. A protocol is a subclass, which takes requests, acts once a control tick and
forgets all when it boots.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.plant import Plant
from softform_core.units import PA_PER_KPA
from softform_rig.channels import Channels
from softform_rig.control import CONTROL_RATE
from softform_rig.fault_schedule import Showing
from softform_rig.rig_settings import CHANNELS

BOOT_SECONDS = 1.5
# kPa; ±15 psi sensors are on even channels, 0–15 psi on odd.
_QUANTUM = np.where(np.arange(CHANNELS) % 2 == 0, 0.016, 0.008)
_LOWEST = np.where(np.arange(CHANNELS) % 2 == 0, -np.inf, 0.0)  # kPa; a 0–15 psi sensor reads nothing below ambient


@dataclass
class Sensors:
    """Pressure sensors of the board: `board_emulation.PressureSensors` in kPa, with noise, rounded to the quantum.

    Those that are `stuck` (10,) go on showing what they showed last.
    """

    gain: Array = field(default_factory=lambda: np.ones(CHANNELS))
    offset: Array = field(default_factory=lambda: np.zeros(CHANNELS))
    noise: float = 0.0
    seed: int = 0
    curvature: Array = field(default_factory=lambda: np.zeros(CHANNELS))
    hysteresis: Array = field(default_factory=lambda: np.zeros(CHANNELS))
    drift: Array = field(default_factory=lambda: np.zeros(CHANNELS))
    warm_up: float = 600.0

    def __post_init__(self) -> None:
        """Start the noise."""
        self._random = np.random.default_rng(self.seed)
        self.stuck: NDArray[np.bool_] = np.zeros(CHANNELS, dtype=bool)
        self._shown: Array = np.zeros(CHANNELS)
        self._followed: Array | None = None

    def read(self, pressure: Array, seconds: float = 0.0) -> Array:
        """Readings (10,) kPa of true pressures (10,) kPa, so many seconds after power-up."""
        exact = pressure * (self.gain + self.curvature * pressure) + self.offset
        exact += self.drift * -np.expm1(-seconds / self.warm_up)
        before = exact if self._followed is None else self._followed
        self._followed = np.clip(before, exact - self.hysteresis, exact + self.hysteresis)
        seen = self._followed + self.noise * self._random.standard_normal(CHANNELS)
        fresh = np.maximum(np.round(seen / _QUANTUM) * _QUANTUM, _LOWEST)
        self._shown = np.where(self.stuck, self._shown, fresh)
        return self._shown.copy()


class EmulatedBoard(ABC):
    """A board that has just been powered and finished booting at time 0.

    Attributes:
        channel_count: Number of its channels.
        control_rate: Rate of the board's regulation, Hz.
        usual_boot_seconds: Boot time without a fault, s.
        boots_on_open: Whether opening the port restarts it.
        longest_catch_up: s; when this process was held up for longer, the board did not live through the rest.
        channels: Pneumatics of the board.
        sensors: Pressure sensors of the board.
        boot_seconds: Present boot time, s.
        is_hung: Whether its processor stands still: no request is received, nothing is sent or regulated, and pumps and
            valves stay as they are.
        is_supplied: Returns whether pumps and valves have power; without it the pumps stand and the valves vent.

    Args:
        plant: Pneumatics of its channels.
        sensors: Ideal if not given.
    """

    channel_count: ClassVar[int] = CHANNELS
    control_rate: ClassVar[float] = CONTROL_RATE
    usual_boot_seconds = BOOT_SECONDS
    boots_on_open: ClassVar[bool] = True
    longest_catch_up: ClassVar[float] = 1.0

    def __init__(self, plant: Plant, sensors: Sensors | None = None) -> None:
        self.channels = Channels(plant, self.channel_count)
        self.sensors = sensors or Sensors()
        self.boot_seconds = self.usual_boot_seconds
        self.is_hung = False
        self.is_supplied: Callable[[], bool] = lambda: True
        self._output = bytearray()
        self._time = self._powered = 0.0
        self._ready_at = 0.0
        self._restart()

    def boot(self, now: float) -> None:
        """Restart: nothing is sent or received for a while, valves vent; pressures stay physical."""
        self.advance(now)
        self._output.clear()
        self._restart()
        self._ready_at = now + self.boot_seconds

    def pressures(self) -> Array:
        """True pressures of all channels, kPa gauge: what the chambers feel, not what the sensors say."""
        return self.channels.chamber_pressure.copy()

    def suffer(self, showing: Showing) -> None:
        """Let channels and sensors feel the faults that are on."""
        channels, blocked = self.channels, np.zeros(self.channel_count, dtype=bool)
        channels.shut[:], channels.extra_leak[:] = False, 0.0
        self.sensors.stuck[:] = False
        for fault in showing("stuck_sensor"):
            self.sensors.stuck[fault.channel] = True
        for fault in showing("stuck_valve"):
            channels.shut[fault.channel] = True
        for fault in showing("leak"):
            channels.extra_leak[fault.channel] += 1.0 / fault.number(1)
        for fault in showing("blocked_tube"):
            blocked[fault.channel] = True
        channels.block(blocked)

    def actuator_values(self, channels: list[int]) -> Array:
        """True pressures of these channels, Pa gauge."""
        return self.pressures()[channels] * PA_PER_KPA

    @abstractmethod
    def vent_ends(self, data: bytes) -> list[int]:
        """Where requests to vent all channels, or all that one module has, end among bytes from the wire."""

    def take_output(self) -> bytes:
        """Return and forget the bytes sent since the last call."""
        sent = bytes(self._output)
        self._output.clear()
        return sent

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host at time `now`; bytes that come while it boots or hangs are lost."""
        self.advance(now)
        if now >= self._ready_at and not self.is_hung:
            self._hear(data)

    def advance(self, now: float) -> None:
        """Let time pass up to `now` (s, monotonic): dynamics always, the board's own doing once a control tick."""
        tick = 1.0 / self.control_rate
        if now - self._time > self.longest_catch_up:
            self._skip(now - self._time - self.longest_catch_up)
        while self._time + tick <= now:
            self._time += tick
            self._powered += tick
            if not self.is_supplied():
                self.channels.stop()
            self.channels.advance(tick)
            self._readings = self._read()
            if self._time >= self._ready_at and not self.is_hung:
                self._act()

    def _skip(self, seconds: float) -> None:
        """Leave out time that this process was held up for."""
        self._time += seconds

    def _restart(self) -> None:
        """Stop the channels and forget everything."""
        self.channels.stop()
        self._forget()
        self._readings = self._read()

    def _read(self) -> Array:
        return self.sensors.read(self.channels.pressure, self._powered)

    @abstractmethod
    def _forget(self) -> None:
        """Requests, targets and modes are as after power-up."""

    @abstractmethod
    def _hear(self, data: bytes) -> None:
        """Take bytes from the host."""

    @abstractmethod
    def _act(self) -> None:
        """Regulate and send what is due, once a control tick."""
