"""The one base class of errors that a user is meant to read."""

__all__ = ["SoftformError", "reason_of"]


class SoftformError(Exception):
    """Something is wrong that the user can correct: the error with the offending value, and a remedy."""

    def __init__(self, message: str, next_step: str = "") -> None:
        """Store both sentences; `str(error)` shows them together."""
        super().__init__(message if not next_step else f"{message} {next_step}")
        self.message = message
        self.next_step = next_step


def reason_of(error: Exception) -> str:
    """Return the text of an error for people; with its type if it is no `SoftformError`."""
    return str(error) if isinstance(error, SoftformError) else f"{type(error).__name__}: {error}"
