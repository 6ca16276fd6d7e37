"""A request to end a goal, its error code and message, and what every goal leaves."""

import threading
from dataclasses import dataclass
from typing import Any

from softform_client.reach_goal import Code


@dataclass(frozen=True)
class Outcome:
    """Outcome of a goal.

    Attributes:
        code: One of the action's error codes; `NONE` is success.
        message: Error and remedy; empty on success.
    """

    code: int
    message: str


def stop_messages(codes: Any, result: str = "") -> dict[int, str]:
    """Return messages of goals that were asked to end, by code.

    Args:
        codes: Result of the action, which has the codes.
        result: Clause that says what the result holds; empty if it holds nothing.
    """
    return {
        codes.CANCELLED: f"The goal was cancelled{result}.",
        codes.PREEMPTED: f"A newer goal took its place{result}.",
        codes.NODE_DEACTIVATED: "The node was deactivated. Activate it and send the goal again.",
    }


class StopRequest:
    """A request to end a goal, with its reason; the first one counts."""

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
        """Return whether to stop."""
        return self.code != Code.NONE
