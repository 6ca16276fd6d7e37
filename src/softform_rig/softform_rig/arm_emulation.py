"""Arms as a family that the rig emulates, and how they differ from their description."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softform_core.bodies.realities import Values, spread_values
from softform_core.robots.actuators import each
from softform_core.robots.description import Description
from softform_rig.fault_kinds import FaultKind, Quantity

if TYPE_CHECKING:
    from softform_core.arrays import Array
    from softform_core.robots import Robot
    from softform_core.robots.devices import Device
    from softform_rig.arm_controller import ArmController
    from softform_rig.emulation import Emulation
    from softform_rig.rig_settings import RigSettings

__all__ = ["EMULATION", "ArmEmulation", "ArmErrors"]

_JOINT = Quantity("joint", None, 0, 63, whole=True)


class ArmErrors(Description):
    """How arms differ from their description.

    Attributes:
        offset: By which each joint truly stands beside where its encoder has it, rad.
    """

    offset: Values = 0.0

    def of(self, count: int) -> Array:
        """Of each joint, (count,) rad."""
        return spread_values(self.offset, count, "arms.offset")


class ArmEmulation:
    """Arms of one controller; see `Emulation`."""

    field, errors = "arms", ArmErrors
    faults = (
        FaultKind("slipping_brake", "arms", "a joint sinks, whatever it is told", (_JOINT,)),
        FaultKind("stuck_joint", "arms", "a joint does not move", (_JOINT,)),
        FaultKind("stop_button", "arms", "the arms' own stop button is pressed"),
    )

    def check(self, errors: ArmErrors, count: int) -> None:
        """As `Emulation.check`."""
        errors.of(count)

    def make(self, robot: Robot, device: Device, errors: ArmErrors, settings: RigSettings) -> ArmController:
        """As `Emulation.make`: they hold what they grasped."""
        from softform_rig.arm_controller import ArmController

        count, order = len(device.channels), np.argsort(device.channels)
        described = device.settings
        start, offset = np.array(described["start"], dtype=np.float64), errors.of(len(robot.actuators))
        velocity, acceleration = (each(described[name], count)[order] for name in ("velocity", "acceleration"))
        return ArmController(start[order], offset[robot.served_by(device)][order], velocity, acceleration)

    def true_values(self, robot: Robot, device: Device, errors: ArmErrors, commanded: Array) -> Array:
        """As `Emulation.true_values`."""
        return np.asarray(commanded + errors.of(len(robot.actuators))[robot.served_by(device)])

    def drawn(self, spans: Array, draw: np.random.Generator) -> ArmErrors:
        """As `Emulation.drawn`."""
        return ArmErrors(offset=draw.normal(0.0, 0.0005, len(spans)).tolist())


EMULATION: Emulation = ArmEmulation()
