"""What the load of tendon motors says: blocked, pulled too hard, or a tendon that carries nothing."""

import numpy as np

from softform_actuation.device import ServedActuators, UnsafeError
from softform_core.arrays import Array
from softform_tendons.settings import TendonSettings

BLOCKED_SECONDS = 0.5
"""How long a motor may stand away from its goal at the limit of its current, or a pulled tendon carry nothing."""

_AT_LIMIT = 0.9  # of the current limit


class LoadWatch:
    """Watches pulls and currents of all motors."""

    def __init__(self, settings: TendonSettings, served: ServedActuators) -> None:
        self._settings, self._served = settings, served
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """All is well at this moment, s."""
        self._free_at = np.full(len(self._served.actuators), now)
        self._loaded_at = self._free_at.copy()

    def look(self, pulls: Array, goals: Array, currents: Array, now: float) -> None:
        """Take pulls and goals (k,) m and absolute currents (k,) A of a moment, s.

        Raises:
            UnsafeError: If a motor is blocked or pulls too hard, or a tendon is torn.
        """
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
        if self._settings.taut_from is None:
            return
        slack = (pulls > self._settings.taut_from) & (currents < self._settings.taut_current)
        self._loaded_at[~slack] = now
        for index in np.flatnonzero(now - self._loaded_at > BLOCKED_SECONDS).tolist():
            raise UnsafeError(
                f"{self._name(index)} is pulled by {1000.0 * pulls[index]:.1f} mm and carries nothing.",
                "Its tendon is slack, torn or off the drum: look at it, calibrate, then reset.",
            )

    def _name(self, index: int) -> str:
        return f"{self._served.actuators[index]} (motor {self._served.channels[index]})"
