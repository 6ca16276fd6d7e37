"""The guardian as a service of the machine: it outlives whatever ends a driver, its container or its session.

A driver hands it the open port through a socket, and heartbeats, as to a process of its own. The units that
`./softform install-service` writes start it before drivers, spare it when memory runs out, and restart it; it is
started as `python -m softform_actuation.guardian_service SOCKET`.
"""

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import threading
from types import FrameType

from softform_actuation.guardian import protect, protection_of, serve
from softform_core.service_notify import notify

_log = logging.getLogger(__name__)

MOST_DRIVERS = 64
_TICK_SECONDS = 0.5
_STACK_BYTES = 256 * 1024  # all of it is locked in memory


class GuardianService:
    """Guards the ports of all drivers that connect, each in a thread: one that takes nothing delays no other."""

    def __init__(self, path: str) -> None:
        """Listen at `path`, for users who may write to it: this one and those of its group.

        Raises:
            OSError: If that is not possible.
        """
        self._connections: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # of one that was killed
        before = os.umask(0o117)
        self._listener.bind(path)
        os.umask(before)
        self._listener.listen()
        self._ends = False

    def run(self) -> None:
        """Serve until `stop`; drivers then start guardians of their own, and are guarded until they have."""
        while not self._ends:
            ready, _, _ = select.select([self._listener], [], [], _TICK_SECONDS)
            notify("WATCHDOG=1")
            if ready:
                self._accept()
        self._listener.close()
        for connection in self._connections.copy():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)

    def stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """End `run` soon; may be the handler of a signal."""
        self._ends = True

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        try:
            if len(self._connections) < MOST_DRIVERS:
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._connections.add(connection)
                thread.start()
                return
        except RuntimeError:  # no memory for a thread: the driver starts a guardian of its own
            self._connections.discard(connection)
        connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            # Of terminals only: to write to other files may take rights that the service has and a driver has not.
            serve(connection, takes=os.isatty)
        except OSError as error:
            _log.warning("a connection is refused: %s", error)
        finally:
            self._connections.discard(connection)
            connection.close()


def main() -> None:
    """Serve at the socket that is named until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.stack_size(_STACK_BYTES)
    protect()
    service = GuardianService(sys.argv[1])
    signal.signal(signal.SIGTERM, service.stop)
    _log.info("guards at %s; %s", sys.argv[1], protection_of(os.getpid()))
    notify("READY=1")
    service.run()


if __name__ == "__main__":
    main()
