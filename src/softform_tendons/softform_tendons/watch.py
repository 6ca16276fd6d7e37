"""What pulls and load of tendon motors say: blocked, pulled too hard, jumped, or a tendon that carries nothing."""

import numpy as np

from softform_actuation.device import ServedActuators, UnsafeError
from softform_core.arrays import Array
from softform_tendons.settings import TendonSettings

BLOCKED_SECONDS = 0.5
"""How long a motor may stand away from its goal at the limit of its current, or a pulled tendon carry nothing."""

OVER_CURRENT_SECONDS = 0.2
"""How long a motor may take more than its limit; when it is read seldom, two readings in a row."""

_AT_LIMIT = 0.9  # of the current limit
_BEYOND_LIMIT = 1.2  # of the current limit: what is measured is not exact
_FASTEST = 2.0  # times the slew rate: what a motor may turn between two readings, beside the tolerance of following


class LoadWatch:
    """Watches pulls and currents of all motors."""

    def __init__(self, settings: TendonSettings, served: ServedActuators) -> None:
        self._settings, self._served = settings, served
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """All is well at this moment, s."""
        self._free_at = np.full(len(self._served.actuators), now)
        self._loaded_at = self._free_at.copy()
        self._over_since = np.full(len(self._served.actuators), np.inf)
        self._last: tuple[Array, float] | None = None
        self._last_goals = np.full(len(self._served.actuators), -np.inf)

    def look_at_currents(self, currents: Array, now: float) -> None:
        """Take absolute currents (k,) A of a moment, s, whether the motors are driven or not.

        Raises:
            UnsafeError: If a motor takes more than its limit.
        """
        is_over = currents > _BEYOND_LIMIT * self._settings.current_limit
        self._over_since = np.where(is_over, np.minimum(self._over_since, now), np.inf)
        for index in np.flatnonzero(now - self._over_since > OVER_CURRENT_SECONDS).tolist():
            raise UnsafeError(
                f"{self._name(index)} takes {currents[index]:.2f} A, its limit is {self._settings.current_limit:g} A.",
                "It does not limit its current: cut its supply, and replace it.",
            )

    def look(self, pulls: Array, goals: Array, currents: Array, now: float) -> None:
        """Take pulls and goals (k,) m and absolute currents (k,) A of a moment, s.

        Raises:
            UnsafeError: If a motor is blocked, pulls too hard, takes too much current or has jumped, or a tendon is
                torn.
        """
        self._look_for_jumps(pulls, now)
        self.look_at_currents(currents, now)
        stuck = (currents >= _AT_LIMIT * self._settings.current_limit) & (
            np.abs(goals - pulls) > self._served.tolerances.settle
        )
        self._free_at[~stuck] = now
        for index in np.flatnonzero(now - self._free_at > BLOCKED_SECONDS).tolist():
            raise UnsafeError(
                f"{self._name(index)} stands at {1000.0 * pulls[index]:.1f} mm at its current limit, "
                f"{1000.0 * abs(goals[index] - pulls[index]):.1f} mm from its goal.",
                "It is blocked, or its tendon is pulled too hard: look at motor and tendon, then reset.",
            )
        pays_out, self._last_goals = goals < self._last_goals, goals  # then friction carries part of the load
        if self._settings.taut_from is None:
            return
        slack = (pulls > self._settings.taut_from) & (currents < self._settings.taut_current) & ~pays_out
        self._loaded_at[~slack] = now
        for index in np.flatnonzero(now - self._loaded_at > BLOCKED_SECONDS).tolist():
            raise UnsafeError(
                f"{self._name(index)} is pulled by {1000.0 * pulls[index]:.1f} mm and carries nothing.",
                "Its tendon is slack, torn or off the drum: look at it, calibrate, then reset.",
            )

    def _look_for_jumps(self, pulls: Array, now: float) -> None:
        last, self._last = self._last, (pulls, now)
        if last is None:
            return
        moved = np.abs(pulls - last[0])
        far = moved > _FASTEST * self._served.slew_rate * (now - last[1]) + self._served.tolerances.follow
        for index in np.flatnonzero(far).tolist():
            raise UnsafeError(
                f"{self._name(index)} jumped by {1000.0 * moved[index]:.1f} mm in {1000.0 * (now - last[1]):.0f} ms.",
                "Its gear or drum slipped, or it lost its place: look at motor and tendon, calibrate, then reset.",
            )

    def _name(self, index: int) -> str:
        return f"{self._served.actuators[index]} (motor {self._served.channels[index]})"
