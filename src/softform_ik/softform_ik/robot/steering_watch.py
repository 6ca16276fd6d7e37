"""Notices that who steers the robot has vanished: its beats (`SteeringBeat`) do not come any more."""

import time
from collections.abc import Callable

from softform_core.errors import SoftformError

LONGEST_SECONDS = 10.0
"""Longest silence that a beat may announce, s."""

_LOOKS = 2
"""Looks in a row that must find silence: after a stall of the node timers are served before the beats that waited."""


class SteeringWatch:
    """Lets go of the robot once the beats of who steers it are overdue; used by one thread.

    Args:
        let_go: Holds nothing any more, for a reason; returns whether something was held.
        is_moved_by_goal: Returns whether a goal moves the robot.
        clock: Steady time, s.
    """

    def __init__(
        self,
        let_go: Callable[[str], bool],
        is_moved_by_goal: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._let_go, self._is_moved_by_goal, self._clock = let_go, is_moved_by_goal, clock
        self._dead_man, self._of_goal, self._heard_at, self._silent_looks = 0.0, False, clock(), 0

    def note(self, dead_man: float, of_goal: bool) -> None:
        """Take a beat: the next one is due within `dead_man` s; 0 ends the watch.

        Raises:
            SoftformError: If that is no time; the beat before counts on.
        """
        if not 0.0 <= dead_man <= LONGEST_SECONDS:
            raise SoftformError(f"dead_man of a beat is {dead_man} s.", f"Give 0 to {LONGEST_SECONDS:g} s.")
        self._dead_man, self._of_goal, self._heard_at, self._silent_looks = dead_man, of_goal, self._clock(), 0

    def look(self) -> str:
        """Let go if beats are overdue; returns why, or nothing. To be called several times within each `dead_man`.

        A goal of somebody else is left alone, and the watch ends.
        """
        if not self._dead_man or self._clock() - self._heard_at <= self._dead_man:
            return ""
        self._silent_looks += 1
        if self._silent_looks < _LOOKS:
            return ""
        reason = f"Who steered the robot has been silent for {self._dead_man:g} s (dead_man): it has vanished."
        self._dead_man = 0.0
        if self._is_moved_by_goal() and not self._of_goal:
            return ""
        return reason if self._let_go(reason) else ""
