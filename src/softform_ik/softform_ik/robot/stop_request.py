"""The wish to end a goal, and what it is called when it is granted."""

import threading

from softform_client.reach_goal import Code

STOP_MESSAGES = {
    Code.CANCELLED: "The goal was cancelled; the pressures are the best found until then.",
    Code.PREEMPTED: "A newer goal took its place; the pressures are the best found until then.",
    Code.NODE_DEACTIVATED: "The node was deactivated. Activate it and send the goal again.",
}


class StopRequest:
    """A wish to end a goal, with its reason; the first one counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._code = Code.NONE

    def request(self, code: int) -> None:
        """Ask to stop for the reason `code`: CANCELLED, PREEMPTED or NODE_DEACTIVATED."""
        with self._lock:
            if self._code == Code.NONE:
                self._code = code

    @property
    def code(self) -> int:
        """The reason, or NONE."""
        with self._lock:
            return int(self._code)

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.code != Code.NONE
