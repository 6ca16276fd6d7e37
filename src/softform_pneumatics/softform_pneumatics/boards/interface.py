"""What the driver needs of a pneumatic board of any protocol."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softform_actuation.clock import Clock
from softform_actuation.device import never


@dataclass(frozen=True)
class Measurement:
    """Pressures of all channels, Pa gauge, when the board `captured` them, in seconds of its clock."""

    pressures: NDArray[np.float64]
    captured: float


@dataclass
class WireCounters:
    """What went wrong on the wire so far; `corrupt` counts lines or packets, the others bytes and requests."""

    bytes_received: int = 0
    bytes_dropped: int = 0
    corrupt: int = 0
    rejected_requests: int = 0
    unanswered_requests: int = 0


class PressureBoard(Protocol):
    """What the driver needs of a board that regulates pressures by itself.

    Channels are numbered from 0; pressures are Pa gauge. Every method may raise `DeviceError`, and `DeviceLostError`
    once the connection is gone.
    """

    @property
    def clock(self) -> Clock:
        """The clock of its measurements and of its driver."""
        ...

    @property
    def identity(self) -> str:
        """Which board, on which port: for logs and diagnostics."""
        ...

    @property
    def pressure_min(self) -> NDArray[np.float64]:
        """Lowest pressure that each channel can measure and hold, (channels,) Pa."""
        ...

    @property
    def pressure_max(self) -> NDArray[np.float64]:
        """Highest pressure that each channel can measure and hold, (channels,) Pa."""
        ...

    @property
    def vent_threshold(self) -> float | None:
        """How far (Pa) above its target it vents a channel.

        None unless each measurement is a reading by which the firmware of OpenPneu decided what pump and valve do next.
        """
        ...

    @property
    def counters(self) -> WireCounters:
        """What went wrong on the wire so far."""
        ...

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """Connect, make sure that it is the right board, and vent it; give up soon once `interrupted` says so."""
        ...

    def start(self, targets: NDArray[np.float64]) -> None:
        """Set every target, (channels,) Pa, then regulate and stream measurements."""
        ...

    def set_targets(self, targets: NDArray[np.float64], interrupted: Callable[[], bool] = never) -> bool:
        """Keep the board at these targets, (channels,) Pa: called again and again, for what is lost is sent anew.

        NaN leaves a channel at the target it has.

        Stops early once `interrupted` says so; what was left comes first the next time. Returns whether all changed
        targets were sent.
        """
        ...

    def observe(self) -> None:
        """Stream measurements while everything is open to the atmosphere and nothing is regulated; `vent` ends it."""
        ...

    def vent(self) -> bool:
        """Open everything to the atmosphere and stop regulating; return whether the board confirmed it."""
        ...

    def read(self, timeout: float) -> list[Measurement]:
        """Return the measurements that arrived, oldest first, waiting up to `timeout` seconds for the first."""
        ...

    def check_alive(self) -> dict[int, float]:
        """Ask a vented board for a sign of life; return what pressures it tells, Pa by channel."""
        ...

    def close(self) -> None:
        """Let go of the board; never raises."""
        ...
