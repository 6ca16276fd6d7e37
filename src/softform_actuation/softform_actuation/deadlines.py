"""Monotonic deadlines of a loop, and how punctually it keeps them."""

import collections
from dataclasses import dataclass

import numpy as np

_KEPT = 1000


@dataclass(frozen=True)
class Punctuality:
    """Times of the loop's last 1000 ticks, seconds; `jitter` is the standard deviation of the period."""

    period_mean: float
    period_p99: float
    jitter: float


class Deadlines:
    """Deadlines every `period` s of a steady clock, from `now` on; a tick that is a whole period late is an overrun."""

    def __init__(self, period: float, now: float) -> None:
        self._period = period
        self.next = now
        self.ticks = 0
        self.overruns = 0
        self.worst_lateness = 0.0
        self._periods: collections.deque[float] = collections.deque(maxlen=_KEPT)
        self._last: float | None = None

    def is_due(self, now: float) -> bool:
        """Whether the next deadline has come; it then is this tick's, and the one after it the next.

        Missed deadlines are not made up for: their setpoints are out of date.
        """
        if now < self.next:
            return False
        lateness = now - self.next
        self.ticks += 1
        self.overruns += int(lateness // self._period)
        self.worst_lateness = max(self.worst_lateness, lateness)
        self.next += self._period * (1 + lateness // self._period)
        if self._last is not None:
            self._periods.append(now - self._last)
        self._last = now
        return True

    def resume(self, now: float) -> None:
        """Begin anew after something that took its time, and was not the loop's."""
        self.next = now
        self._last = None

    def punctuality(self) -> Punctuality:
        """How far apart the last ticks were; zeros before the second."""
        periods = np.array(self._periods.copy())
        if not len(periods):
            return Punctuality(0.0, 0.0, 0.0)
        return Punctuality(float(periods.mean()), float(np.percentile(periods, 99)), float(periods.std()))
