"""Pneumatic boards as a family that the rig emulates: the boards by name, and errors of their pressure sensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from softform_core.bodies.realities import (
    Values,
    log_uniform,
    not_negative,
    one_or_each,
    positive,
    spread_values,
)
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Positive
from softform_core.units import PA_PER_KPA
from softform_rig.fault_kinds import FaultKind, Quantity
from softform_rig.rig_settings import CHANNELS, FirmwareKind, RigSettings

if TYPE_CHECKING:
    from softform_core.arrays import Array
    from softform_core.plant import Plant
    from softform_core.robots import Robot
    from softform_core.robots.devices import Device
    from softform_rig.emulated_board import EmulatedBoard, Sensors
    from softform_rig.emulation import Emulation

_GAIN_AND_OFFSET = 0.5
"""Chance of a drawn board's sensors to err in gain and offset, not by curvature, hysteresis and drift."""

_CHANNEL = Quantity("channel", None, 0, CHANNELS - 1, whole=True)


class PressureSensors(Description):
    """Errors of the sensors of each actuator, whose readings the board regulates, Pa.

    A reading is gain · p + curvature · p² + offset + drift · (1 - exp(-t / warm_up)) of the true pressure p, t after
    power-up, and stays behind that by `hysteresis`, as behind a play.
    """

    gain: Values = 1.0
    offset: Values = 0.0
    curvature: Values = 0.0
    hysteresis: Values = 0.0
    drift: Values = 0.0
    warm_up: Positive = 600.0

    def of(self, count: int) -> tuple[Array, Array]:
        """Gain and offset, Pa, of each of so many actuators, (count,)."""
        gain = spread_values(self.gain, count, "pressure_sensors.gain", positive)
        return gain, spread_values(self.offset, count, "pressure_sensors.offset")

    def bent(self, count: int) -> tuple[Array, Array]:
        """Curvature, 1/Pa, and drift, Pa, of each of so many actuators, (count,)."""
        curvature = spread_values(self.curvature, count, "pressure_sensors.curvature")
        return curvature, spread_values(self.drift, count, "pressure_sensors.drift")

    def behind(self, count: int) -> Array:
        """Hysteresis, Pa, of each of so many actuators, (count,)."""
        return spread_values(self.hysteresis, count, "pressure_sensors.hysteresis", not_negative)


class SensorMemory:
    """See `ReadingMemory`: of sensors with a hysteresis (c,) Pa, a drift (c,) Pa and a time of warming up, s."""

    def __init__(self, hysteresis: Array, drift: Array, warm_up: float) -> None:
        self._hysteresis, self._drift, self._warm_up = hysteresis, drift, warm_up
        self._time, self._reading, self._behind = 0.0, np.zeros(len(drift)), np.zeros(len(drift))

    def asked(self, commanded: Array, seconds: float) -> Array:
        """As `ReadingMemory.asked`: the inverse play, and what has drifted meanwhile."""
        self._time += seconds
        self._behind = np.where(
            commanded == self._reading, self._behind, self._hysteresis * np.sign(commanded - self._reading)
        )
        self._reading = commanded.copy()
        return np.asarray(commanded + self._behind - self._drift * -np.expm1(-self._time / self._warm_up))


def board_sensors(robot: Robot, device: Device, errors: PressureSensors, noise: float, seed: int) -> Sensors:
    """Sensors of a board's ten channels; channels without an actuator are ideal. `noise` in kPa."""
    from softform_rig.emulated_board import Sensors

    gain, offset = np.ones(CHANNELS), np.zeros(CHANNELS)
    gains, offsets = errors.of(len(robot.actuators))
    served = robot.served_by(device)
    gain[device.channels], offset[device.channels] = gains[served], offsets[served] / PA_PER_KPA
    curvature, drift, hysteresis = np.zeros(CHANNELS), np.zeros(CHANNELS), np.zeros(CHANNELS)
    curvatures, drifts = errors.bent(len(robot.actuators))
    curvature[device.channels], drift[device.channels] = curvatures[served] * PA_PER_KPA, drifts[served] / PA_PER_KPA
    hysteresis[device.channels] = errors.behind(len(robot.actuators))[served] / PA_PER_KPA
    return Sensors(gain, offset, noise, seed, curvature, hysteresis, drift, errors.warm_up)


def make_board(name: str, plant: Plant, sensors: Sensors, firmware: FirmwareKind = "regulated") -> EmulatedBoard:
    """Build a board by its name in docs/boards.md; `firmware` is of `openpneu_a`, see `Firmware`.

    Raises:
        SoftformError: If no board has this name.
    """
    from softform_rig.binary_bus import BinaryBus
    from softform_rig.line_board import Firmware, ProtocolBBoard

    boards: dict[str, Callable[[], EmulatedBoard]] = {
        "openpneu_a": lambda: Firmware(plant, sensors, firmware),
        "openpneu_b": lambda: ProtocolBBoard(plant, sensors),
        "binary": lambda: BinaryBus(plant, sensors),
    }
    if name not in boards:
        raise SoftformError(f"The virtual rig has no board '{name}'.", f"It has {', '.join(boards)}.")
    return boards[name]()


class BoardEmulation:
    """Boards that regulate pressures; see `Emulation`."""

    field, errors = "pressure_sensors", PressureSensors
    faults = (
        FaultKind("stuck_valve", "air", "the valve sticks between its seats: the chamber is shut in", (_CHANNEL,)),
        FaultKind("leak", "air", "the chamber leaks to ambient",
                  (_CHANNEL, Quantity("seconds, time constant", 1.0, 0.01, 1e4))),
        FaultKind("blocked_tube", "air", "the tube is kinked: the sensor is cut off from the chamber", (_CHANNEL,)),
        FaultKind("stuck_sensor", "air", "the pressure sensor stands still: it shows what it showed last", (_CHANNEL,)),
    )  # fmt: skip

    def check(self, errors: PressureSensors, count: int) -> None:
        """As `Emulation.check`."""
        errors.of(count)
        errors.bent(count)
        errors.behind(count)

    def make(self, robot: Robot, device: Device, errors: PressureSensors, settings: RigSettings) -> EmulatedBoard:
        """As `Emulation.make`."""
        from softform_core.plant import load_plant

        if (highest := max(device.channels)) >= CHANNELS:
            raise SoftformError(
                f"Device '{device.name}' of {robot.name} has channel {highest}, boards of the virtual rig have "
                f"{CHANNELS}.",
                f"Give `channels` between 0 and {CHANNELS - 1} in the robot's description.",
            )
        plant = load_plant()
        seed = settings.seed + robot.devices.index(device)
        sensors = board_sensors(robot, device, errors, plant.sensor_noise, seed)
        return make_board(settings.board, plant, sensors, settings.firmware)

    def true_values(self, robot: Robot, device: Device, errors: PressureSensors, commanded: Array) -> Array:
        """As `Emulation.true_values`; a channel without vacuum does not go below ambient pressure."""
        served = robot.served_by(device)
        gain, offset = (values[served] for values in errors.of(len(robot.actuators)))
        curvature = errors.bent(len(robot.actuators))[0][served]
        lowest, reading = np.where(robot.actuator_min[served] < 0.0, -np.inf, 0.0), commanded - offset
        root = np.sqrt(np.maximum(gain**2 + 4.0 * curvature * reading, 0.0))
        return np.maximum(lowest, 2.0 * reading / (gain + root))

    def reading_memory(self, robot: Robot, device: Device, errors: PressureSensors) -> SensorMemory:
        """As `RemembersReadings.reading_memory`."""
        count, served = len(robot.actuators), robot.served_by(device)
        return SensorMemory(errors.behind(count)[served], errors.bent(count)[1][served], errors.warm_up)

    def drawn(self, spans: Array, draw: np.random.Generator) -> PressureSensors:
        """As `Emulation.drawn`: half of the boards err in gain and offset, the others as no learner takes them to."""
        count = len(spans)
        gain, offset = np.clip(draw.normal(1.0, 0.03, count), 0.91, 1.09), draw.normal(0.0, 0.012 * spans, count)
        (other,) = draw.spawn(1)  # what is drawn after this stays the same reality
        if other.random() < _GAIN_AND_OFFSET:
            return PressureSensors(gain=gain.tolist(), offset=offset.tolist())
        return PressureSensors(
            curvature=(other.normal(0.0, 0.015, count) / spans).tolist(),
            hysteresis=one_or_each(other.uniform(0.001, 0.01) * spans),
            drift=other.normal(0.0, 0.008 * spans, count).tolist(),
            warm_up=log_uniform(other, 200.0, 2000.0),
        )


EMULATION: Emulation = BoardEmulation()
