"""Whether the client of a goal that moves the robot is still there: a goal must not outlive who asked for it."""

import time
from collections.abc import Callable

from rclpy.node import Node

from softform_ros.asked import AGAIN
from softform_ros.goal_error import GoalCode, GoalError

__all__ = ["CLIENT_SECONDS", "GoalClient"]

CLIENT_SECONDS = 2.0
"""Time after which a client that is not seen counts as gone, s; discovery takes some tenths."""

_LEAVING_SECONDS = 0.05
"""Time within which a node that stood still has heard that a client left meanwhile, s."""

_NOT_DISCOVERED = "_NODE_NAME_UNKNOWN_"
"""What ROS calls the node of a subscription until it has heard of it."""


class GoalClient:
    """The client of one goal, who listens to the action's feedback.

    Args:
        node: Serves the action.
        name: Name of the action.
        client: Full name of the client's node, as `asked.client` says; empty: whoever listens.
        clock: Steady time, s; the computer's, if none is given.
    """

    def __init__(self, node: Node, name: str, client: str, clock: Callable[[], float] | None = None) -> None:
        self._node, self._name, self._client = node, name, client
        self._clock = clock or (lambda: time.monotonic())
        self._alone_since: float | None = None

    def is_gone(self) -> bool:
        """Return whether it has not been there for `CLIENT_SECONDS`; to be asked now and then."""
        if self._is_there():
            self._alone_since = None
            return False
        now = self._clock()
        self._alone_since = self._alone_since or now
        return now - self._alone_since > CLIENT_SECONDS

    def require(self, should_stop: Callable[[], bool]) -> None:
        """Wait until it is seen; one that left while the node stood still never is.

        Args:
            should_stop: Whether nobody waits any more.

        Raises:
            GoalError: If it is not seen within `CLIENT_SECONDS`.
        """
        time.sleep(_LEAVING_SECONDS)
        deadline = self._clock() + CLIENT_SECONDS
        while not (should_stop() or self._is_there()):
            if self._clock() > deadline:
                raise GoalError(GoalCode.CANCELLED, "The client of the goal was gone before it began.", AGAIN)
            time.sleep(_LEAVING_SECONDS)

    def _is_there(self) -> bool:
        listeners = self._node.get_subscriptions_info_by_topic(f"{self._name}/_action/feedback")
        return any(self._may_be_client(one.node_namespace, one.node_name) for one in listeners)

    def _may_be_client(self, namespace: str, name: str) -> bool:
        is_known = self._client and name != _NOT_DISCOVERED
        return not is_known or f"{namespace.rstrip('/')}/{name}" == self._client
