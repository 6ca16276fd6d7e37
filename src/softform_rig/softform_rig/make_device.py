"""The emulated device that serves a robot: a pneumatic board, or a bus of tendon motors."""

import numpy as np

from softform_core.plant import load_plant
from softform_core.robots import Robot
from softform_core.robots.actuators import each
from softform_rig.emulated_device import EmulatedDevice
from softform_rig.make_board import make_board
from softform_rig.motor_bus import MotorBus
from softform_rig.reality import Reality, board_sensors, motor_errors
from softform_rig.rig_settings import RigSettings
from softform_rig.tendon_motor import TICKS_A_TURN, TendonMotor


def make_device(robot: Robot, reality: Reality, settings: RigSettings) -> EmulatedDevice:
    """Build the device that the robot's description names, with the errors of a reality."""
    if robot.quantity == "displacement":
        return make_motors(robot, reality)
    plant = load_plant()
    sensors = board_sensors(robot, reality, plant.sensor_noise, settings.seed)
    return make_board(settings.board, plant, sensors, settings.firmware)


def make_motors(robot: Robot, reality: Reality) -> MotorBus:
    """Build the bus of a robot's tendon motors, at its safe pulls."""
    count, described = len(robot.actuators), robot.devices[0].settings
    share, homing = motor_errors(reality, count)
    radius = each(described["drum_radius"], count) * share
    ticks_a_metre = TICKS_A_TURN / (2.0 * np.pi * radius)
    homes = each(described["home"], count) - homing * ticks_a_metre
    motors = {
        channel: TendonMotor(
            drum_radius=float(radius[index]),
            home=float(homes[index]),
            torn_pull=float(1.25 * robot.actuator_min[index] - 0.25 * robot.actuator_max[index]),
            backlash=reality.motors.backlash,
            position=float(homes[index] + robot.safe[index] * ticks_a_metre[index]),
        )
        for index, channel in enumerate(robot.channels)
    }
    return MotorBus(motors)
