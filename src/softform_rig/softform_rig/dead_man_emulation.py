"""Dead-men as a family that the rig emulates: they move nothing, and have no errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softform_core.robots.description import Description
from softform_rig.fault_kinds import FaultKind

if TYPE_CHECKING:
    import numpy as np

    from softform_core.arrays import Array
    from softform_core.robots import Robot
    from softform_core.robots.devices import Device
    from softform_rig.dead_man import DeadMan
    from softform_rig.emulation import Emulation
    from softform_rig.rig_settings import RigSettings


class DeadManEmulation:
    """Relays in the supply of other devices; see `Emulation`."""

    field, errors = "", Description
    faults = (FaultKind("welded_relay", "dead-man", "the relay conducts whatever is asked of it"),)

    def check(self, errors: Any, count: int) -> None:
        """As `Emulation.check`."""

    def make(self, robot: Robot, device: Device, errors: Any, settings: RigSettings) -> DeadMan:
        """As `Emulation.make`."""
        from softform_rig.dead_man import DeadMan

        return DeadMan()

    def true_values(self, robot: Robot, device: Device, errors: Any, commanded: Array) -> Array:
        """As `Emulation.true_values`."""
        return commanded

    def drawn(self, spans: Array, draw: np.random.Generator) -> Description:
        """As `Emulation.drawn`."""
        return Description()


EMULATION: Emulation = DeadManEmulation()
