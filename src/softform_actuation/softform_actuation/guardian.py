"""A tiny second process that makes the device safe when the driver dies or hangs.

Many devices have no watchdog: after `kill -9` of the driver a board would hold its pressure for ever. The guardian
is handed the driver's open port through a socket, and then heartbeats; it answers each, so that the driver notices a
guardian that is frozen. A socket that ends without the farewell, or that stays silent, makes it write the emergency
request, and for a robot that is to be held for a while only, another request after that while.

Best it is a service of the machine (`guardian_service`), which survives what ends the driver and all that belongs to
it. Where none listens, the driver starts this file as a program of its own, which imports the standard library only, so
that it survives what kills the driver alone, and stays small.
"""

import contextlib
import ctypes
import enum
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

HEARTBEAT = b"."
FAREWELL = b"!"

HEARTBEAT_SECONDS = 0.2
SILENCE_SECONDS = 2.0
"""Silence after which the driver counts as hung; longer than a loaded machine lets a live one wait."""

FROZEN_SECONDS = 2.0
"""After which a guardian that has not answered counts as frozen; it takes some tenths to start."""

JOIN_SECONDS = 0.5
"""How long a service may take to accept a driver; one that is well takes a thousandth of it."""

SOCKET_VARIABLE = "SOFTFORM_GUARDIAN"
"""Names another socket of the service than the machine's and the user's; empty, no service is asked."""

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGABRT)  # SIGABRT: a service manager's watchdog
_REPEAT_SECONDS = 0.1
_GONE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADF)
_RETRY_SECONDS = 0.02
EMERGENCY_SECONDS = 3.0
"""How long a port that takes nothing is tried on."""
_END_SECONDS = EMERGENCY_SECONDS + 1.0
_ALL_PAGES = 1 | 2  # MCL_CURRENT | MCL_FUTURE
_LOOK_SECONDS = 0.2
_HEAD = struct.Struct("!HHf")  # lengths of the requests, and seconds between them; the port's descriptor comes with it


def service_sockets() -> list[str]:
    """Where a guardian service may listen, the best protected one first."""
    if (given := os.environ.get(SOCKET_VARIABLE)) is not None:
        return [given] if given else []
    folders = ["/run", *filter(None, [os.environ.get("XDG_RUNTIME_DIR")])]
    return [f"{folder}/softform/guardian.sock" for folder in folders]


class Guardian:
    """The driver's side: finds the service or starts a process, sends heartbeats, and says goodbye.

    Attributes:
        complaint: Why a service that is installed does not guard; empty if it does, or none is.
    """

    def __init__(self, port_descriptor: int, emergency: bytes, later: bytes = b"", seconds: float = 0.0) -> None:
        """Start guarding the open port.

        `emergency` is what it writes there; the driver may have died within another request, so it must be understood
        behind half of one. `later`, if any, follows after some seconds, unless another driver has come.

        Raises:
            OSError: If there is no service, and no process can be started.
        """
        self._port_descriptor = port_descriptor
        self._emergency = emergency
        self._later, self._seconds = later, seconds
        self._last_beat = 0.0
        self._unanswered_since: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.complaint = ""
        self._connection = self._join_service() or self._start()

    @property
    def kind(self) -> str:
        """`service`, or `child` for a process of the driver's own, which shares its fate in a container or cgroup."""
        return "child" if self._process else "service"

    @property
    def process_id(self) -> int:
        """Process id of the guardian; 0 for a service outside of this container."""
        if self._process:
            return self._process.pid
        credentials = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[0])

    def beat(self) -> None:
        """Tell the guardian that the driver is alive; a child replaces one that was killed, or does not answer.

        Raises:
            OSError: If it cannot be started; the next beat tries again.
        """
        now = time.monotonic()
        if now - self._last_beat < HEARTBEAT_SECONDS:
            return
        self._last_beat = now
        try:
            self._hear(now)
            self._connection.send(HEARTBEAT)
        except OSError:  # ended or frozen
            self._replace()
        if self._unanswered_since is None:
            self._unanswered_since = now

    def _hear(self, now: float) -> None:
        with contextlib.suppress(BlockingIOError):
            if not self._connection.recv(4096):
                raise ConnectionResetError
            self._unanswered_since = None
        if self._unanswered_since is not None and now - self._unanswered_since > FROZEN_SECONDS:
            raise TimeoutError

    def end(self, emergency: bool) -> None:
        """End the guardian; `emergency` says whether it shall write the emergency request first."""
        heard = b""
        with contextlib.suppress(OSError):
            if not emergency:
                self._connection.send(FAREWELL)
            self._connection.shutdown(socket.SHUT_WR)
            self._connection.settimeout(_END_SECONDS if emergency else _END_SECONDS - EMERGENCY_SECONDS)
            while chunk := self._connection.recv(4096):
                heard += chunk
        self._connection.close()
        if emergency and FAREWELL not in heard:  # it was killed, or is frozen
            make_safe(self._port_descriptor, self._emergency)
        if self._process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS - EMERGENCY_SECONDS)
            _reap(self._process)

    def _join_service(self) -> socket.socket | None:
        for path in service_sockets():
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(JOIN_SECONDS)
            try:
                connection.connect(path)
                self._greet(connection)
                if connection.recv(1) == HEARTBEAT:
                    connection.setblocking(False)
                    return connection
                self.complaint = "The guardian service did not take the port."
            except (FileNotFoundError, NotADirectoryError):
                pass  # it is not installed
            except OSError as error:
                self.complaint = f"The guardian service at {path} cannot be used: {error.strerror or error}."
            _leave(connection)
        return None

    def _start(self) -> socket.socket:
        # A session of its own keeps Ctrl-C and signals to the driver's process group away from it. It inherits a mask
        # that blocks what it will ignore, so that nothing of that ends it while it starts.
        ours, its = socket.socketpair()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
        try:
            self._greet(ours)
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=its.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        except OSError:
            ours.close()
            raise
        finally:
            its.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        ours.setblocking(False)
        self._process = process
        self._unanswered_since = None
        return ours

    def _greet(self, connection: socket.socket) -> None:
        head = _HEAD.pack(len(self._emergency), len(self._later), self._seconds)
        socket.send_fds(connection, [head + self._emergency + self._later], [self._port_descriptor])

    def _replace(self) -> None:
        if self._process is None:
            self.complaint = "The guardian service ended or was frozen; a process of the driver's own guards instead."
        former, process = self._connection, self._process
        self._connection = self._start()
        _leave(former)
        if process:
            _reap(process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # a frozen one must not make a driver safe that lives when it thaws
    process.wait()


def _leave(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.send(FAREWELL)
    connection.close()


class Action(enum.Flag):
    """What a guardian does next; of several, in this order."""

    NONE = 0
    ANSWER = enum.auto()
    MAKE_SAFE = enum.auto()
    LEAVE = enum.auto()


class Watch:
    """What a guardian makes of one driver's heartbeats; without clock and port, so that time can be pretended."""

    def on_beats(self, data: bytes) -> Action:
        """Return what to do about bytes from the driver; none are the end of its side."""
        if not data:
            return self.on_end()
        return Action.LEAVE if FAREWELL in data else Action.ANSWER

    def on_silence(self) -> Action:
        """Return what to do after `SILENCE_SECONDS` without a byte: the driver hangs, and may go on later."""
        return Action.MAKE_SAFE

    def on_end(self) -> Action:
        """Return what to do about a driver whose side was closed without a farewell: it is dead."""
        return Action.MAKE_SAFE | Action.LEAVE


def serve(connection: socket.socket, takes: Callable[[int], bool]) -> None:
    """Guard the port that a driver hands on, if the guardian `takes` its descriptor, until the driver leaves or dies.

    Raises:
        OSError: If what comes is not from a driver.
    """
    connection.settimeout(JOIN_SECONDS)
    head, ports, _, _ = socket.recv_fds(connection, _HEAD.size, 1)
    try:
        first, second, seconds = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0, 0.0)
        requests, missing = b"", first + second
        while missing and (chunk := connection.recv(missing)):
            requests, missing = requests + chunk, missing - len(chunk)
        if missing or not first or not ports or not takes(ports[0]):
            raise ConnectionAbortedError("A driver sends its emergency request together with its port.")
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # the driver is dead, which reading will say, too
            connection.send(HEARTBEAT)
        guard(connection.fileno(), ports[0], requests[:first], requests[first:], seconds)
    finally:
        for port in ports:
            os.close(port)


def guard(connection: int, port: int, emergency: bytes, later: bytes = b"", seconds: float = 0.0) -> None:
    """Wait for heartbeats until the driver says goodbye or dies; make the device safe when it dies or hangs.

    Where `later` is given it is what makes safe `seconds` after the first time.
    """
    watch, action, due = Watch(), Action.NONE, 0.0
    while Action.LEAVE not in action:
        ready, _, _ = select.select([connection], [], [], SILENCE_SECONDS)
        action = watch.on_beats(_read(connection)) if ready else watch.on_silence()
        if Action.ANSWER in action:
            due = 0.0
            with contextlib.suppress(OSError):  # the driver is gone, which reading will say, too
                os.write(connection, HEARTBEAT)
        if Action.MAKE_SAFE in action:
            now = time.monotonic()
            due = due or now + seconds
            make_safe(port, later if later and now > due else emergency)
    with contextlib.suppress(OSError):
        os.write(connection, FAREWELL)
    if later and Action.MAKE_SAFE in action:
        _make_safe_later(port, later, due)


def _read(connection: int) -> bytes:
    try:
        return os.read(connection, 4096)
    except ConnectionError:  # it died before it had read all answers
        return b""


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


def _make_safe_later(port: int, request: bytes, due: float) -> None:
    """Write a request at a time, s, unless another driver has taken the port before: so it is let go meanwhile."""
    let_go(port)
    while True:
        try:
            fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        if (remaining := due - time.monotonic()) <= 0.0:
            make_safe(port, request)
            return
        fcntl.flock(port, fcntl.LOCK_UN)
        time.sleep(min(remaining, _LOOK_SECONDS))


def let_go(port: int) -> None:
    """Let others open a port of which this descriptor, or a copy of it elsewhere, is open."""
    with contextlib.suppress(OSError):
        fcntl.flock(port, fcntl.LOCK_UN)
        fcntl.ioctl(port, termios.TIOCNXCL)


def protect() -> None:
    """Ask the system to spare this process: the lowest OOM score, and memory that is never swapped out.

    It grants what the process has a right to; `protection_of` says what that was.
    """
    file = Path("/proc/self/oom_score_adj")
    for score in range(-1000, int(file.read_text()), 100):
        with contextlib.suppress(OSError):
            file.write_text(str(score))
            break
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))
    ctypes.CDLL(None).mlockall(_ALL_PAGES)


def protection_of(process_id: int) -> str:
    """Say how the system spares a process, such as `OOM score -1000, 12 MB locked in memory`."""
    try:
        folder = Path("/proc", str(process_id))
        score = (folder / "oom_score_adj").read_text().strip()
        locked = (folder / "status").read_text().partition("VmLck:")[2].split()[0]
    except (OSError, IndexError):
        return "unknown from here"
    memory = f"{int(locked) / 1000:.0f} MB" if int(locked) else "not"
    return f"OOM score {score}, {memory} locked in memory"


def main() -> None:
    """Guard the port that the driver hands on through standard input."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    protect()
    with socket.socket(fileno=sys.stdin.fileno()) as connection:
        serve(connection, takes=lambda port: True)


if __name__ == "__main__":
    main()
