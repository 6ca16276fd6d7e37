"""A latch that outlives the process: what is latched, or was not ended in order, takes a `reset` to go on."""

from pathlib import Path

from pydantic import BaseModel, ValidationError

from softform_core.errors import SoftformError
from softform_core.files import write_atomically

LEFT_ACTIVE = "the driver ended without making safe in order while it was active"
LEFT_UNCONFIRMED = "the driver was closed, and a device did not confirm that it is safe"
STOPPED_UNCONFIGURED = "stopped by request while it was not configured"


class _Latched(BaseModel):
    reason: str


class Latch:
    """Files that are there while a fault is latched, or while commands are let through.

    A driver that finds one of them at its start has not been reset since: it starts latched.

    Args:
        paths: Paths of the files, one per port name; none: the latch ends with the process.
    """

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self.failure = ""

    def read(self) -> str | None:
        """Return why it is latched; None if it is not. A file that cannot be read counts as latched."""
        for path in self._paths:
            try:
                return _Latched.model_validate_json(path.read_bytes()).reason
            except FileNotFoundError:
                continue
            except (OSError, ValidationError) as error:
                return f"the latch file {path} cannot be read: {error}"
        return None

    def stop_unconfigured(self) -> str:
        """Latch for a stop while no driver is there to make safe; return what was done. What was latched before stays.

        Raises:
            SoftformError: If the driver before left the robot in doubt, or the latch would not survive a restart.
        """
        before = self.read() or STOPPED_UNCONFIGURED
        self.set(before)
        if before.startswith((LEFT_ACTIVE, LEFT_UNCONFIRMED)):
            raise SoftformError(
                f"Latched, but nothing was made safe now, for the driver is not configured; the last time {before}.",
                "Cut the supply, or configure the driver, which makes safe.",
            )
        if self.failure:
            raise SoftformError(self.failure, "Correct it, then stop again.")
        return "The driver is not configured and moves nothing. Latched."

    def set(self, reason: str) -> None:
        """Latch. A disk that takes nothing must not stand in the way of making safe: it is kept in `failure`."""
        self.failure = ""
        for path in self._paths:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, _Latched(reason=reason).model_dump_json().encode())
            except (OSError, SoftformError) as error:
                self.failure = f"The latch would not survive a restart: {error}"

    def clear(self) -> None:
        """Let go.

        Raises:
            SoftformError: If a file cannot be removed: the next start would be latched again.
        """
        for path in self._paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise SoftformError(f"{path} cannot be removed: {error}.", "Make its folder writable.") from error
