"""Error that fails an action's goal, with the code that its result gives."""

from collections.abc import Iterator
from contextlib import contextmanager

from softform_core.errors import SoftformError, reason_of


class GoalError(SoftformError):
    """A goal that is rejected, or fails while it is carried out.

    Args:
        code: One of the action's error codes.
        message: The error.
        next_step: Remedy.
    """

    def __init__(self, code: int, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.code = code


def failure(error: Exception, code: int, internal: int) -> tuple[int, str]:
    """Return the error code and message of a goal that an error ended; its worker goes on with the next goal.

    Args:
        error: Exception that ended the goal.
        code: Code of a `SoftformError` that brings none.
        internal: Code of everything else.
    """
    if isinstance(error, GoalError):
        code = error.code
    return code if isinstance(error, SoftformError) else internal, reason_of(error)


@contextmanager
def in_code(code: int, before: str = "") -> Iterator[None]:
    """Give every `SoftformError` inside this error code, and put words before what it says.

    Raises:
        GoalError: In place of any `SoftformError`.
    """
    try:
        yield
    except SoftformError as error:
        raise GoalError(code, f"{before}{error.message}", error.next_step) from error
