"""Pneumatic boards as a family that the rig emulates: the boards by name, and errors of their pressure sensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from softform_core.bodies.realities import Values, positive, spread_values
from softform_core.errors import SoftformError
from softform_core.robots.description import Description
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

_CHANNEL = Quantity("channel", None, 0, CHANNELS - 1, whole=True)


class PressureSensors(Description):
    """Reading = gain · true pressure + offset, Pa, of each actuator. The board regulates the reading."""

    gain: Values = 1.0
    offset: Values = 0.0

    def of(self, count: int) -> tuple[Array, Array]:
        """Gain and offset, Pa, of each of so many actuators, (count,)."""
        gain = spread_values(self.gain, count, "pressure_sensors.gain", positive)
        return gain, spread_values(self.offset, count, "pressure_sensors.offset")


def board_sensors(robot: Robot, device: Device, errors: PressureSensors, noise: float, seed: int) -> Sensors:
    """Sensors of a board's ten channels; channels without an actuator are ideal. `noise` in kPa."""
    from softform_rig.emulated_board import Sensors

    gain, offset = np.ones(CHANNELS), np.zeros(CHANNELS)
    gains, offsets = errors.of(len(robot.actuators))
    served = robot.served_by(device)
    gain[device.channels], offset[device.channels] = gains[served], offsets[served] / PA_PER_KPA
    return Sensors(gain, offset, noise, seed)


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
        lowest = np.where(robot.actuator_min[served] < 0.0, -np.inf, 0.0)
        return np.maximum(lowest, (commanded - offset) / gain)

    def drawn(self, spans: Array, draw: np.random.Generator) -> PressureSensors:
        """As `Emulation.drawn`."""
        count = len(spans)
        return PressureSensors(
            gain=np.clip(draw.normal(1.0, 0.03, count), 0.91, 1.09).tolist(),
            offset=draw.normal(0.0, 0.012 * spans, count).tolist(),
        )


EMULATION: Emulation = BoardEmulation()
