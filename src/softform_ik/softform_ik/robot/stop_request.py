"""A request to end a goal, and what it says of the end."""

import threading

from softform_ros.goal_error import GoalCode


class StopRequest:
    """A request to end a goal, with its reason; the first one counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._code = GoalCode.NONE

    def request(self, code: GoalCode) -> None:
        """Ask to stop for the reason `code`: CANCELLED, PREEMPTED or NODE_DEACTIVATED."""
        with self._lock:
            if self._code is GoalCode.NONE:
                self._code = code

    @property
    def code(self) -> GoalCode:
        """The reason, or NONE."""
        with self._lock:
            return self._code

    def ending(self, result: str = "") -> tuple[GoalCode, str]:
        """Return the reason and its message.

        Args:
            result: Clause that says what the result holds; empty if it holds nothing.
        """
        messages = {
            GoalCode.CANCELLED: f"The goal was cancelled{result}.",
            GoalCode.PREEMPTED: f"A newer goal took its place{result}.",
            GoalCode.NODE_DEACTIVATED: "The node was deactivated. Activate it and send the goal again.",
        }
        return self.code, messages[self.code]

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.code is not GoalCode.NONE
