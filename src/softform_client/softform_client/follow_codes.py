"""The error codes of `follow_waypoints` for what goes wrong in parts that it shares with `reach_shape`."""

from collections.abc import Iterator
from contextlib import contextmanager

from softform_interfaces.action import FollowWaypoints, ReachShape
from softform_ros.goal_error import GoalError

_OWN_NAMES = {"INVALID_TARGET": "INVALID_PATH"}
_SHARED_NAMES = (
    "INVALID_TARGET",
    "INVALID_SEED",
    "SOLVER_FAILED",
    "CANCELLED",
    "PREEMPTED",
    "UNREACHABLE",
    "DRIVER_NOT_READY",
    "DRIVER_FAULT",
    "SETTLE_TIMEOUT",
    "NODE_DEACTIVATED",
    "INTERNAL_ERROR",
)
CODE_OF_FOLLOWING: dict[int, int] = {
    getattr(ReachShape.Result, name): getattr(FollowWaypoints.Result, _OWN_NAMES.get(name, name))
    for name in _SHARED_NAMES
}
"""Of `reach_shape` -> of `follow_waypoints`."""


@contextmanager
def in_codes_of_following() -> Iterator[None]:
    """Give a `GoalError` with a code of `reach_shape` that of `follow_waypoints`; others pass as they are."""
    try:
        yield
    except GoalError as error:
        if error.code not in CODE_OF_FOLLOWING:
            raise
        raise GoalError(CODE_OF_FOLLOWING[error.code], error.message, error.next_step) from error
