"""One operator among the pages; a page that moves the robot must beat, or the motion is ended."""

import threading
from collections.abc import Callable

from softform_console.message import Operator
from softform_console.protocol import DEAD_MAN_SECONDS
from softform_ros.standstill import since_boot

_ABSENT_SECONDS = 3.0
"""Silence of an operator that moves nothing after which somebody else may take the role, s."""


class OperatorRole:
    """Knows who the operator is, and whether the page lives; usable from any thread.

    Args:
        clock: Steady time that goes on while the computer sleeps, s: a page that slept, too, was silent.
    """

    def __init__(self, clock: Callable[[], float] = since_boot) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._operator, self._beat, self._silences = "", -float("inf"), 0

    def take(self, page: str) -> bool:
        """Make a page the operator, if there is none or it is one that is silent; returns whether it is now."""
        with self._lock:
            if self._operator in ("", page) or self._clock() - self._beat > _ABSENT_SECONDS:
                self._operator, self._beat = page, self._clock()
            return self._operator == page

    def leave(self, page: str) -> bool:
        """Take the role from a page that gives it up or is gone; returns whether it had it."""
        with self._lock:
            had = self._operator == page
            if had:
                self._operator = ""
            return had

    def beat(self, page: str) -> None:
        """Note that a page lives."""
        with self._lock:
            if page == self._operator:
                now = self._clock()
                self._silences += now - self._beat > DEAD_MAN_SECONDS
                self._beat = now

    def vacate(self) -> None:
        """Take the role from whoever has it."""
        with self._lock:
            self._operator = ""

    def is_operator(self, page: str) -> bool:
        """Return whether a page is the operator."""
        return bool(page) and self._operator == page

    def seen_by(self, page: str) -> Operator:
        """Return who the operator is, as a page is told."""
        return "none" if not self._operator else "you" if self._operator == page else "other"

    @property
    def silences(self) -> int:
        """How often an operator was heard again after too long a silence, if only of this process, frozen."""
        with self._lock:
            return self._silences

    @property
    def is_alive(self) -> bool:
        """Whether there is an operator whose page beats."""
        with self._lock:
            return bool(self._operator) and self._clock() - self._beat <= DEAD_MAN_SECONDS
