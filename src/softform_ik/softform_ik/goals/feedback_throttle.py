"""Keeps feedback at or below its rate; the first of each phase of a goal is always sent."""

import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Staged(Protocol):
    """Progress; where it has a `round`, each stage of each round is a phase."""

    @property
    def stage(self) -> str:
        """Stage of the goal."""


Progress = TypeVar("Progress", bound=Staged)


class FeedbackThrottle(Generic[Progress]):
    """Passes progress on, at most `rate` times a second within a phase.

    Args:
        publish: Sends one.
        rate: Highest rate, Hz.
        clock: Steady time, s.
    """

    def __init__(
        self, publish: Callable[[Progress], None], rate: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._publish, self._interval, self._clock = publish, 1.0 / rate, clock
        self._phase: tuple[str, int] | None = None
        self._sent = -float("inf")

    def __call__(self, progress: Progress) -> None:
        """Send `progress` unless one was sent a moment ago."""
        moment, phase = self._clock(), (progress.stage, getattr(progress, "round", 0))
        if phase == self._phase and moment - self._sent < self._interval:
            return
        self._phase, self._sent = phase, moment
        self._publish(progress)
