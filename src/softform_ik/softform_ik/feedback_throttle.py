"""Keeps feedback at or below its rate; the first word of each stage of each round is never held back."""

import time
from collections.abc import Callable

from softform_ik.course import Progress


class FeedbackThrottle:
    """Passes progress on, at most `rate` times a second within a stage.

    Args:
        publish: Sends one.
        rate: Hz.
        clock: Steady time, s.
    """

    def __init__(
        self, publish: Callable[[Progress], None], rate: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing was sent yet."""
        self._publish, self._interval, self._clock = publish, 1.0 / rate, clock
        self._stage, self._sent = ("", 0), -float("inf")

    def __call__(self, progress: Progress) -> None:
        """Send `progress` unless one was sent a moment ago."""
        moment, stage = self._clock(), (progress.stage, progress.round)
        if stage == self._stage and moment - self._sent < self._interval:
            return
        self._stage, self._sent = stage, moment
        self._publish(progress)
