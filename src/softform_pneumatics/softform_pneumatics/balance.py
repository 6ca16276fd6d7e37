"""Leaks and blockages, from the balance of air between one reading and the next.

A reading and its target tell what the board's pump and valve do until the next reading (`plant.expected_flows`). Summed
over a window, what the pressure changed must be what was pumped in less what was let out. What is missing leaks, or
never came; what is too much did not get out. A kinked tube leaves so little volume at the sensor that every change is
several times as large as expected.
"""

import collections
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_pneumatics.plant import Plant, expected_flows
from softform_pneumatics.states import UnsafeError

_CONTROL_SECONDS = 1.0 / 30.0  # the firmware's tick: one reading, one decision
_LONGEST_INTERVAL = 0.06  # s; beyond it a reading was lost, and nobody knows what happened in between
_LARGE_SHARE = 0.6  # of the flows that are expected; a chamber of 2/3 or 3/2 the volume stays below 0.45
_MANY_TIMES = 3.0  # a sound chamber of 2/3 the volume stays below 1.7
_TIMELY_SHARE = 0.7  # of the window's readings must be there for a verdict


@dataclass(frozen=True)
class Air:
    """What is known of the air's way.

    Args:
        plant: As identified.
        volume: Of the chambers with their tubes, in those of the recordings.
    """

    plant: Plant
    volume: float = 1.0


@dataclass(frozen=True)
class _Interval:
    moment: float
    change: NDArray[np.float64]
    gained: NDArray[np.float64]
    lost: NDArray[np.float64]
    pressure: NDArray[np.float64]


class BalanceWatch:
    """Watches the air of every chamber.

    Attributes:
        leaks: Chambers that leak though their pumps hold the pressure: name -> time constant of the leak, s.
    """

    def __init__(
        self, chambers: Sequence[str], air: Air, vent_threshold: float, tolerance: float, seconds: float
    ) -> None:
        """Watch these chambers.

        Args:
            chambers: Their names.
            air: What is identified.
            vent_threshold: Pa above its target at which the board vents a channel.
            tolerance: Pa; a chamber further than this from its setpoint does not follow, and flows below this a second
                are not judged.
            seconds: Length of the window.
        """
        self._chambers = list(chambers)
        self._air = air
        self._vent_threshold = vent_threshold
        self._tolerance = tolerance
        self._seconds = seconds
        self._window: collections.deque[_Interval] = collections.deque()
        self._last: tuple[float, NDArray[np.float64], NDArray[np.float64]] | None = None
        self.leaks: dict[str, float] = {}

    def reset(self) -> None:
        """Forget what was measured."""
        self._window.clear()
        self._last = None
        self.leaks = {}

    def check(self, pressures: NDArray[np.float64], setpoint: NDArray[np.float64], moment: float) -> None:
        """Take pressures (k,) Pa measured at `moment` (s), and the setpoint (k,) Pa that the board has.

        Raises:
            UnsafeError: If a chamber does not fill, does not empty, or is cut off from its sensor.
        """
        last, self._last = self._last, (moment, pressures, setpoint)
        if last is None or moment - last[0] > _LONGEST_INTERVAL:
            return
        gained, lost = expected_flows(self._air.plant, self._air.volume, last[2], last[1], self._vent_threshold)
        side = np.where(last[2] >= 0.0, 1.0, -1.0)
        change = side * (pressures - last[1])
        self._window.append(
            _Interval(moment, change, _CONTROL_SECONDS * gained, _CONTROL_SECONDS * lost, side * pressures)
        )
        while moment - self._window[0].moment > self._seconds:
            self._window.popleft()
        if len(self._window) * _CONTROL_SECONDS >= _TIMELY_SHARE * self._seconds:
            self._judge(side * (setpoint - pressures))

    def _judge(self, missing: NDArray[np.float64]) -> None:
        changes = np.array([interval.change for interval in self._window])
        gained = np.array([interval.gained for interval in self._window])
        lost = np.array([interval.lost for interval in self._window])
        seconds = len(self._window) * _CONTROL_SECONDS
        residual = (changes - gained + lost).sum(axis=0) / seconds
        flows = (gained + lost).sum(axis=0) / seconds
        large = (np.abs(residual) > _LARGE_SHARE * flows) & (np.abs(residual) > self._tolerance)
        movement = np.abs(changes).sum(axis=0) / seconds
        expected = np.maximum(np.abs(gained - lost).sum(axis=0) / seconds, 2.0 * self._tolerance)
        self._refuse(
            large & (residual < 0.0) & (missing > self._tolerance),
            "does not fill as its pump should fill it",
            "Check for a blocked tube, a stuck valve, a dead pump or a torn chamber",
        )
        self._refuse(
            large & (residual > 0.0) & (-missing > self._tolerance),
            "does not empty as its valve should empty it",
            "Cut the supply if it stays inflated; check for a blocked tube or a stuck valve",
        )
        self._refuse(
            movement > _MANY_TIMES * expected,
            "reacts several times as fast as it should: its sensor seems to be cut off from it",
            "Check for a kinked tube; if the chamber is that small, set 'chamber_volume'",
        )
        self._note_leaks(large & (residual < 0.0), residual)

    def _refuse(self, which: NDArray[np.bool_], what: str, next_step: str) -> None:
        if which.any():
            names = ", ".join(self._chambers[index] for index in np.flatnonzero(which))
            raise UnsafeError(f"Chamber {names} {what}.", f"{next_step}, then reset.")

    def _note_leaks(self, which: NDArray[np.bool_], residual: NDArray[np.float64]) -> None:
        mean = np.mean([interval.pressure for interval in self._window], axis=0)
        for index in np.flatnonzero(which & (mean > self._tolerance)):
            self.leaks[self._chambers[index]] = float(mean[index] / -residual[index])
