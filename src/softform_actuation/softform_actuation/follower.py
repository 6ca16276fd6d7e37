"""Following with one device: its targets out, and every measurement looked at with suspicion."""

import numpy as np
from numpy.typing import NDArray

from softform_actuation.commands import SettleDetector
from softform_actuation.device import Device, Measurement, ServedActuators, UnsafeError
from softform_actuation.states import DriverSettings, Status
from softform_actuation.watches import FollowWatch, FrozenWatch, RangeWatch
from softform_core.arrays import Array


class Follower:
    """A device that drives, from `begin` until somebody makes it safe.

    Args:
        device: The device.
        served: Actuators that it serves.
        indices: (k,) of these among the robot's.
        settings: Settings of the watches.

    Attributes:
        device: The device.
        indices: Indices of its actuators.
        values: (k,) measured last.
        status: (k,) `Status` of these.
        captured: When, s; None before the first measurement.
    """

    def __init__(
        self, device: Device, served: ServedActuators, indices: NDArray[np.int64], settings: DriverSettings
    ) -> None:
        self.device, self.indices = device, indices
        self._settings = settings
        tolerances, count = served.tolerances, len(served.actuators)
        self._settle = SettleDetector(count, tolerances.settle, settings.settle_time)
        self._range = RangeWatch(served, tolerances.beyond_range)
        self._follow = FollowWatch(served, tolerances.follow, settings.follow_timeout)
        self._frozen = FrozenWatch(served, tolerances.follow)
        self._setpoint = served.safe
        self._last_measurement = 0.0
        self._safe, self._follows_within = served.safe, tolerances.follow
        self.values, self.status = served.safe, np.full(count, Status.SAFE, dtype=np.uint8)
        self.captured: float | None = None

    def begin(self, now: float) -> Array:
        """Start the device; returns the setpoint (k,) at which it begins.

        Raises:
            DeviceError: If it does not confirm; it is made safe then.
        """
        self._setpoint = self.device.begin()
        self._settle.reset()
        self._range.reset()
        self._follow.reset()
        self._frozen.reset()
        self._last_measurement, self.captured = now, None
        return self._setpoint

    @property
    def at_rest(self) -> NDArray[np.bool_]:
        """Which actuators were measured where they are safe since `begin`, (k,)."""
        is_measured = self.captured is not None
        return np.asarray(is_measured & (np.abs(self.values - self._safe) <= self._follows_within))

    def require_stream(self, now: float) -> None:
        """Look whether measurements still come.

        Raises:
            UnsafeError: If the last one is too old.
        """
        if now - self._last_measurement > self._settings.stream_timeout:
            raise UnsafeError(
                f"{self.device.identity} sent no measurements for {self._settings.stream_timeout:g} s.",
                "Check its power and cable, then reset.",
            )

    def take(self, measurement: Measurement, goal: Array | None) -> None:
        """Look at a measurement; `goal`, (n,) of the whole robot, is what is being followed, None at rest.

        Raises:
            UnsafeError: If something is wrong.
        """
        values, moment = measurement.values, measurement.captured
        self._last_measurement = self.captured = moment
        if len(values):  # a dead-man serves none
            self._range.check(values)
            self._follow.check(values, self._setpoint, moment)
            self._frozen.check(values, self._setpoint, moment)
        self.values = values
        self.status = np.full(len(values), Status.SAFE, dtype=np.uint8)
        if goal is not None and len(values):
            own = goal[self.indices]
            settled = self._settle.update(values - own, moment) & (self._setpoint == own)
            self.status[:] = np.where(settled & measurement.is_steady, Status.SETTLED, Status.MOVING)

    def note_setpoint(self, setpoint: Array) -> None:
        """Take the setpoint (n,) of the whole robot that the device is sent."""
        own = setpoint[self.indices]
        if not np.array_equal(own, self._setpoint):
            self._settle.reset()
        self._setpoint = own
