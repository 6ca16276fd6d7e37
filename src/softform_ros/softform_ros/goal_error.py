"""Errors that fail a goal, typed by what went wrong; the server of an action alone knows the numbers of its codes."""

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from softform_core.errors import SoftformError, reason_of


class GoalCode(enum.Enum):
    """What became of a goal, by the names that the actions give to their error codes; the actions say what they mean.

    Parts that actions share fail with these, so that they need not know for which of them they work.
    """

    NONE = enum.auto()
    INVALID_GOAL = enum.auto()
    INVALID_TARGET = enum.auto()
    INVALID_PATH = enum.auto()
    INVALID_TIMES = enum.auto()
    INVALID_SEED = enum.auto()
    INVALID_START = enum.auto()
    INVALID_OBSTACLES = enum.auto()
    INVALID_CAPTURES = enum.auto()
    INVALID_DEVICE = enum.auto()
    START_IN_COLLISION = enum.auto()
    GOAL_IN_COLLISION = enum.auto()
    NO_PATH = enum.auto()
    SOLVER_FAILED = enum.auto()
    UNREACHABLE = enum.auto()
    OVERSTRESSED = enum.auto()
    CANCELLED = enum.auto()
    PREEMPTED = enum.auto()
    NODE_DEACTIVATED = enum.auto()
    DRIVER_NOT_READY = enum.auto()
    DRIVER_FAULT = enum.auto()
    DRIVER_FAILED = enum.auto()
    SETTLE_TIMEOUT = enum.auto()
    CAPTURE_TIMEOUT = enum.auto()
    CAPTURE_INVALID = enum.auto()
    CAPTURE_FAILED = enum.auto()
    STORE_FAILED = enum.auto()
    ROBOT_DRIFTED = enum.auto()
    INTERNAL_ERROR = enum.auto()


class GoalError(SoftformError):
    """A goal that is rejected, or fails while it is carried out.

    Args:
        code: What went wrong.
        message: The error.
        next_step: Remedy.
    """

    def __init__(self, code: GoalCode, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.code = code


@dataclass(frozen=True)
class Outcome:
    """What every goal leaves.

    Attributes:
        code: What became of it; `NONE` is success.
        message: Error and remedy; empty on success.
    """

    code: GoalCode
    message: str


def failure(error: Exception, code: GoalCode) -> tuple[GoalCode, str]:
    """Return the code and message of a goal that an error ended; its worker goes on with the next goal.

    Args:
        error: Exception that ended the goal.
        code: Code of a `SoftformError` that brings none; everything else is an `INTERNAL_ERROR`.
    """
    if isinstance(error, GoalError):
        code = error.code
    return code if isinstance(error, SoftformError) else GoalCode.INTERNAL_ERROR, reason_of(error)


@contextmanager
def in_code(code: GoalCode, before: str = "") -> Iterator[None]:
    """Give every `SoftformError` inside, or of a function decorated by this, a code, and put words before what it says.

    Raises:
        GoalError: In place of any `SoftformError`; one that has a code keeps it.
    """
    try:
        yield
    except SoftformError as error:
        if isinstance(error, GoalError):
            code = error.code
        raise GoalError(code, f"{before}{error.message}", error.next_step) from error
