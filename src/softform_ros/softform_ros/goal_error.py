"""Why an action's goal failed, with the code that its result gives."""

from collections.abc import Iterator
from contextlib import contextmanager

from softform_core.errors import SoftformError


class GoalError(SoftformError):
    """A goal that is rejected, or fails while it is carried out.

    Args:
        code: One of the action's error codes.
        message: What is wrong.
        next_step: What to do about it.
    """

    def __init__(self, code: int, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.code = code


@contextmanager
def in_code(code: int) -> Iterator[None]:
    """Give whatever is rejected inside this error code.

    Raises:
        GoalError: In place of any `SoftformError`.
    """
    try:
        yield
    except SoftformError as error:
        raise GoalError(code, error.message, error.next_step) from error
