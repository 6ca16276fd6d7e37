"""Detect how long a process stood still: stopped, starved, or on a computer that slept."""

import time
from collections.abc import Callable

STANDSTILL_SECONDS = 2.0
"""Longest standstill after which what was asked for before is still begun, s."""


def since_boot() -> float:
    """Return the steady time that goes on while the computer sleeps, s."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Standstill:
    """Standstill between two looks, of which there is at least one each second while the process runs.

    Args:
        clock: Steady time that goes on while the computer sleeps, s.
        longest: Longest time that does not count as a standstill, s.
    """

    def __init__(self, clock: Callable[[], float] = since_boot, longest: float = STANDSTILL_SECONDS) -> None:
        self._clock, self._longest, self._last = clock, longest, clock()

    def seconds(self) -> float:
        """Return how long it was since the last look, s; 0 if no longer than `longest`."""
        now = self._clock()
        passed, self._last = now - self._last, now
        return passed if passed > self._longest else 0.0
