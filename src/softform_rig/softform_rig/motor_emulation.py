"""Buses of tendon motors as a family that the rig emulates, and how motors differ from their description."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softform_core.bodies.realities import Values, positive, spread_values
from softform_core.robots.actuators import each
from softform_core.robots.description import Description, NotNegative
from softform_rig.fault_kinds import FaultKind, Quantity

if TYPE_CHECKING:
    from softform_core.arrays import Array
    from softform_core.robots import Robot
    from softform_core.robots.devices import Device
    from softform_rig.emulation import Emulation
    from softform_rig.motor_bus import MotorBus
    from softform_rig.rig_settings import RigSettings

_MOTOR = Quantity("id", None, 0, 252, whole=True)

HOME = 2048
"""Position of a motor whose description names no home."""


class MotorErrors(Description):
    """How tendon motors differ from their description, each.

    Attributes:
        drum_radius: Ratio of the true radius to the described one.
        homing: Pull of the tendon at the described home position, m.
        backlash: Backlash of gear and drum, m of pull.
    """

    drum_radius: Values = 1.0
    homing: Values = 0.0
    backlash: NotNegative = 0.0

    def of(self, count: int) -> tuple[Array, Array]:
        """Radius of the drums over the described one, and pull at the described home, m, of each, (count,)."""
        radius = spread_values(self.drum_radius, count, "motors.drum_radius", positive)
        return radius, spread_values(self.homing, count, "motors.homing")


def make_motors(robot: Robot, device: Device, errors: MotorErrors) -> MotorBus:
    """Build a bus of a robot's tendon motors, at its safe pulls: of the weakest type that bears their current limit."""
    from softform_rig.motor_bus import MotorBus
    from softform_rig.tendon_motor import MOTOR_TYPES, TICKS_A_TURN, TendonMotor

    served, count = robot.served_by(device), len(device.channels)
    lowest, highest, safe = robot.actuator_min[served], robot.actuator_max[served], robot.safe[served]
    share, homing = (values[served] for values in errors.of(len(robot.actuators)))
    radius = each(device.settings["drum_radius"], count) * share
    ticks_a_metre = TICKS_A_TURN / (2.0 * np.pi * radius)
    homes = each(device.settings.get("home", HOME), count) - homing * ticks_a_metre
    limit = device.settings.get("current_limit", 0.0)
    bearing = [one for one in MOTOR_TYPES if limit <= one.lasting_current] or [MOTOR_TYPES[-1]]
    motors = {
        channel: TendonMotor(
            drum_radius=float(radius[index]),
            home=float(homes[index]),
            torn_pull=float(1.25 * lowest[index] - 0.25 * highest[index]),
            type=bearing[0],
            backlash=errors.backlash,
            position=float(homes[index] + safe[index] * ticks_a_metre[index]),
        )
        for index, channel in enumerate(device.channels)
    }
    return MotorBus(motors)


class MotorEmulation:
    """Motors that pull tendons; see `Emulation`."""

    field, errors = "motors", MotorErrors
    faults = (
        FaultKind("missing_motor", "motors", "a motor answers nothing and moves no more", (_MOTOR,)),
        FaultKind("cut_bus", "motors", "the cable is cut before a motor: it and all behind answer nothing", (_MOTOR,)),
        FaultKind("doubled_motor", "motors", "another motor has the same id: both answer at once", (_MOTOR,)),
        FaultKind("hot_motor", "motors", "a motor is overheated and shuts down", (_MOTOR,)),
        FaultKind("blocked_motor", "motors", "a motor cannot move", (_MOTOR,)),
        FaultKind("torn_tendon", "motors", "a tendon is torn: its motor pulls nothing", (_MOTOR,)),
        FaultKind("deaf_motor", "motors", "a motor answers, but takes nothing that it is told", (_MOTOR,)),
        FaultKind("surging_motor", "motors", "a motor takes half as much current again as its limit", (_MOTOR,)),
    )

    def check(self, errors: MotorErrors, count: int) -> None:
        """As `Emulation.check`."""
        errors.of(count)

    def make(self, robot: Robot, device: Device, errors: MotorErrors, settings: RigSettings) -> MotorBus:
        """As `Emulation.make`."""
        return make_motors(robot, device, errors)

    def true_values(self, robot: Robot, device: Device, errors: MotorErrors, commanded: Array) -> Array:
        """As `Emulation.true_values`."""
        radius, homing = (values[robot.served_by(device)] for values in errors.of(len(robot.actuators)))
        return np.asarray(commanded * radius + homing)

    def drawn(self, spans: Array, draw: np.random.Generator) -> MotorErrors:
        """As `Emulation.drawn`."""
        count = len(spans)
        return MotorErrors(
            drum_radius=np.clip(draw.normal(1.0, 0.01, count), 0.97, 1.03).tolist(),
            homing=draw.normal(0.0, 0.005 * spans, count).tolist(),
            backlash=draw.uniform(0.0, 0.01) * float(spans.min()),
        )


EMULATION: Emulation = MotorEmulation()
