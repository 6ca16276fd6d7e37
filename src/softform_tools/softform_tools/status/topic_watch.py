"""How often a topic's messages come, and how old the last one is."""

import time
from collections import deque

WINDOW = 5.0
"""Seconds over which a rate is taken."""


class TopicWatch:
    """Arrivals of one topic; written by the executor's thread, read by another."""

    def __init__(self) -> None:
        self._arrivals: deque[float] = deque()
        self._sent_at: float | None = None

    def note(self, sent_at: float) -> None:
        """Take a message that was sent at `sent_at`, s since the epoch."""
        now = time.monotonic()
        self._arrivals.append(now)
        while self._arrivals[0] < now - WINDOW:
            self._arrivals.popleft()
        self._sent_at = sent_at

    def rate(self) -> float:
        """Messages a second over the last `WINDOW` seconds; 0 if fewer than two came."""
        recent = [moment for moment in tuple(self._arrivals) if moment >= time.monotonic() - WINDOW]
        if len(recent) < 2 or recent[-1] <= recent[0]:
            return 0.0
        return (len(recent) - 1) / (recent[-1] - recent[0])

    def age(self) -> float | None:
        """Seconds since the last message was sent; None if none came."""
        return None if self._sent_at is None else max(0.0, time.time() - self._sent_at)
