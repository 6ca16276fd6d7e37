"""A log of what arrives on the board's wire, to measure how fast a driver acts.

A line for each `WireEvent`: `host` sends requests; `port` is `opened` and `closed` by the host; `true` are the values
that the actuators truly have, in the unit of the robot's description.
"""

import contextlib
import time
from pathlib import Path

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.wire_event import WireEvent

_LONGEST_LINE = 200  # bytes


class WireLogWriter:
    """Appends to a file, if one is given, each line on disk at once: the log must outlive a rig that is killed.

    Raises:
        SoftformError: If it cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._rest = b""
        self._file = None
        if path is not None:
            try:
                self._file = path.open("a", buffering=1, encoding="latin-1", newline="\n")
            except OSError as error:
                raise SoftformError(
                    f"The log {path} cannot be written: {error.strerror}.", "Change wire_log."
                ) from error

    def hear(self, data: bytes, now: float) -> None:
        """Note the requests that end in what the host sent at time `now`, s."""
        if self._file is None:
            return
        *requests, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-_LONGEST_LINE:]
        for request in requests:
            self._write(now, "host", request.decode("latin-1").rstrip("\r"))

    def note_values(self, now: float, values: Array) -> None:
        """Note the true values (k,) of the actuators at time `now`, s."""
        if self._file is not None:
            self._write(now, "true", " ".join(f"{value:.6g}" for value in values))

    def note_port(self, is_open: bool) -> None:
        """Note that the host opened or closed the port."""
        self._write(time.monotonic(), "port", "opened" if is_open else "closed")

    def _write(self, now: float, side: str, text: str) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk must not stop the board
                self._file.write(WireEvent(now, side, text).line)
