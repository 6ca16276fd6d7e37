"""How long a process stood still: stopped, starved, or on a computer that slept."""

import time
from collections.abc import Callable

STANDSTILL_SECONDS = 2.0
"""After a longer one nothing is begun that was asked for before."""


def since_boot() -> float:
    """Steady time that goes on while the computer sleeps, s."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Standstill:
    """Between two looks, of which there is at least one each second while the process runs.

    Args:
        clock: Steady time that goes on while the computer sleeps, s.
    """

    def __init__(self, clock: Callable[[], float] = since_boot) -> None:
        self._clock, self._last = clock, clock()

    def seconds(self) -> float:
        """Return how long it was since the last look, s; 0 if no longer than `STANDSTILL_SECONDS`."""
        now = self._clock()
        passed, self._last = now - self._last, now
        return passed if passed > STANDSTILL_SECONDS else 0.0
