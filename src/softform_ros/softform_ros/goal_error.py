"""Why an action's goal failed, with the code that its result gives."""

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
