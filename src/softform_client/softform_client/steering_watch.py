"""Notices that who steers the robot has vanished: its beats (`SteeringBeat`) do not come any more."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from softform_client.steering_beats import LONGEST_SECONDS
from softform_core.errors import SoftformError
from softform_core.text import printable

LOOK_SECONDS = 0.1
"""Time between two looks, s."""

_LOOKS = 2
"""Looks in a row that must find silence: after a stall of the node timers are served before the beats that waited."""

_MOST_SENDERS = 32
"""Senders that are watched at most, so that a flood of names does not grow for ever."""

_LONGEST_SENDER = 64
"""Characters of a sender's name at most."""


@dataclass
class _Promise:
    """What one sender has said last: the next beat comes within `dead_man` s; and when that was heard, s."""

    dead_man: float
    of_goal: bool
    heard_at: float
    silent_looks: int = 0


class SteeringWatch:
    """Lets go of the robot once the beats of one who steers it are overdue; used by one thread.

    Each sender is watched for itself: beats of one neither keep what another one has left, nor end the watch over it.

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
        self._promises: dict[str, _Promise] = {}

    def note(self, sender: str, dead_man: float, of_goal: bool) -> None:
        """Take a beat of a sender: the next one is due within `dead_man` s; 0 ends the watch over that sender.

        Raises:
            SoftformError: If that is no time, or the sender cannot be watched; the beats before count on.
        """
        if not 0.0 <= dead_man <= LONGEST_SECONDS:
            raise SoftformError(f"dead_man of a beat is {dead_man} s.", f"Give 0 to {LONGEST_SECONDS:g} s.")
        if len(sender) > _LONGEST_SENDER:
            start = printable(sender, _LONGEST_SENDER)
            raise SoftformError(f"The sender '{start}' of a beat has a long name.", f"Up to {_LONGEST_SENDER} letters.")
        if dead_man == 0.0:
            self._promises.pop(sender, None)
        elif sender in self._promises or len(self._promises) < _MOST_SENDERS:
            self._promises[sender] = _Promise(dead_man, of_goal, self._clock())
        else:
            raise SoftformError(f"{_MOST_SENDERS} senders of beats are watched already.", "One at a time may steer.")

    def look(self) -> str:
        """Let go if beats of a sender are overdue; returns why, or nothing. To be called every `LOOK_SECONDS`.

        A goal of somebody else is left alone. Once it has moved the robot the watch ends, for what is held is its own;
        one that has not, as it only solves or ends before, leaves what who steered has left, and is waited for.
        """
        now, vanished = self._clock(), ""
        for sender, promise in list(self._promises.items()):
            if now - promise.heard_at <= promise.dead_man:
                continue
            promise.silent_looks += 1
            if promise.silent_looks < _LOOKS:
                continue
            if self._is_moved_by_goal() and not promise.of_goal:
                if self._is_held_by_goal():
                    del self._promises[sender]
                continue
            del self._promises[sender]
            reason = f"Who steered the robot has been silent for {promise.dead_man:g} s (dead_man): it has vanished."
            if self._let_go(reason):
                vanished = reason
        return vanished
