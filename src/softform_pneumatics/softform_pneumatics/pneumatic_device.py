"""A pneumatic board as a device of the driver: offsets, trim, the test of its channels, and the watch over its air."""

from collections.abc import Callable, Mapping

import numpy as np

from softform_actuation.device import (
    DeviceHealth,
    Measurement,
    Rest,
    SafeAction,
    ServedActuators,
    UnsafeError,
    never,
)
from softform_core.arrays import Array
from softform_pneumatics.balance import Air, BalanceWatch
from softform_pneumatics.boards.interface import PressureBoard
from softform_pneumatics.offsets import OffsetStore, measure_offsets
from softform_pneumatics.probe import probe_pressure, probe_regulation, require_independent
from softform_pneumatics.trim import SteadyErrorTrim
from softform_pneumatics.wiring import Wiring

_IN_A_ROW = 2
"""One reading alone may be a corrupt line that looks like a good one: OpenPneu's wire has no checksum."""


class UnusedWatch:
    """Channels of the board that the robot does not use: no pressure beyond `margin` (Pa) belongs there."""

    def __init__(self, margin: float) -> None:
        self.margin = margin
        self._in_a_row = 0

    def reset(self) -> None:
        """Forget what was measured."""
        self._in_a_row = 0

    def check(self, pressures: Mapping[int, float]) -> None:
        """Take Pa by channel, NaN where the board does not measure.

        Raises:
            UnsafeError: If two measurements in a row lie outside.
        """
        outside = {channel: value for channel, value in pressures.items() if abs(value) > self.margin}
        self._in_a_row = self._in_a_row + 1 if outside else 0
        if self._in_a_row >= _IN_A_ROW:
            channel, value = next(iter(outside.items()))
            raise UnsafeError(
                f"Channel {channel}, which the robot does not use, is at {value:.0f} Pa.",
                "Check its pump, valve and sensor, and what its tube is on, then reset.",
            )


_VENTED_WITHIN_SECONDS = 5.0
_MEASURED_AGAIN_SECONDS = 5.0
"""A vented chamber does not fill by itself, but its valve may leak."""

_RISES_BY = 0.2
"""Share of the tolerance."""


class PneumaticDevice:
    """A `Device` over a `PressureBoard`: offsets, trim, the test of its channels, and the watch over its air.

    Args:
        board: The board.
        served: The chambers.
        offsets: Store of the sensors' offsets; none by default.
        air: The identified plant, to find leaks and blockages by; none by default.
        offset_limit: Pa; a sensor further off at rest is rejected.
        response_timeout: Time over which the balance of air is taken, s.
    """

    safe_action = SafeAction.VENT

    def __init__(
        self,
        board: PressureBoard,
        served: ServedActuators,
        offsets: OffsetStore | None = None,
        air: Air | None = None,
        offset_limit: float = 500.0,
        response_timeout: float = 1.5,
    ) -> None:
        self._board, self._served, self.clock = board, served, board.clock
        self._offsets = offsets or OffsetStore(None, served, "", offset_limit)
        self._wiring = Wiring(served, board)
        self._trim = SteadyErrorTrim(served.actuator_min, served.actuator_max)
        self._unused = UnusedWatch(float(served.tolerances.beyond_range.min()) + offset_limit)
        self._balance: BalanceWatch | None = None
        if air is not None and board.vent_threshold is not None:
            follow = served.tolerances.follow
            self._balance = BalanceWatch(served.actuators, air, board.vent_threshold, follow, response_timeout)
        self._regulates = False
        self._vented_since = self._measured_at = 0.0
        self._rest: Rest | None = None
        self._driven: Array | None = None  # what was measured last while it was driven
        self._asked = served.safe

    @property
    def is_holding(self) -> bool:
        """Never: air that is held is not safe."""
        return False

    @property
    def identity(self) -> str:
        """Which board, on which port."""
        return self._board.identity

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """Open the board, which vents it, and look whether its channels fit the robot.

        Raises:
            SoftformError: If the port cannot be opened or holds no such board, or the robot does not fit it.
        """
        self._board.open(interrupted)
        self._vented_since = self.clock.now()
        try:
            self._wiring.require_ranges()
            self._wiring.offsets = self._offsets.read()
        except BaseException:
            self._board.close()
            raise

    def test(self, interrupted: Callable[[], bool]) -> None:
        """Find out by a little air whether the board regulates all chambers one by one; it is vented before and after.

        Raises:
            DeviceError: If it does not, or is interrupted.
        """
        channels, pressure = self._wiring.channels.tolist(), probe_pressure(self._served)
        require_independent(self._served, probe_regulation(self._board, channels, pressure, interrupted))

    def begin(self) -> Array:
        """Regulate and stream, with all chambers at their safe pressure.

        Raises:
            DeviceError: If the board does not confirm; it is vented then.
        """
        safe, self._driven = self._served.safe, None
        self._asked = safe
        self._board.start(self._wiring.targets(safe))
        self._unused.reset()
        self._trim.reset()
        if self._balance is not None:
            self._balance.reset()
        self._regulates = True
        return safe

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """Send the targets (k,) Pa, with what the board needs on top of them to get there.

        Raises:
            DeviceError: If the board does not take them.
        """
        now, self._asked = self.clock.now(), targets
        trimmed = self._trim.targets(targets, now)
        is_sent = self._board.set_targets(self._wiring.targets(trimmed), interrupted)
        if self._balance is not None:
            self._balance.note_target(trimmed, now, is_sent)
        return is_sent

    def read(self, timeout: float) -> list[Measurement]:
        """Return the chambers' pressures that arrived; see `Device`.

        Raises:
            DeviceLostError: If the connection is gone.
            UnsafeError: If a channel that is not the robot's has pressure, or the air of a chamber is wrong.
        """
        found = []
        for measurement in self._board.read(timeout):
            pressures, captured = self._wiring.pressures(measurement), measurement.captured
            if self._regulates:
                self._unused.check(self._wiring.unused(measurement))
                if self._balance is not None:
                    self._balance.check(pressures, captured)
                self._trim.take(pressures, captured)
                self._driven = pressures
            found.append(Measurement(pressures, captured, self._trim.is_done))
        return found

    def make_safe(self) -> bool:
        """Vent all channels; returns whether the board has confirmed it.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        self._regulates = False
        self._rest = None
        confirmed = self._board.vent()
        self._vented_since = self.clock.now()
        return confirmed

    def check(self) -> Rest:
        """As `Device.check`: all chambers are measured until they are empty, and from time to time from then on.

        Raises:
            DeviceError: If the board does not answer, or does not tell all pressures.
        """
        now = self.clock.now()
        last, since = self._rest, now - self._measured_at
        is_final = last is not None and (bool(last.complaint) or bool(last.at_rest.all()))
        if last is not None and is_final and since <= _MEASURED_AGAIN_SECONDS:
            self._board.check_alive()
            return last
        self._rest, self._measured_at = self._measured_rest(last), now
        return self._rest

    def _measured_rest(self, last: Rest | None) -> Rest:
        readings, served = self._board.measure(), self._served
        values = np.array([readings.get(int(channel), np.nan) for channel in self._wiring.channels])
        values -= self._wiring.offsets
        if self._driven is not None:  # a sensor that still shows what it showed under pressure shows nothing
            was_asked = np.abs(self._asked - served.safe) > served.tolerances.follow
            values = np.where(was_asked & (values == self._driven), np.nan, values)
        at_rest = np.abs(values - served.safe) <= served.tolerances.follow  # False for what is not known
        full = [
            f"{chamber} is still at {value:.0f} Pa" if np.isfinite(value) else f"the pressure of {chamber} is not known"
            for chamber, value, rests in zip(served.actuators, values, at_rest, strict=True)
            if not rests
        ]
        others = readings.keys() - set(self._wiring.channels.tolist())
        full += [
            f"channel {channel}, which the robot does not use, is at {readings[channel]:.0f} Pa"
            for channel in sorted(others)
            if abs(readings[channel]) > self._unused.margin
        ]
        # A board that pumps while it streams must not be made to stream again and again.
        rises = last is not None and bool(
            (np.abs(values) - np.abs(last.values) > _RISES_BY * served.tolerances.follow).any()
        )
        if not full or not (rises or self.clock.now() - self._vented_since > _VENTED_WITHIN_SECONDS):
            return Rest(values, at_rest)
        return Rest(values, at_rest, f"{', '.join(full)}: cut the supply and open its tube")

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """Measure the sensors' offsets, store and apply them.

        Raises:
            SoftformError: If the readings are not steady, or an offset is too large; the ones before stay.
        """
        found = measure_offsets(self._board, lambda m: self._wiring.pressures(m) + self._wiring.offsets, interrupted)
        self._offsets.write(self._offsets.checked(found))
        self._wiring.offsets = found
        listed = ", ".join(f"{c} {o:.0f}" for c, o in zip(self._served.actuators, found, strict=True))
        return f"Stored and applied, Pa: {listed}."

    def close(self) -> None:
        """As `Device.close`; the guardian vents the board if that was never confirmed."""
        self._regulates = False
        self._board.close()

    def health(self) -> DeviceHealth:
        """What went wrong on the wire, offsets and leaks."""
        wire, leaks = self._board.counters, {} if self._balance is None else self._balance.leaks
        listed = ", ".join(f"{chamber}: {seconds:.1f} s" for chamber, seconds in leaks.items())
        values = {
            "bytes received": wire.bytes_received,
            "bytes dropped": wire.bytes_dropped,
            "corrupt lines": wire.corrupt,
            "rejected requests": wire.rejected_requests,
            "unanswered requests": wire.unanswered_requests,
            "offsets (Pa)": ", ".join(f"{offset:.0f}" for offset in self._wiring.offsets),
            "leaks": listed,
        }
        return DeviceHealth(values, f"leaks, though the pressure is held: {listed}" if leaks else "")
