"""Leaks and blockages, from the balance of air between one reading and the next.

A reading and its target tell what the board's pump and valve do until the next reading (`expected_flows`): what
OpenPneu's firmware does with a reading is known from the same recordings as the plant. Summed over a window, what the
pressure changed must be what was pumped in less what was let out. What is missing leaks, or never came; what is too
much did not get out. A kinked tube leaves so little volume at the sensor that every change is several times as large as
expected.

Which target the board had at a reading is not known to the tenth of a second. So both the lowest and the highest of
that time are reckoned with, and only what neither explains counts.
"""

import collections
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_actuation.device import UnsafeError
from softform_core.arrays import Array
from softform_core.plant import Plant
from softform_core.units import PA_PER_KPA

# Of the recordings: command over error, of a full scale of 4090 counts, in three ranges of the error.
_DUTY_A_PASCAL = 1440.0 / 4090.0 / PA_PER_KPA
_FINE_ERROR, _FINE_FACTOR = 500.0, 3.0
_MIDDLE_ERROR, _MIDDLE_FACTOR = 1000.0, 1.6


def expected_flows(
    plant: Plant,
    volumes: Array | float,
    targets: Array,
    readings: Array,
    vent_threshold: float,
) -> tuple[Array, Array]:
    """What the firmware's answer to a reading does to the pressure.

    Args:
        plant: Identified plant.
        volumes: Volume of each chamber, (k,) or one for all, relative to that of the recordings.
        targets: (k,) Pa.
        readings: (k,) Pa.
        vent_threshold: Pa beyond the target at which the valve opens.

    Returns:
        How fast the pump drives the pressure away from ambient, and how fast leaks and valve let it back, (k,) Pa/s
        each, both counted as positive.
    """
    side = np.where(targets >= 0.0, 1.0, -1.0)
    missing, pressure = side * (targets - readings), side * readings
    factor = np.where(missing < _FINE_ERROR, _FINE_FACTOR, np.where(missing < _MIDDLE_ERROR, _MIDDLE_FACTOR, 1.0))
    duty = np.where(missing > 0.0, np.minimum(1.0, factor * _DUTY_A_PASCAL * missing), 0.0)
    rate, stall, dead_duty = (
        np.where(side > 0.0, getattr(plant.inflation, name), getattr(plant.deflation, name))
        for name in ("rate", "stall", "dead_duty")
    )
    turning = np.maximum(0.0, duty - dead_duty) / (1.0 - dead_duty)
    pumped = rate * PA_PER_KPA * turning * (1.0 - pressure / (stall * PA_PER_KPA)) / volumes
    held = np.where(missing <= 0.0, 1.0 / plant.hold_time, 0.0)
    opened = np.where(-missing > vent_threshold, 1.0 / plant.vent_time, held)
    return pumped, np.maximum(pressure, 0.0) * (1.0 / plant.leak_time + opened) / volumes


_CONTROL_SECONDS = 1.0 / 30.0  # the firmware's tick: one reading, one decision
_LONGEST_INTERVAL = 0.06  # s; beyond it a reading was lost, and what happened in between is unknown
_TARGET_SECONDS = 0.3  # a target that was sent longer ago than this is what the board has
_LARGE_SHARE = 0.6  # of the flows that are expected; a chamber of 2/3 or 3/2 the volume stays below 0.45
_MANY_TIMES = 3.0  # a sound chamber of 2/3 the volume stays below 1.7
_FASTEST_HELD_LEAK = 0.5
"""s; air that leaves faster than that does not leak: it may be in the chamber, at a pressure no sensor shows."""
_TIMELY_SHARE = 0.7  # of the window's readings must be there for a verdict


@dataclass(frozen=True)
class Air:
    """What is known of the air's way.

    Args:
        plant: Identified plant.
        volumes: Volume of each chamber with its tube, (k,) or one for all, relative to that of the recordings.
    """

    plant: Plant
    volumes: Array | float = 1.0


_CHANGE, _LEAST, _MOST, _FLOW, _MOVEMENT, _EXPECTED, _PRESSURE = range(7)
"""Rows of what is summed, of each interval between two readings, (7, k) Pa away from ambient: change, what the two
extreme targets explain, flows, amounts of change and of what is expected, and the pressure at its end."""


class BalanceWatch:
    """Watches the air of every chamber.

    Args:
        chambers: Names of the chambers.
        air: Identified plant and volumes.
        vent_threshold: Pa above its target at which the board vents a channel.
        tolerance: Pa, one for all or (k,); a chamber further than this from its setpoint does not follow, and flows
            below this a second are not judged.
        seconds: Length of the window.

    Attributes:
        leaks: Chambers that leak though their pumps hold the pressure: name -> time constant of the leak, s.
    """

    def __init__(
        self, chambers: Sequence[str], air: Air, vent_threshold: float, tolerance: Array | float, seconds: float
    ) -> None:
        self._chambers = list(chambers)
        self._air = air
        self._vent_threshold = vent_threshold
        self._tolerance = tolerance
        self._seconds = seconds
        self._window: collections.deque[tuple[float, Array]] = collections.deque()
        self._sums = np.zeros((7, len(self._chambers)))
        self._last: tuple[float, Array] | None = None
        self._targets: collections.deque[tuple[float, Array, bool]] = collections.deque(maxlen=200)
        self.leaks: dict[str, float] = {}

    def reset(self) -> None:
        """Forget what was measured."""
        self._window.clear()
        self._sums[:] = 0.0
        self._targets.clear()
        self._last = None
        self.leaks = {}

    def note_target(self, target: Array, moment: float, is_sent: bool = True) -> None:
        """Take the target (k,) Pa of `moment` (s), and whether all of it was sent to the board."""
        self._targets.append((moment, target, is_sent))

    def check(self, pressures: Array, moment: float) -> None:
        """Take pressures (k,) Pa measured at `moment` (s).

        Raises:
            UnsafeError: If a chamber does not fill, does not empty, or is cut off from its sensor.
        """
        last, self._last = self._last, (moment, pressures)
        settled = [
            i for i, (sent_at, _, is_sent) in enumerate(self._targets) if is_sent and sent_at < moment - _TARGET_SECONDS
        ]
        for _ in range(settled[-1] if settled else 0):
            self._targets.popleft()
        if last is None or not self._targets or moment - last[0] > _LONGEST_INTERVAL:
            return
        targets = np.array([target for _, target, _ in self._targets])
        interval = self._interval(last[1], pressures, targets)
        self._window.append((moment, interval))
        self._sums += interval
        while moment - self._window[0][0] > self._seconds:
            self._sums -= self._window.popleft()[1]
        if len(self._window) * _CONTROL_SECONDS >= _TIMELY_SHARE * self._seconds:
            self._judge(np.where(targets[-1] >= 0.0, 1.0, -1.0) * (targets - pressures))

    def _interval(self, before: Array, after: Array, targets: Array) -> Array:
        side = np.where(targets[-1] >= 0.0, 1.0, -1.0)
        nets, flow = [], np.zeros(len(before))
        for extreme in (targets.min(axis=0), targets.max(axis=0)):
            gained, lost = expected_flows(self._air.plant, self._air.volumes, extreme, before, self._vent_threshold)
            nets.append(_CONTROL_SECONDS * np.where(extreme >= 0.0, side, -side) * (gained - lost))
            flow = np.maximum(flow, _CONTROL_SECONDS * (gained + lost))
        change = side * (after - before)
        expected = np.maximum(np.abs(nets[0]), np.abs(nets[1]))
        return np.array([change, np.minimum(*nets), np.maximum(*nets), flow, np.abs(change), expected, side * after])

    def _judge(self, missing: Array) -> None:
        # By whichever of the targets that it may have.
        seconds = len(self._window) * _CONTROL_SECONDS
        rates = self._sums / seconds
        residual = rates[_CHANGE] - np.clip(rates[_CHANGE], rates[_LEAST], rates[_MOST])
        large = (np.abs(residual) > _LARGE_SHARE * rates[_FLOW]) & (np.abs(residual) > self._tolerance)
        expected = np.maximum(rates[_EXPECTED], 2.0 * self._tolerance)
        self._refuse(
            large & (residual < 0.0) & (missing.min(axis=0) > self._tolerance),
            "does not fill as its pump should fill it",
            "Check for a blocked tube, a stuck valve, a dead pump or a torn chamber",
        )
        self._refuse(
            large & (residual > 0.0) & (missing.max(axis=0) < -self._tolerance),
            "does not empty as its valve should empty it",
            "Cut the supply if it stays inflated; check for a blocked tube or a stuck valve",
        )
        self._refuse(
            rates[_MOVEMENT] > _MANY_TIMES * expected,
            "reacts several times as fast as it should: its sensor seems to be cut off from it",
            "Check for a kinked tube; if the chamber is that small, set 'chamber_volumes'",
        )
        leaks = large & (residual < 0.0)
        mean = self._sums[_PRESSURE] / len(self._window)
        self._refuse(
            leaks & (mean < -_FASTEST_HELD_LEAK * residual),
            "is pumped far more than holding that pressure takes, and its sensor does not show it",
            "Check for a sensor that stands still, a stuck valve, a tube that is off, or a torn chamber",
        )
        self._note_leaks(leaks, residual)

    def _refuse(self, which: NDArray[np.bool_], what: str, next_step: str) -> None:
        if which.any():
            names = ", ".join(self._chambers[index] for index in np.flatnonzero(which))
            raise UnsafeError(f"Chamber {names} {what}.", f"{next_step}, then reset.")

    def _note_leaks(self, which: NDArray[np.bool_], residual: Array) -> None:
        mean = self._sums[_PRESSURE] / len(self._window)
        for index in np.flatnonzero(which & (mean > self._tolerance)):
            self.leaks[self._chambers[index]] = float(mean[index] / -residual[index])
