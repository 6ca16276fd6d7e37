"""The error codes of an action for what goes wrong in parts that it shares with `reach_shape`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from softform_interfaces.action import CaptureShape, FollowWaypoints, ReachShape
from softform_ros.goal_error import GoalError


def _codes_of(result: Any, own_names: dict[str, str]) -> dict[int, int]:
    """Return the codes of `reach_shape` with those of the same name, or the name given, in another result."""
    codes = {}
    for name in dir(type(ReachShape.Result)):  # constants of a message are its class's
        own = own_names.get(name, name)
        if name[0].isalpha() and name.isupper() and name != "NONE" and hasattr(result, own):
            codes[getattr(ReachShape.Result, name)] = getattr(result, own)
    return codes


CODE_OF_FOLLOWING = _codes_of(FollowWaypoints.Result, {"INVALID_TARGET": "INVALID_PATH"})
"""Error codes of `follow_waypoints` by those of `reach_shape`."""

CODE_OF_CAPTURING = _codes_of(CaptureShape.Result, {})
"""Error codes of `capture_shape` by those of `reach_shape`."""


@contextmanager
def in_codes(codes: dict[int, int]) -> Iterator[None]:
    """Give a `GoalError` with a code among the keys that of the value; others pass as they are."""
    try:
        yield
    except GoalError as error:
        if error.code not in codes:
            raise
        raise GoalError(codes[error.code], error.message, error.next_step) from error
