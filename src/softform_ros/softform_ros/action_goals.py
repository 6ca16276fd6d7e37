"""Outcomes of the goals of a node that serves actions."""

from rclpy.action.server import ServerGoalHandle

from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode

NO_ERROR = 0
"""Value of `NONE` among the error codes of every action of the project."""


class GoalLedger:
    """Record of the outcomes of a node's goals, for its log and its diagnostics."""

    def __init__(self, node: SoftformLifecycleNode) -> None:
        self._node = node
        self._rejections = 0
        self._last_rejection = ""
        self._last_outcome = ""

    def reject(self, handle: ServerGoalHandle, code: int, message: str) -> None:
        """Abort a goal that cannot be begun, and note why."""
        handle.abort()
        self._rejections += 1
        self._last_rejection = f"[{code}] {message}"
        self._node.get_logger().warning(f"goal rejected: {self._last_rejection}")
        self._node.diagnostics.publish()

    def accept(self) -> None:
        """Note that the last rejection is overcome."""
        self._last_rejection = ""

    def conclude(self, handle: ServerGoalHandle, code: int, message: str, summary: str) -> None:
        """End a goal with its error code; the message is empty on success, whose summary, if any, is kept."""
        if code == NO_ERROR:
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        self._last_outcome = summary or self._last_outcome
        if message:
            self._last_outcome = f"[{code}] {message}"
            self._node.get_logger().warning(f"goal ended: {self._last_outcome}")
        else:
            self._node.get_logger().info(f"goal reached: {self._last_outcome}")
        self._node.diagnostics.publish()

    def values(self) -> dict[str, object]:
        """Return the outcomes for diagnostics."""
        return {
            "rejected goals": self._rejections,
            "last rejection": self._last_rejection,
            "last outcome": self._last_outcome,
        }

    def health(self, values: dict[str, object]) -> Health:
        """Return the health of a node that has no other trouble."""
        if self._last_rejection:
            return Health(WARN, f"goal rejected: {self._last_rejection}", values)
        return Health(OK, self._last_outcome or ("active" if self._node.is_active else "inactive"), values)
