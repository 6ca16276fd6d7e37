"""A tiny second process that makes the device safe when the driver dies or hangs.

Many devices have no watchdog: after `kill -9` of the driver a board would hold its pressure for ever. The guardian
shares the driver's open port and reads heartbeats from a pipe; it answers each, so that the driver notices a guardian
that is frozen and starts another. A pipe that ends without the farewell, or that stays silent, makes it write the
emergency request. It is started as a program of its own that imports the standard library only, so that it survives
whatever kills the driver, and stays small.
"""

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import termios
import time

HEARTBEAT = b"."
FAREWELL = b"!"

HEARTBEAT_SECONDS = 0.2
SILENCE_SECONDS = 2.0
"""Silence after which the driver counts as hung; longer than a loaded machine lets a live one wait."""

FROZEN_SECONDS = 2.0
"""After which a guardian that has not answered counts as frozen; it takes some tenths to start."""

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEAT_SECONDS = 0.1
_GONE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADF)
_RETRY_SECONDS = 0.02
EMERGENCY_SECONDS = 3.0
"""How long a port that takes nothing is tried on."""
_END_SECONDS = EMERGENCY_SECONDS + 1.0


class Guardian:
    """The driver's side: starts the process, sends heartbeats, and says goodbye."""

    def __init__(self, port_descriptor: int, emergency: bytes) -> None:
        """Start guarding the open port.

        `emergency` is what it writes there; the driver may have died within another request, so it must be understood
        behind half of one.
        """
        self._port_descriptor = port_descriptor
        self._emergency = emergency
        self._last_beat = 0.0
        self._unanswered_since: float | None = None
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        # A session of its own keeps Ctrl-C and signals to the driver's process group away from it. It inherits a mask
        # that blocks what it will ignore, so that nothing of that ends it while it starts.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(self._port_descriptor), self._emergency.hex()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._port_descriptor,),
                start_new_session=True,
                cwd="/",
                bufsize=0,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        assert process.stdin is not None and process.stdout is not None
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        self._unanswered_since = None
        return process

    @property
    def process_id(self) -> int:
        """Process id of the guardian."""
        return self._process.pid

    def beat(self) -> None:
        """Tell the guardian that the driver is alive; one that was killed, or does not answer, is replaced.

        Raises:
            OSError: If it cannot be started; the next beat tries again.
        """
        now = time.monotonic()
        if now - self._last_beat < HEARTBEAT_SECONDS:
            return
        self._last_beat = now
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            if self._process.stdout.read(4096):
                self._unanswered_since = None
            if self._unanswered_since is not None and now - self._unanswered_since > FROZEN_SECONDS:
                self._replace()
            self._process.stdin.write(HEARTBEAT)
        except (BrokenPipeError, ValueError):  # ended, or could not be started at the last beat
            self._replace()
        if self._unanswered_since is None:
            self._unanswered_since = now

    def _replace(self) -> None:
        self._process.kill()  # a frozen one must not make a driver safe that lives when it thaws
        self._close_pipes()
        self._process.wait()
        self._process = self._start()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def end(self, emergency: bool) -> None:
        """End the guardian; `emergency` says whether it shall write the emergency request first."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended already
            if not emergency:
                self._process.stdin.write(FAREWELL)
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS if emergency else _END_SECONDS - EMERGENCY_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_pipes()


def guard(heartbeats: int, answers: int, port: int, emergency: bytes) -> None:
    """Wait for heartbeats until the driver says goodbye or dies; make the device safe when it dies or hangs."""
    while True:
        ready, _, _ = select.select([heartbeats], [], [], SILENCE_SECONDS)
        if not ready:
            make_safe(port, emergency)
            continue
        beats = os.read(heartbeats, 4096)
        if FAREWELL in beats:
            return
        if not beats:
            make_safe(port, emergency)
            return
        with contextlib.suppress(OSError):  # the driver is gone, which the other pipe says, too
            os.write(answers, HEARTBEAT)


def make_safe(port: int, emergency: bytes) -> None:
    """Write the emergency request, twice as no answer is read here; repeat until the port takes it.

    What waits to be sent is dropped from a port that is full: the request must not queue behind targets. A port whose
    device is gone is not tried on.
    """
    deadline = time.monotonic() + EMERGENCY_SECONDS
    for _ in range(2):
        rest = emergency
        while rest and time.monotonic() < deadline:
            try:
                rest = rest[os.write(port, rest) :]
            except OSError as error:
                if error.errno in _GONE:
                    return  # nothing that is written here reaches a device, and the driver waits
                if isinstance(error, BlockingIOError):
                    rest = emergency
                    with contextlib.suppress(OSError, termios.error):
                        termios.tcflush(port, termios.TCOFLUSH)
                time.sleep(_RETRY_SECONDS)
        time.sleep(_REPEAT_SECONDS)


def main() -> None:
    """Guard the port that the driver passed on."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    answers = sys.stdout.fileno()
    os.set_blocking(answers, False)
    guard(sys.stdin.fileno(), answers, int(sys.argv[1]), bytes.fromhex(sys.argv[2]))


if __name__ == "__main__":
    main()
