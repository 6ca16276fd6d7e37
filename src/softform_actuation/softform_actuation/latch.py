"""A latch that outlives the process: what is latched, or was not ended in order, takes a `reset` to go on."""

import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_ros.driver_words import STOPPED

LEFT_ACTIVE = "the driver ended without making safe in order while it was active"
LEFT_UNCONFIRMED = "the driver was closed, and a device did not confirm that it is safe"
STOPPED_UNCONFIGURED = f"{STOPPED} while it was not configured"


class _Latched(BaseModel):
    reason: str
    adapters: list[str]


class Latch:
    """Files that are there while a fault is latched, or while commands are let through.

    A driver that finds one of them at its start has not been reset since: it starts latched. Of a port's names some
    pass on to another device, as what the kernel calls it does. So each file tells of which adapters it is; one of
    another's counts, too, as it may be this device under a name that is not told here. `clear` takes it away, and the
    other one stays latched by its adapter's own file.

    Args:
        paths: Paths of the files, one per port name; none: the latch ends with the process.
        elsewhere: Further paths where one may have been left; nothing is written there.
        adapters: What the devices are known by.
    """

    def __init__(self, *paths: Path, elsewhere: Sequence[Path] = (), adapters: Sequence[str] = ()) -> None:
        self._paths = paths
        self._elsewhere = tuple(elsewhere)
        self._adapters = list(adapters)
        self.failure = ""

    def read(self) -> str | None:
        """Return why it is latched; None if it is not. What cannot be read, or could not be written, is latched."""
        for path in self._paths + self._elsewhere:
            try:
                latched = _Latched.model_validate_json(path.read_bytes())
            except FileNotFoundError:
                continue
            except (OSError, ValidationError) as error:
                return f"the latch file {path} cannot be read: {error}"
            of_another = latched.adapters != self._adapters
            return f"{latched.reason} (latched for {', '.join(latched.adapters)})" if of_another else latched.reason
        return self._unwritable()

    def _unwritable(self) -> str | None:
        for folder in {path.parent for path in self._paths}:
            if os.path.lexists(folder) and not os.access(folder, os.W_OK | os.X_OK):
                return f"the latch folder {folder} cannot be written"
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
        latched = _Latched(reason=reason, adapters=self._adapters)
        for path in self._paths:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, latched.model_dump_json().encode())
            except (OSError, SoftformError) as error:
                self.failure = f"The latch would not survive a restart: {error}"

    def clear(self) -> None:
        """Let go.

        Raises:
            SoftformError: If a file cannot be removed, or none be written: the next start would be latched again.
        """
        for path in self._paths + self._elsewhere:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise SoftformError(f"{path} cannot be removed: {error}.", "Make its folder writable.") from error
        if unwritable := self._unwritable():
            raise SoftformError(
                f"It stays latched: {unwritable}.", "Join its group (`ls -ld` tells it), or mount its disk."
            )
