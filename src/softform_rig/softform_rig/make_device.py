"""The emulated devices that serve a robot: pneumatic boards or buses of tendon motors, and dead-men."""

import numpy as np

from softform_core.errors import SoftformError
from softform_core.plant import Plant, load_plant
from softform_core.robots import Robot
from softform_core.robots.actuators import each
from softform_core.robots.devices import DEAD_MAN, Device
from softform_rig.binary_bus import BinaryBus
from softform_rig.dead_man import DeadMan
from softform_rig.emulated_board import CHANNELS, EmulatedBoard, Sensors
from softform_rig.faulty_board import EmulatedDevice
from softform_rig.firmware import Firmware, FirmwareKind
from softform_rig.motor_bus import MotorBus
from softform_rig.protocol_b import ProtocolBBoard
from softform_rig.reality import MOTOR_BUS, PNEUMATIC_BOARD, Reality, board_sensors, motor_errors
from softform_rig.rig_settings import BoardName, RigSettings
from softform_rig.tendon_motor import TICKS_A_TURN, TendonMotor

_HOME = 2048
"""Position of a motor whose description names no home."""


def make_device(robot: Robot, device: Device, reality: Reality, settings: RigSettings) -> EmulatedDevice:
    """Build one of the devices that the robot's description names, with the errors of a reality.

    Raises:
        SoftformError: If the rig emulates no device of its kind.
    """
    if device.kind == MOTOR_BUS:
        return make_motors(robot, device, reality)
    if device.kind == DEAD_MAN:
        return DeadMan()
    if device.kind != PNEUMATIC_BOARD:
        raise SoftformError(
            f"The virtual rig emulates no device of kind '{device.kind}', such as '{device.name}' of {robot.name}.",
            f"It emulates {PNEUMATIC_BOARD} and {MOTOR_BUS}, and {DEAD_MAN}; launch the driver alone on a real one.",
        )
    if (highest := max(device.channels)) >= CHANNELS:
        raise SoftformError(
            f"Device '{device.name}' of {robot.name} has channel {highest}, boards of the virtual rig have {CHANNELS}.",
            f"Give `channels` between 0 and {CHANNELS - 1} in the robot's description.",
        )
    plant = load_plant()
    seed = settings.seed + robot.devices.index(device)
    sensors = board_sensors(robot, device, reality, plant.sensor_noise, seed)
    return make_board(settings.board, plant, sensors, settings.firmware)


def make_board(name: BoardName, plant: Plant, sensors: Sensors, firmware: FirmwareKind = "regulated") -> EmulatedBoard:
    """Build a board by its name in docs/boards.md; `firmware` is of `openpneu_a`, see `Firmware`."""
    if name == "openpneu_a":
        return Firmware(plant, sensors, firmware)
    return ProtocolBBoard(plant, sensors) if name == "openpneu_b" else BinaryBus(plant, sensors)


def make_motors(robot: Robot, device: Device, reality: Reality) -> MotorBus:
    """Build a bus of a robot's tendon motors, at its safe pulls."""
    served, count = robot.served_by(device), len(device.channels)
    lowest, highest, safe = robot.actuator_min[served], robot.actuator_max[served], robot.safe[served]
    share, homing = (errors[served] for errors in motor_errors(reality, len(robot.actuators)))
    radius = each(device.settings["drum_radius"], count) * share
    ticks_a_metre = TICKS_A_TURN / (2.0 * np.pi * radius)
    homes = each(device.settings.get("home", _HOME), count) - homing * ticks_a_metre
    motors = {
        channel: TendonMotor(
            drum_radius=float(radius[index]),
            home=float(homes[index]),
            torn_pull=float(1.25 * lowest[index] - 0.25 * highest[index]),
            backlash=reality.motors.backlash,
            position=float(homes[index] + safe[index] * ticks_a_metre[index]),
        )
        for index, channel in enumerate(device.channels)
    }
    return MotorBus(motors)
