"""States and reports of the driver, and its settings for watching and regulating."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError


class State(IntEnum):
    """What the driver is doing; the numbers are those of `DriverState.msg`."""

    VENTED = 0
    RUNNING = 1
    FAULT = 2
    OFFLINE = 3


class ChamberStatus(IntEnum):
    """How far one chamber is; the numbers are those of `ChamberPressures.msg`."""

    VENTED = 0
    REGULATING = 1
    SETTLED = 2
    FAULT = 3


@dataclass(frozen=True)
class ChamberState:
    """Measured pressures of the robot's chambers.

    Args:
        pressures: (k,) Pa gauge.
        status: (k,) `ChamberStatus`.
        captured: When they were measured, in seconds of the board's clock.
    """

    pressures: NDArray[np.float64]
    status: NDArray[np.uint8]
    captured: float


@dataclass(frozen=True)
class DriverSettings:
    """How the driver watches and regulates; Hz, Pa and seconds."""

    loop_rate: float = 50.0
    realtime_priority: int = 0
    command_timeout: float = 1.0
    stream_timeout: float = 1.0
    settle_tolerance: float = 100.0
    settle_time: float = 0.5
    overpressure_margin: float = 1000.0
    follow_tolerance: float = 1000.0
    follow_timeout: float = 5.0
    response_timeout: float = 1.5
    offset_limit: float = 500.0


class UnsafeError(SoftformError):
    """Something is wrong or not known: vent, and latch this as a fault."""
