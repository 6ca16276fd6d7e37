"""Shows the output of many processes, each line with its process's name in front."""

import os
import select
import time

from softform_core.text import printable

LARGEST_BACKLOG = 1 << 20  # bytes of output kept for a reader that does not read


class Screen:
    """Writes lines to a file descriptor without ever waiting for its reader.

    A node must not stop because its log is not read: what a slow reader leaves beyond the backlog is dropped and
    counted.
    """

    def __init__(self, descriptor: int) -> None:
        """Write to `descriptor`, in colour if it is a terminal."""
        self._is_terminal = os.isatty(descriptor)
        self._descriptor = _never_waiting(descriptor) if self._is_terminal else descriptor
        self._backlog = bytearray()
        self._dropped = 0
        self.is_broken = False

    def show(self, name: str, line: bytes, colour: int = 0) -> None:
        """Show one line with `[name]` in front."""
        if len(self._backlog) > LARGEST_BACKLOG:
            self._dropped += 1
            return
        if self._dropped:
            self._backlog += b"[launch] %d lines were dropped: they were not read in time\n" % self._dropped
            self._dropped = 0
        prefix = f"[{name}] ".encode()
        if self._is_terminal and colour:
            prefix = b"\x1b[%dm%s\x1b[0m" % (colour, prefix)
        self._backlog += prefix + printable(line.decode(errors="replace"), LARGEST_BACKLOG).encode() + b"\n"
        self.flush()

    def flush(self, seconds: float = 0.0) -> None:
        """Write what the reader takes now, and keep trying for `seconds`."""
        deadline = time.monotonic() + seconds
        while self._backlog and not self.is_broken:
            remaining = max(0.0, deadline - time.monotonic())
            if not select.select([], [self._descriptor], [], remaining)[1]:
                return
            try:
                # A pipe that select calls writable takes PIPE_BUF bytes without blocking, a terminal need not.
                written = os.write(self._descriptor, self._backlog[: select.PIPE_BUF])
            except BlockingIOError:
                return
            except OSError:
                self.is_broken = True
                return
            del self._backlog[:written]

    @property
    def has_backlog(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._backlog) and not self.is_broken


def _never_waiting(terminal: int) -> int:
    """Return the terminal, opened anew so that writes never wait; its other users are left as they are."""
    try:
        return os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:  # of another user, or without a name here
        return terminal
