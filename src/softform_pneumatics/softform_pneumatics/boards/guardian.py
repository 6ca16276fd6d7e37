"""A tiny second process that vents the board when the driver dies or hangs.

The board has no watchdog: after `kill -9` of the driver it would hold its pressure for ever. The guardian shares the
driver's open port and reads heartbeats from a pipe. A pipe that ends without the farewell, or that stays silent, makes
it write the vent request. It is started as a program of its own that imports the standard library only, so that it
survives whatever kills the driver, and stays small.
"""

import os
import select
import signal
import subprocess
import sys
import time

HEARTBEAT = b"."
FAREWELL = b"!"

HEARTBEAT_SECONDS = 0.2
SILENCE_SECONDS = 2.0
"""Silence after which the driver counts as hung; longer than a loaded machine lets a live one wait."""

_REPEAT_SECONDS = 0.1
_END_SECONDS = 2.0


class Guardian:
    """The driver's side: starts the process, sends heartbeats, and says goodbye."""

    def __init__(self, port_descriptor: int, vent_request: bytes) -> None:
        """Start guarding the open port.

        `vent_request` is what it writes there in an emergency; the driver may have died within another request, so it
        must be understood behind half of one.
        """
        self._port_descriptor = port_descriptor
        self._vent_request = vent_request
        self._last_beat = 0.0
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        # A session of its own keeps Ctrl-C and signals to the driver's process group away from it.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self._port_descriptor), self._vent_request.hex()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(self._port_descriptor,),
            start_new_session=True,
            cwd="/",
            bufsize=0,
        )
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process

    @property
    def process_id(self) -> int:
        """Process id of the guardian."""
        return self._process.pid

    def beat(self) -> None:
        """Tell the guardian that the driver is alive; a guardian that was killed is started anew.

        Raises:
            OSError: If it cannot be started; the next beat tries again.
        """
        now = time.monotonic()
        if now - self._last_beat < HEARTBEAT_SECONDS:
            return
        self._last_beat = now
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(HEARTBEAT)
        except (BrokenPipeError, ValueError):  # ended, or could not be started at the last beat
            self._process.stdin.close()
            self._process.wait()
            self._process = self._start()

    def end(self, vent: bool) -> None:
        """End the guardian; `vent` says whether it shall write the vent request first."""
        assert self._process.stdin is not None
        try:
            if not vent:
                self._process.stdin.write(FAREWELL)
            self._process.stdin.close()
        except (OSError, ValueError):
            pass  # it has ended already
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def guard(heartbeats: int, port: int, vent_request: bytes) -> None:
    """Wait for heartbeats until the driver says goodbye or dies; vent the board when it dies or hangs."""
    while True:
        ready, _, _ = select.select([heartbeats], [], [], SILENCE_SECONDS)
        if not ready:
            _vent(port, vent_request)
            continue
        beats = os.read(heartbeats, 4096)
        if FAREWELL in beats:
            return
        if not beats:
            _vent(port, vent_request)
            return


def _vent(port: int, vent_request: bytes) -> None:
    # The board answers nobody here, so the request is sent twice instead of confirmed.
    for _ in range(2):
        try:
            os.write(port, vent_request)
        except OSError:
            return  # the board is gone, or takes nothing any more
        time.sleep(_REPEAT_SECONDS)


def main() -> None:
    """Guard the port that the driver passed on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    guard(sys.stdin.fileno(), int(sys.argv[1]), bytes.fromhex(sys.argv[2]))


if __name__ == "__main__":
    main()
