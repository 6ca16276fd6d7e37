"""Conversion of times from the clock of a capture system to this machine's."""

import time
from collections import deque

from softform_core.units import NANOSECONDS_PER_SECOND

_OVERTAKEN_SECONDS = 1.0  # no packet waits longer in a network that is worth measuring by


def epoch_nanoseconds(steady: float) -> int:
    """Return nanoseconds since the epoch at a moment of the steady clock, s, as the wall clock runs now."""
    return time.time_ns() - round((time.monotonic() - steady) * NANOSECONDS_PER_SECOND)


class DeviceClock:
    """Follows a device whose packets carry its own time and arrive after an unknown, changing delay.

    The packet that took least time within the window tells the difference between the clocks; the others' delay is
    thereby measured. What even the fastest packet takes remains: a fraction of a millisecond in a lab's network.

    Args:
        window: s; clocks that drift apart by 1e-5 are off by no more than 1e-5 of it.
    """

    def __init__(self, window: float = 10.0) -> None:
        self._window = window
        self._offsets: deque[tuple[float, float]] = deque()  # arrival and offset; the offsets rise: the first is least
        self._last = -float("inf")

    def host_time(self, device_time: float, arrival: float) -> float:
        """Return the moment of this machine's clock at which the device's shows `device_time`.

        Args:
            device_time: s, of a packet; if it goes back by more than a second, the device was started anew, and nothing
                before counts; by less, the packet was overtaken by a later one.
            arrival: Arrival time of this packet on the steady clock, s.
        """
        if device_time < self._last - _OVERTAKEN_SECONDS:
            self._offsets.clear()
            self._last = device_time
        self._last = max(self._last, device_time)
        offset = arrival - device_time
        while self._offsets and self._offsets[-1][1] >= offset:
            self._offsets.pop()
        self._offsets.append((arrival, offset))
        while self._offsets[0][0] < arrival - self._window:
            self._offsets.popleft()
        return device_time + self._offsets[0][1]
