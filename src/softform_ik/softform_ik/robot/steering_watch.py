"""Notices that who steers the robot has vanished: its beats (`SteeringBeat`) do not come any more."""

import time
from collections.abc import Callable

from softform_core.errors import SoftformError

LONGEST_SECONDS = 10.0
"""Longest silence that a beat may announce, s."""

LOOK_SECONDS = 0.1
"""Time between two looks, s."""

_LOOKS = 2
"""Looks in a row that must find silence: after a stall of the node timers are served before the beats that waited."""


class SteeringWatch:
    """Lets go of the robot once the beats of who steers it are overdue; used by one thread.

    Args:
        let_go: Holds nothing any more, for a reason; returns whether something was held.
        is_moved_by_goal: Returns whether a goal has the robot.
        is_held_by_goal: Returns whether what is held is of that goal, and not what was held before it.
        clock: Steady time, s.
    """

    def __init__(
        self,
        let_go: Callable[[str], bool],
        is_moved_by_goal: Callable[[], bool],
        is_held_by_goal: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._let_go, self._clock = let_go, clock
        self._is_moved_by_goal, self._is_held_by_goal = is_moved_by_goal, is_held_by_goal
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
        """Let go if beats are overdue; returns why, or nothing. To be called every `LOOK_SECONDS`.

        A goal of somebody else is left alone. Once it has moved the robot the watch ends, for what is held is its own;
        one that has not, as it only solves or ends before, leaves what who steered has left, and is waited for.
        """
        if not self._dead_man or self._clock() - self._heard_at <= self._dead_man:
            return ""
        self._silent_looks += 1
        if self._silent_looks < _LOOKS:
            return ""
        if self._is_moved_by_goal() and not self._of_goal:
            if self._is_held_by_goal():
                self._dead_man = 0.0
            return ""
        reason = f"Who steered the robot has been silent for {self._dead_man:g} s (dead_man): it has vanished."
        self._dead_man = 0.0
        return reason if self._let_go(reason) else ""
