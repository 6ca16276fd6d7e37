"""The error codes of an action for what goes wrong in parts that it shares with `reach_shape`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from softform_interfaces.action import CaptureShape, FollowWaypoints, ReachShape
from softform_ros.goal_error import GoalError

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
    "CAPTURE_TIMEOUT",
    "CAPTURE_INVALID",
    "NODE_DEACTIVATED",
    "INTERNAL_ERROR",
)


def _codes_of(result: Any, own_names: dict[str, str]) -> dict[int, int]:
    names = {name: own_names.get(name, name) for name in _SHARED_NAMES}
    return {
        getattr(ReachShape.Result, name): getattr(result, own) for name, own in names.items() if hasattr(result, own)
    }


CODE_OF_FOLLOWING = _codes_of(FollowWaypoints.Result, {"INVALID_TARGET": "INVALID_PATH"})
"""Error code of `reach_shape` -> that of `follow_waypoints`."""

CODE_OF_CAPTURING = _codes_of(CaptureShape.Result, {})
"""Error code of `reach_shape` -> that of `capture_shape`."""


@contextmanager
def in_codes_of_following() -> Iterator[None]:
    """Give a `GoalError` with a code of `reach_shape` that of `follow_waypoints`; others pass as they are."""
    with _translated(CODE_OF_FOLLOWING):
        yield


@contextmanager
def in_codes_of_capturing() -> Iterator[None]:
    """Give a `GoalError` with a code of `reach_shape` that of `capture_shape`; others pass as they are."""
    with _translated(CODE_OF_CAPTURING):
        yield


@contextmanager
def _translated(codes: dict[int, int]) -> Iterator[None]:
    try:
        yield
    except GoalError as error:
        if error.code not in codes:
            raise
        raise GoalError(codes[error.code], error.message, error.next_step) from error
