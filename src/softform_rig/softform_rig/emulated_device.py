"""What a pseudo-terminal serves: an emulated board or bus. Bytes in, bytes out, time handed in."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softform_rig.faults import Fault

Showing = Callable[[str], list[Fault]]
"""Faults of one kind that are on; the device that asks shows them from here on."""


class EmulatedDevice(Protocol):
    """A device on a serial line.

    Attributes:
        usual_boot_seconds: Boot time without a fault, s.
        boot_seconds: Present boot time, s.
        is_hung: Whether its processor stands still.
    """

    usual_boot_seconds: float
    boot_seconds: float
    is_hung: bool

    @property
    def boots_on_open(self) -> bool:
        """Whether opening the port restarts it."""

    def boot(self, now: float) -> None:
        """Restart it at time `now`, s."""

    def suffer(self, showing: Showing) -> None:
        """Let it feel the faults of its own that are on."""

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host at time `now`, s."""

    def advance(self, now: float) -> None:
        """Let time pass up to `now`, s."""

    def take_output(self) -> bytes:
        """Return and forget the bytes sent since the last call."""

    def actuator_values(self, channels: list[int]) -> NDArray[np.float64]:
        """True values of the actuators on these channels, in their SI unit."""

    def vent_ends(self, data: bytes) -> list[int]:
        """Where requests to make all actuators safe end among bytes from the wire."""
