"""What the rig needs of a family of devices that it emulates: its errors, its faults, and the devices themselves.

A package adds an emulation by an entry point of the group `softform.emulations`: `kind = module:EMULATION`, of the same
name as the kind of its devices in a robot's description. Modules that entry points name import nothing heavy at their
top: whoever reads a fault loads them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from softform_core.errors import SoftformError
from softform_core.plugins import load_plugin, plugin_kinds
from softform_core.robots.description import Description

if TYPE_CHECKING:
    import numpy as np

    from softform_core.arrays import Array
    from softform_core.robots import Robot
    from softform_core.robots.devices import Device
    from softform_core.simulation.simulated_body import TendonLoads
    from softform_rig.fault_kinds import Fault, FaultKind
    from softform_rig.rig_settings import RigSettings

GROUP = "softform.emulations"


class EmulatedDevice(Protocol):
    """A device on a port: bytes in, bytes out, time (s, steady) handed in; no thread and no clock of its own.

    Attributes:
        boot_seconds: Present boot time, s.
        is_hung: Whether its processor stands still: nothing is received, sent or regulated.
    """

    boot_seconds: float = 0.0
    is_hung: bool = False

    @property
    def boots_on_open(self) -> bool:
        """Whether opening the port restarts it."""
        return False

    @property
    def usual_boot_seconds(self) -> float:
        """Boot time without a fault, s."""
        return 0.0

    def boot(self, now: float) -> None:
        """Restart; what it moves stays physical."""

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host."""

    def advance(self, now: float) -> None:
        """Let time pass up to `now`."""

    def take_output(self) -> bytes:
        """Return and forget the bytes sent since the last call."""

    def suffer(self, showing: Callable[[str], list[Fault]]) -> None:
        """Feel the faults that are on; `showing` tells those of one kind."""

    def vent_ends(self, data: bytes) -> list[int]:
        """Where requests to make all safe end among bytes from the wire."""

    def actuator_values(self, channels: list[int]) -> Array:
        """True values of these channels, in the units of their actuators."""


@runtime_checkable
class LoadedDevice(Protocol):
    """A device that feels what its tendons carry."""

    loads: TendonLoads | None


@runtime_checkable
class SuppliedDevice(Protocol):
    """A device that moves its actuators by a supply that may be cut."""

    is_supplied: Callable[[], bool]


@runtime_checkable
class SupplyRelay(Protocol):
    """A device that cuts the supply of others."""

    @property
    def is_closed(self) -> bool:
        """Whether what is behind it has power."""


class Emulation(Protocol):
    """How the devices of one kind are emulated.

    Attributes:
        field: Field of a reality that describes their errors; empty if they have none.
        errors: Type of that field; without arguments an ideal device.
        faults: Kinds of faults of their own.
    """

    @property
    def field(self) -> str: ...  # noqa: D102

    @property
    def errors(self) -> type[Description]: ...  # noqa: D102

    @property
    def faults(self) -> tuple[FaultKind, ...]: ...  # noqa: D102

    def check(self, errors: Any, count: int) -> None:
        """Look whether errors, of `self.errors`, fit a robot of so many actuators.

        Raises:
            ValueError: If not, with the field.
        """

    def make(self, robot: Robot, device: Device, errors: Any, settings: RigSettings) -> EmulatedDevice:
        """The device that a description names, with these errors.

        Raises:
            SoftformError: If it cannot be emulated.
        """

    def true_values(self, robot: Robot, device: Device, errors: Any, commanded: Array) -> Array:
        """Values (…, c) of its actuators once it has regulated its readings to `commanded` (…, c)."""

    def drawn(self, spans: Array, draw: np.random.Generator) -> Description:
        """Errors at random, of a robot whose actuators have these ranges, (k,)."""


class ReadingMemory(Protocol):
    """What readings of one device's channels remember and how they drift, from power-up."""

    def asked(self, commanded: Array, seconds: float) -> Array:
        """What an ideal device would be asked for, (c,), where this one is, (c,), and holds it for so long."""


@runtime_checkable
class RemembersReadings(Protocol):
    """An emulation of devices whose readings depend on what was before."""

    def reading_memory(self, robot: Robot, device: Device, errors: Any) -> ReadingMemory:
        """The memory of the readings of a device with these errors."""


@cache
def emulations() -> dict[str, Emulation]:
    """The emulations of all kinds that are installed."""
    return {kind: load_plugin(GROUP, kind, "emulation")[0] for kind in plugin_kinds(GROUP)}


def emulation_of(robot: Robot, device: Device) -> Emulation:
    """The emulation of a device.

    Raises:
        SoftformError: If the rig emulates no device of its kind.
    """
    found = emulations().get(device.kind)
    if found is None:
        raise SoftformError(
            f"The virtual rig emulates no device of kind '{device.kind}', such as '{device.name}' of {robot.name}.",
            f"It emulates {', '.join(emulations())}; launch the driver alone on a real one, or install its emulation.",
        )
    return found
