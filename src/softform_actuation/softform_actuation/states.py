"""States and reports of the driver, and its settings for watching and following."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array


class State(IntEnum):
    """What the driver is doing; the numbers are those of `DriverState.msg`."""

    SAFE = 0
    RUNNING = 1
    FAULT = 2
    OFFLINE = 3
    HOLDING = 4
    MAKING_SAFE = 5


class Status(IntEnum):
    """How far one actuator is; the numbers are those of `ActuatorState.msg`."""

    SAFE = 0
    MOVING = 1
    SETTLED = 2
    FAULT = 3


class ActuatorRest(NamedTuple):
    """How safe one actuator is; what is not known is False, or NaN.

    Attributes:
        name: Its name.
        asked: Whether its device was asked to make it safe, and has not driven it since.
        acknowledged: Whether the device has acknowledged that.
        at_rest: Whether it has been measured at rest since.
        value: What was measured last since, in the robot's unit.
    """

    name: str
    asked: bool
    acknowledged: bool
    at_rest: bool
    value: float


@dataclass(frozen=True)
class DriverReport:
    """What the driver is doing, and for whom.

    Attributes:
        state: State of the driver.
        reason: Why, and what to do about it.
        holder: Holder of the lease; empty without one.
        lease: Id of that lease; without a holder that of the last one, or one that was never given before the first.
        epoch: Number that whatever makes the robot safe raises, and each fault and reset; another driver's is another.
        faults: All that is latched, the first one first.
        actuators: How safe each actuator is.
        warnings: What does not stop the robot, but an operator should know.
    """

    state: State
    reason: str
    holder: str = ""
    lease: int = 0
    epoch: int = 0
    faults: tuple[str, ...] = ()
    actuators: tuple[ActuatorRest, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_at_rest(self) -> bool:
        """Whether every actuator has been measured at rest."""
        return bool(self.actuators) and all(one.at_rest for one in self.actuators)


@dataclass(frozen=True)
class Readings:
    """Measured values of the robot's actuators.

    Attributes:
        values: (k,) in the unit of the robot's description.
        status: (k,) `Status`.
        captured: When the oldest of them was measured, in seconds of the driver's clock.
    """

    values: Array
    status: NDArray[np.uint8]
    captured: float


@dataclass(frozen=True)
class DriverSettings:
    """How the driver watches and follows; Hz and seconds."""

    loop_rate: float = 50.0
    realtime_priority: int = 0
    command_timeout: float = 1.0
    command_age_limit: float = 0.5
    lease_timeout: float = 3.0
    hold_timeout: float = 600.0
    stream_timeout: float = 1.0
    settle_time: float = 0.5
    follow_timeout: float = 5.0
