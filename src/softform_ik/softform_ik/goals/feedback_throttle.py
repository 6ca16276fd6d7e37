"""Keeps feedback at or below its rate; the first word of each phase of a goal is never held back."""

import time
from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Generic, TypeVar

Progress = TypeVar("Progress")


class FeedbackThrottle(Generic[Progress]):
    """Passes progress on, at most `rate` times a second within a phase.

    Args:
        publish: Sends one.
        rate: Hz.
        clock: Steady time, s.
        phase_of: What tells the phases apart; by default the stage and the round.
    """

    def __init__(
        self,
        publish: Callable[[Progress], None],
        rate: float,
        clock: Callable[[], float] = time.monotonic,
        phase_of: Callable[[Progress], Hashable] = attrgetter("stage", "round"),
    ) -> None:
        self._publish, self._interval, self._clock = publish, 1.0 / rate, clock
        self._phase_of = phase_of
        self._phase: Hashable = None
        self._sent = -float("inf")

    def __call__(self, progress: Progress) -> None:
        """Send `progress` unless one was sent a moment ago."""
        moment, phase = self._clock(), self._phase_of(progress)
        if phase == self._phase and moment - self._sent < self._interval:
            return
        self._phase, self._sent = phase, moment
        self._publish(progress)
