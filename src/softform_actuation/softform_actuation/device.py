"""What the driver needs of a device that moves actuators, and of the family that makes it.

The driver core knows neither air nor motors. It owns the loop, the watch over values that every actuator shares, the
latch and the lease. A *device* is one board or bus behind one connection; it serves some actuators of the robot, in the
order of its description. A *family* makes devices of one kind; it is found by an entry point of the group
`softform.devices`, whose name is the `kind` of the device in the robot's description (see `families`).

The values of an actuator are in the SI unit of its quantity. All methods but `close` and `health` may raise
`DeviceError`, `DeviceLostError` once the connection is gone, and `UnsafeError`. One thread of the driver calls them;
`health` and the properties are read by any. `conformance` holds a device against all of this.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softform_actuation.clock import Clock
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots.actuators import UNITS, Quantity
from softform_core.robots.devices import ActuatorTolerances
from softform_ros.parameters import Parameter

__all__ = [
    "REST_SECONDS",
    "Device",
    "DeviceError",
    "DeviceFamily",
    "DeviceHealth",
    "DeviceLostError",
    "Measurement",
    "Rest",
    "SafeAction",
    "ServedActuators",
    "UnsafeError",
    "never",
]

REST_SECONDS = 0.6
"""s that the driver lets a device rest after `make_safe`; then `check` says what is not safe, or it is driven again."""


class DeviceError(SoftformError):
    """The device does not do what it was asked."""


class DeviceLostError(DeviceError):
    """The connection to the device is gone."""


class UnsafeError(SoftformError):
    """Something is wrong or not known: make everything safe, and latch this as a fault."""


class SafeAction(Enum):
    """What `make_safe` does."""

    VENT = "vent"
    HOLD = "hold"
    SLACKEN = "slacken"


@dataclass(frozen=True)
class ServedActuators:
    """The k actuators that one device serves.

    Attributes:
        robot: Name of the robot, for files and messages.
        device: Name of the device in the robot's description.
        actuators: Names.
        channels: Channel of each.
        quantities: Quantity of each.
        actuator_min: (k,) lowest command.
        actuator_max: (k,) highest command.
        slew_rate: (k,) per second, fastest change of a command.
        safe: (k,) command at which the robot is safe.
        tolerances: Tolerances of measured values, (k,) each.
        settings: Settings of the device in the robot's description, checked by its family.
        robot_quantities: Quantities of all actuators of the robot, whichever device serves them.
    """

    robot: str
    device: str
    actuators: list[str]
    channels: list[int]
    quantities: list[Quantity]
    actuator_min: Array
    actuator_max: Array
    slew_rate: Array
    safe: Array
    tolerances: ActuatorTolerances
    settings: Mapping[str, Any] = field(default_factory=dict)
    robot_quantities: Sequence[Quantity] = ()

    @property
    def units(self) -> list[str]:
        """SI unit of the values of each."""
        return [UNITS[quantity] for quantity in self.quantities]


@dataclass(frozen=True)
class Measurement:
    """Values of the device's actuators at one moment.

    Attributes:
        values: (k,) as measured.
        captured: When, s of the device's clock.
        is_steady: Whether the device's own regulation is at rest; until then no actuator counts as settled.
    """

    values: Array
    captured: float
    is_steady: bool = True


@dataclass(frozen=True)
class Rest:
    """What was measured of actuators that shall be at rest. What is not known counts as not at rest.

    Attributes:
        values: (k,) measured last since `make_safe`, in the unit of the description; NaN where nothing was measured.
        at_rest: (k,) whether the actuator was measured where it is safe; False where nothing was measured.
        complaint: Which actuator is not at rest, or not known to be, though it should be by now, and what to do: a
            fault. Empty if there is none, or if there is still time.
    """

    values: Array
    at_rest: NDArray[np.bool_]
    complaint: str = ""


@dataclass(frozen=True)
class DeviceHealth:
    """What a device reports in the diagnostics, and a fault that does not stop it; empty if there is none."""

    values: Mapping[str, object] = field(default_factory=dict)
    warning: str = ""


def never() -> bool:
    """No interruption."""
    return False


class Device(Protocol):
    """One board or bus. It is closed, then open and safe, and driven between `begin` and `make_safe`."""

    @property
    def clock(self) -> Clock:
        """The steady clock of its measurements; the driver reads and waits by that of its first device."""

    @property
    def identity(self) -> str:
        """Which device, on which port: for logs and diagnostics."""

    @property
    def safe_action(self) -> SafeAction:
        """What `make_safe` does."""

    @property
    def is_holding(self) -> bool:
        """Whether it holds the robot under power because `make_safe` means that here: it then never is at rest."""

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """Connect, make sure that it is the right device and can serve its actuators, and make it safe.

        Nothing may move that was not moving before. What fails leaves the port closed. Once `interrupted` says so it
        gives up soon, with a `DeviceError`.
        """

    def test(self, interrupted: Callable[[], bool]) -> None:
        """Find out whether it really drives each actuator on its own; it is safe before and after.

        It may move the actuators a little: it is called when the driver is activated, after each `open`. Once
        `interrupted` says so, it makes safe at once and raises `DeviceError`. One with nothing to find out returns.
        """

    def begin(self) -> Array:
        """Drive all actuators, and measure from now on. What fails ends safe.

        Returns:
            (k,) that it holds until it gets other targets: the driver moves on from there. A board begins at ambient
            pressure, a motor where it is.
        """

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """Keep the actuators at these targets, (k,): called in every period, for what gets lost is to be sent anew.

        They are within the range and change no faster than the slew rate; the driver saw to that. Stops early once
        `interrupted` says that the period is over; what was left comes first the next time.

        Returns:
            Whether the device has received all changes.
        """

    def read(self, timeout: float) -> list[Measurement]:
        """Return the measurements that arrived, oldest first, waiting up to `timeout` seconds for the first one.

        Also called while the device is safe, where it has to look for what arrives unasked: a measurement captured more
        than 0.3 s after `make_safe` tells the driver that the device drives on.

        Raises:
            UnsafeError: If what it watches by itself (temperature, a balance of air, an actuator that is not the
                robot's) is wrong.
        """

    def make_safe(self) -> bool:
        """Do what `safe_action` says, at once: the first byte on the wire is this request.

        Returns:
            Whether the device has confirmed it. Without an answer it returns False within half a second.
        """

    def check(self) -> Rest:
        """Ask a safe device for a sign of life and measure where all its actuators are.

        Called ten times a second until all are measured at rest, then once a second, and before each `begin`. It moves
        nothing. Tendons have to be slack `REST_SECONDS` after `make_safe`.
        """

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """Measure at rest what the sensors are off by, store and apply it; return what was found.

        The device is safe before and after. One without such offsets returns an empty text.

        Raises:
            SoftformError: If the robot is not steady or an offset is too large; those before stay.
        """

    def close(self) -> None:
        """Let go of the device; never raises. What was never confirmed safe is made safe by the guardian."""

    def health(self) -> DeviceHealth:
        """Return values for the diagnostics."""


class DeviceFamily(Protocol):
    """All devices of one kind: the object that the entry point names."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the node that the family's devices need, such as `port`."""

    @property
    def calibration_moves(self) -> bool:
        """Whether `Device.calibrate` moves the robot: a person is asked before that."""

    def adapters(self, values: Mapping[str, Any]) -> list[str]:
        """Names that the device's port is known by, the adapter's last: by them a fault stays latched; opens none."""

    def check(self, served: ServedActuators) -> None:
        """Look whether a device of the family can serve what the description says; opens nothing.

        Raises:
            SoftformError: If it cannot, with the field of the description that has to be changed.
        """

    def make(self, served: ServedActuators, values: Mapping[str, Any], interrupted: Callable[[], bool]) -> Device:
        """Return a device, not driven; to find out what is on the port, it may be opened until `interrupted` says so.

        Raises:
            SoftformError: If the device cannot be found out, or files that it needs cannot be read.
        """
