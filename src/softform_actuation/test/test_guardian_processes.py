"""The guardian, as a service and as a child: it makes safe whatever ends the driver, which notices whatever ends it."""

import contextlib
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import softform_actuation
import softform_core
from softform_actuation import guardian as guardian_module
from softform_actuation.guardian import (
    EMERGENCY_SECONDS,
    HEARTBEAT_SECONDS,
    JOIN_SECONDS,
    SOCKET_VARIABLE,
    Guardian,
    protection_of,
    service_sockets,
)
from softform_actuation.ports import open_port

PACKAGES = os.pathsep.join(str(Path(package.__file__).parents[1]) for package in (softform_actuation, softform_core))

# What of a driver matters here: it holds a port and beats. `sys.argv`: the port, then what the guardian writes, what it
# writes later, and how many seconds later.
DRIVER_PROGRAM = """
import sys, time
from softform_actuation.guardian import Guardian
from softform_actuation.ports import open_port
port = open_port(sys.argv[1], 115200)
guardian = Guardian(port.fileno(), sys.argv[2].encode(), sys.argv[3].encode(), float(sys.argv[4]))
print(guardian.kind, flush=True)
while True:
    guardian.beat()
    time.sleep(0.02)
"""


class Terminal:
    """A port without a device: what is written to it is heard here."""

    def __init__(self) -> None:
        self._device, self.port = pty.openpty()
        tty.setraw(self.port)
        self.path = os.ttyname(self.port)

    def heard(self, count: int, seconds: float) -> bytes:
        """Return `count` bytes, or fewer if they do not come in time."""
        data, deadline = b"", time.monotonic() + seconds
        while len(data) < count and (left := deadline - time.monotonic()) > 0:
            if select.select([self._device], [], [], left)[0]:
                data += os.read(self._device, count - len(data))
        return data

    def close(self) -> None:
        os.close(self._device)
        os.close(self.port)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where drivers look for a service; there is none unless `service` is asked for."""
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "guardian.sock"))
    return str(tmp_path / "guardian.sock")


@pytest.fixture
def service(path: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-S", "-P", "-m", "softform_actuation.guardian_service", path],
        env=os.environ | {"PYTHONPATH": PACKAGES},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None and path in process.stderr.readline()
    yield process
    process.kill()
    process.communicate()


@contextlib.contextmanager
def driver_at(
    terminal: Terminal, emergency: str = "V", later: str = "", seconds: float = 0.0
) -> Iterator[subprocess.Popen[str]]:
    """A driver whose guardian is the service."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER_PROGRAM, terminal.path, emergency, later, str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "service\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def beats(guardian: Guardian, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        guardian.beat()
        time.sleep(0.02)


@pytest.mark.parametrize("emergency", [False, True])
def test_a_driver_joins_the_service_and_says_goodbye(
    service: subprocess.Popen[str], terminal: Terminal, emergency: bool
) -> None:
    before = time.monotonic()
    guardian = Guardian(terminal.port, b"V")
    assert time.monotonic() - before < JOIN_SECONDS / 2
    assert (guardian.kind, guardian.process_id, guardian.complaint) == ("service", service.pid, "")
    beats(guardian, 2.5 * HEARTBEAT_SECONDS)
    guardian.end(emergency)
    assert terminal.heard(3, 0.1) == b"VV" * emergency  # the service is done when `end` returns
    assert not any("ptm" in file.path or "pts" in file.path for file in psutil.Process(service.pid).open_files())


@pytest.mark.parametrize("whole_session", [False, True])
def test_kill_9_of_the_driver_and_of_all_its_session(
    service: subprocess.Popen[str], terminal: Terminal, whole_session: bool
) -> None:
    with driver_at(terminal) as driver:
        (os.killpg if whole_session else os.kill)(driver.pid, signal.SIGKILL)
        assert terminal.heard(2, 5.0) == b"VV"
    assert service.poll() is None


def test_what_a_dead_driver_holds_is_held_for_a_while_only(service: subprocess.Popen[str], terminal: Terminal) -> None:
    with driver_at(terminal, "H", "S", 0.8) as driver:
        driver.kill()
        killed = time.monotonic()
        assert terminal.heard(3, 5.0) == b"HHS"
        assert time.monotonic() - killed > 0.7
        assert terminal.heard(1, 1.0) == b"S"


def test_what_a_dead_driver_held_is_the_next_drivers(service: subprocess.Popen[str], terminal: Terminal) -> None:
    with driver_at(terminal, "H", "S", 5.0) as driver:  # on a busy machine the next one takes seconds to start
        driver.kill()
        assert terminal.heard(2, 5.0) == b"HH"
    with driver_at(terminal, "G") as following:  # though the guardian still has the port
        assert terminal.heard(1, 6.0) == b""
        following.kill()
        assert terminal.heard(3, 1.0) == b"GG"
    port = open_port(terminal.path, 115200)
    port.close()


def test_a_frozen_driver_is_made_safe(service: subprocess.Popen[str], terminal: Terminal) -> None:
    with driver_at(terminal) as driver:
        os.kill(driver.pid, signal.SIGSTOP)
        assert terminal.heard(2, 5.0) == b"VV"


def test_two_drivers_at_once(service: subprocess.Popen[str], terminal: Terminal) -> None:
    other = Terminal()
    with driver_at(terminal, "A") as first, driver_at(other, "B"):
        first.kill()
        assert terminal.heard(2, 5.0) == b"AA"
        assert other.heard(1, 0.3) == b""
    assert other.heard(2, 5.0) == b"BB"
    other.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_service_that_ends_is_followed_by_a_child(
    service: subprocess.Popen[str], terminal: Terminal, number: int
) -> None:
    guardian = Guardian(terminal.port, b"V")
    os.kill(service.pid, number)
    beats(guardian, 0.5 + 3 * HEARTBEAT_SECONDS)
    assert guardian.kind == "child" and "ended or was frozen" in guardian.complaint
    assert service.wait(5.0) == (0 if number == signal.SIGTERM else -number)
    assert terminal.heard(1, 0.1) == b""  # neither made a driver safe that lives
    guardian.end(emergency=True)
    assert terminal.heard(2, 5.0) == b"VV"


def test_a_service_that_ends_guards_drivers_that_are_frozen(service: subprocess.Popen[str], terminal: Terminal) -> None:
    with driver_at(terminal) as driver:
        os.kill(driver.pid, signal.SIGSTOP)
        os.kill(service.pid, signal.SIGTERM)
        assert terminal.heard(2, 5.0) == b"VV"


def test_a_frozen_service_is_followed_by_a_child_and_does_nothing_when_it_thaws(
    service: subprocess.Popen[str], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    guardian = Guardian(terminal.port, b"V")
    beats(guardian, HEARTBEAT_SECONDS)
    monkeypatch.setattr(guardian_module, "FROZEN_SECONDS", 2 * HEARTBEAT_SECONDS)
    os.kill(service.pid, signal.SIGSTOP)
    beats(guardian, 5 * HEARTBEAT_SECONDS)
    assert guardian.kind == "child" and guardian.complaint
    beats(guardian, guardian_module.SILENCE_SECONDS)
    os.kill(service.pid, signal.SIGCONT)
    assert terminal.heard(1, 0.5) == b""
    guardian.end(emergency=False)
    assert Guardian(terminal.port, b"V").kind == "service"


def test_a_service_that_is_frozen_from_the_first_delays_the_driver_for_a_moment(
    service: subprocess.Popen[str], terminal: Terminal
) -> None:
    os.kill(service.pid, signal.SIGSTOP)
    before = time.monotonic()
    guardian = Guardian(terminal.port, b"V")
    assert time.monotonic() - before < JOIN_SECONDS + 0.5
    assert guardian.kind == "child" and "cannot be used: timed out" in guardian.complaint
    os.kill(service.pid, signal.SIGCONT)
    assert terminal.heard(1, 0.3) == b""
    guardian.end(emergency=False)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_what_a_service_does_not_do_at_the_end_the_driver_does(
    service: subprocess.Popen[str], terminal: Terminal, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guardian_module, "_END_SECONDS", 0.2)
    guardian = Guardian(terminal.port, b"V")
    os.kill(service.pid, number)
    guardian.end(emergency=True)
    assert terminal.heard(2, 0.1) == b"VV"


def test_what_no_driver_sends_is_refused(service: subprocess.Popen[str], path: str, terminal: Terminal) -> None:
    reader, pipe = os.pipe()
    whole = b"\0\1" + bytes(6) + b"V"
    for data, descriptors in (
        (b"", []),
        (b"\0", [terminal.port]),
        (b"GET / HTTP/1.1\r\n", []),
        (whole, []),
        (whole, [pipe]),  # its rights to write elsewhere are not the driver's
        (bytes(8), [terminal.port]),
        (b"\0\2" + bytes(6) + b"V", [terminal.port]),  # half an emergency request
        (b"\0\0\0\1" + bytes(4) + b"V", [terminal.port]),  # another one without it
    ):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            if data:
                socket.send_fds(client, [data], descriptors)
            client.shutdown(socket.SHUT_WR)
            client.settimeout(2 * JOIN_SECONDS)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(16) == b"", data
    assert terminal.heard(1, 0.05) == b""
    guardian = Guardian(terminal.port, b"V")
    assert guardian.kind == "service"
    guardian.end(emergency=False)
    os.close(pipe)
    assert os.read(reader, 16) == b""
    os.close(reader)


def test_without_a_service_there_is_a_child_and_no_complaint(
    path: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    guardian = Guardian(terminal.port, b"V")
    assert (guardian.kind, guardian.complaint) == ("child", "")
    guardian.end(emergency=False)
    monkeypatch.setenv(SOCKET_VARIABLE, "")
    assert service_sockets() == []
    monkeypatch.delenv(SOCKET_VARIABLE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert service_sockets() == ["/run/softform/guardian.sock", "/run/user/7/softform/guardian.sock"]


def test_a_service_that_was_killed_leaves_a_socket_that_is_told(
    service: subprocess.Popen[str], terminal: Terminal
) -> None:
    service.kill()
    service.wait()
    guardian = Guardian(terminal.port, b"V")
    assert guardian.kind == "child" and "Connection refused" in guardian.complaint
    guardian.end(emergency=False)


def test_the_service_tells_its_manager_and_lets_its_group_in(path: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10.0)
        process = subprocess.Popen(
            [sys.executable, "-m", "softform_actuation.guardian_service", path],
            env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
            stderr=subprocess.DEVNULL,
        )
        try:
            assert [manager.recv(64) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
            assert Path(path).stat().st_mode & 0o777 == 0o660
        finally:
            process.kill()
            process.wait()


def test_a_guardian_asks_to_be_spared(path: str, terminal: Terminal) -> None:
    guardian = Guardian(terminal.port, b"V")
    beats(guardian, 2 * HEARTBEAT_SECONDS)
    score = int(Path(f"/proc/{guardian.process_id}/oom_score_adj").read_text())
    assert score <= int(Path("/proc/self/oom_score_adj").read_text())
    assert protection_of(guardian.process_id).startswith(f"OOM score {score}, ")
    assert psutil.Process(guardian.process_id).memory_info().rss < 25 * 2**20
    guardian.end(emergency=False)
    assert protection_of(0) == "unknown from here"


def test_what_a_child_ignores_does_not_end_it_while_it_starts(path: str) -> None:
    reader, writer = os.pipe()
    guardian = Guardian(writer, b"V")
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT):
            os.kill(guardian.process_id, number)
        started = guardian.process_id
        for _ in range(3):
            time.sleep(HEARTBEAT_SECONDS)
            guardian.beat()
        assert guardian.process_id == started
    finally:
        guardian.end(emergency=True)
        os.close(writer)
    with os.fdopen(reader, "rb") as port:
        assert port.read() == b"VV"


def full_port() -> tuple[int, int]:
    """A port that takes nothing, as that of a hung adapter (EAGAIN), and where it would come out."""
    outlet, port = os.pipe()
    os.set_blocking(port, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(port, b"T")
    return outlet, port


def test_a_port_that_takes_nothing_is_tried_on_until_it_does(path: str) -> None:
    outlet, port = full_port()
    guardian = Guardian(port, b"V\r\n")
    heard: list[bytes] = []

    def listen() -> None:
        time.sleep(EMERGENCY_SECONDS / 2)
        while chunk := os.read(outlet, 65536):
            heard.append(chunk)

    listener = threading.Thread(target=listen)
    listener.start()
    guardian.end(emergency=True)
    os.close(port)
    listener.join()
    os.close(outlet)
    assert b"".join(heard).lstrip(b"T") == b"V\r\n" * 2


def test_a_port_that_never_takes_anything_does_not_keep_the_guardian_for_ever(path: str) -> None:
    outlet, port = full_port()
    guardian = Guardian(port, b"V\r\n")
    before = time.monotonic()
    guardian.end(emergency=True)
    assert EMERGENCY_SECONDS - 0.1 < time.monotonic() - before < EMERGENCY_SECONDS + 1.5
    assert guardian._process is not None and guardian._process.returncode == 0  # by itself, not killed
    os.close(port)
    os.close(outlet)
