"""Counts and times of the driver's loop, for diagnostics."""

import collections

import numpy as np

_RATE_WINDOW_SECONDS = 1.0
_KEPT = 1000


class LoopStatistics:
    """Written by the driver's thread, read by anyone."""

    def __init__(self) -> None:
        self.measurements = 0
        self.rejected_commands = 0
        self.last_rejection = ""
        self.reconnections = 0
        self.measured_rate = 0.0
        self.command_age = float("nan")
        self._latencies: collections.deque[float] = collections.deque(maxlen=_KEPT)
        self._window_started = 0.0
        self._window_measurements = 0

    def restart_rate(self, now: float) -> None:
        """Begin to count the stream's rate anew."""
        self._window_started, self._window_measurements = now, 0

    def count_measurement(self, captured: float) -> None:
        """Take note of a measurement at its moment of capture, s."""
        self.measurements += 1
        self._window_measurements += 1
        window = captured - self._window_started
        if window >= _RATE_WINDOW_SECONDS:
            self.measured_rate = self._window_measurements / window
            self.restart_rate(captured)

    def count_sent_command(self, taken: float, sent: float) -> None:
        """Take note of when a command was taken over, and when its targets were on the wire, s."""
        self._latencies.append(sent - taken)

    def command_to_wire_p99(self) -> float:
        """99th percentile of the time from taking a command to the first targets made of it, s; 0 before the first."""
        latencies = self._latencies.copy()
        return float(np.percentile(latencies, 99)) if latencies else 0.0
