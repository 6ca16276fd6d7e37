"""A latch that outlives the process: what is latched, or was not ended in order, takes a `reset` to go on."""

from pathlib import Path

from pydantic import BaseModel, ValidationError

from softform_core.errors import SoftformError
from softform_core.files import write_atomically

LEFT_ACTIVE = "the driver ended without venting in order while it was active"


class _Latched(BaseModel):
    reason: str


class Latch:
    """A file that is there while a fault is latched, or while commands are let through.

    A driver that finds it at its start has not been reset since: it starts latched.

    Args:
        path: Of the file; None for a latch that ends with the process.
    """

    def __init__(self, path: Path | None) -> None:
        """Name the file; nothing is written."""
        self._path = path
        self.failure = ""

    def read(self) -> str | None:
        """Return why it is latched; None if it is not. A file that cannot be read counts as latched."""
        if self._path is None:
            return None
        try:
            return _Latched.model_validate_json(self._path.read_bytes()).reason
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            return f"the latch file {self._path} cannot be read: {error}"

    def set(self, reason: str) -> None:
        """Latch. A disk that takes nothing must not stand in the way of venting: it is kept in `failure`."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, _Latched(reason=reason).model_dump_json().encode())
            self.failure = ""
        except (OSError, SoftformError) as error:
            self.failure = f"The latch would not survive a restart: {error}"

    def clear(self) -> None:
        """Let go.

        Raises:
            SoftformError: If the file cannot be removed: the next start would be latched again.
        """
        if self._path is None:
            return
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise SoftformError(f"{self._path} cannot be removed: {error}.", "Check 'state_folder'.") from error
