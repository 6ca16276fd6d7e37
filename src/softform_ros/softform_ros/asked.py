"""Time of a request that may start motion (`Asked.msg`): filled by the client, checked by the server."""

import math
import threading
import time

from builtin_interfaces.msg import Time
from rclpy.node import Node

from softform_core.errors import SoftformError
from softform_interfaces.msg import Asked, DriverState
from softform_ros import qos

ASKED_SECONDS = 2.0
"""Age at which a request that may start motion is too old; longer than a loaded machine delays one."""

AHEAD_SECONDS = 0.1
"""Largest difference of the clocks of two computers, s."""

_DISCOVERY_SECONDS = 4.0
"""Time until a new program knows of a driver that runs, s."""

AGAIN = "Look at the robot, and ask again if that is still meant."


def age_of(stamp: Time, now: float) -> float:
    """Return how long before `now`, s since the epoch, a stamp was, s; NaN if it is unset. Never raises."""
    seconds = stamp.sec + stamp.nanosec * 1e-9
    return now - seconds if seconds > 0.0 else math.nan


def require_recent(age: float, epoch: int, what: str) -> None:
    """Reject `what` if it does not say when it was asked for, `age` s ago in an epoch, or was too long ago.

    Raises:
        SoftformError: If so.
    """
    if math.isnan(age) or epoch == 0:
        raise SoftformError(
            f"{what} does not say when it was asked for, or in which of the driver's epochs.",
            "Fill `asked` with the present time and the `epoch` of driver_state.",
        )
    if not -AHEAD_SECONDS <= age <= ASKED_SECONDS:
        when = f"{age:.1f} s ago" if age > 0.0 else f"{-age:.1f} s in the future"
        raise SoftformError(
            f"{what} was asked for {when}; up to {ASKED_SECONDS:g} s ago are allowed.",
            f"{AGAIN} See to the load of the computers, and to their clocks.",
        )


def require_just_asked(asked: Asked, node: Node, what: str) -> None:
    """Check a message that has come to a node, like `require_recent`.

    Raises:
        SoftformError: If so.
    """
    require_recent(age_of(asked.stamp, node.get_clock().now().nanoseconds * 1e-9), asked.epoch, what)


def asked_now(node: Node, epoch: int) -> Asked:
    """Return the stamp of a request that a node makes now, in an epoch of the driver that its asker saw."""
    return Asked(stamp=node.get_clock().now().to_msg(), epoch=epoch, client=node.get_fully_qualified_name())


class EpochWatch:
    """The driver's epoch as a program sees it, for what it asks for."""

    def __init__(self, node: Node) -> None:
        """Listen to `driver_state`; another thread spins the node."""
        self._node, self._heard, self._epoch, self._since = node, threading.Event(), 0, time.monotonic()
        self._subscription = node.create_subscription(DriverState, "driver_state", self._note, qos.LATCHED_STATE)

    def _note(self, state: DriverState) -> None:
        self._epoch = state.epoch
        self._heard.set()

    def asked(self, patience: float = 2.0) -> Asked:
        """Return the stamp of a request made now; its epoch is 0 if no driver has said anything within `patience` s."""
        if not self._node.count_publishers("driver_state"):  # it may not be known yet
            patience = max(self._since + _DISCOVERY_SECONDS - time.monotonic(), 0.0)
        self._heard.wait(patience)
        return asked_now(self._node, self._epoch)

    def close(self) -> None:
        """Listen no more."""
        self._node.destroy_subscription(self._subscription)
