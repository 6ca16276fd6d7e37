"""The guardian's rules in one process: what it does about beats, silence and ends, and how a driver takes it."""

import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from softform_actuation import guardian as guardian_module
from softform_actuation.guardian import (
    EMERGENCY_SECONDS,
    FAREWELL,
    FROZEN_SECONDS,
    HEARTBEAT,
    HEARTBEAT_SECONDS,
    SILENCE_SECONDS,
    Action,
    Guardian,
    Watch,
    guard,
    let_go,
    make_safe,
    serve,
    service_sockets,
)

HEAD = struct.Struct("!HHf")


class SetTime:
    """`time` as the guardian's module sees it, set by hand."""

    def __init__(self) -> None:
        self.at = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> SetTime:
    time = SetTime()
    monkeypatch.setattr(guardian_module, "time", time)
    return time


@pytest.fixture(autouse=True)
def no_broken_pipe_ends_the_tests() -> Iterator[None]:
    """A guardian's process ignores SIGPIPE, as Python does; a command that was tested here before may not."""
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGPIPE, before)


@pytest.fixture
def port() -> Iterator[tuple[int, int]]:
    """A port, and where it comes out."""
    outlet, inlet = os.pipe()
    os.set_blocking(outlet, False)
    yield inlet, outlet
    for descriptor in (inlet, outlet):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def heard(outlet: int) -> bytes:
    try:
        return os.read(outlet, 65536)
    except BlockingIOError:
        return b""


def test_what_a_guardian_does() -> None:
    watch = Watch()
    assert watch.on_beats(HEARTBEAT * 3) is Action.ANSWER
    assert watch.on_silence() is Action.MAKE_SAFE  # and stays: a frozen driver may thaw
    assert watch.on_beats(HEARTBEAT) is Action.ANSWER
    assert watch.on_beats(HEARTBEAT + FAREWELL) is Action.LEAVE
    assert watch.on_beats(b"") == watch.on_end() == Action.MAKE_SAFE | Action.LEAVE


# --- guard ------------------------------------------------------------------------------------------------------------


class Driver:
    """The other end of a guardian's connection; what it does in each of the guardian's waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *acts: Callable[["Driver"], None] | None) -> None:
        self.its, self.ours = socket.socketpair()
        self.ours.setblocking(False)
        self.made_safe: list[tuple[int, bytes]] = []
        self.waits: list[float] = []
        self._acts = list(acts)
        monkeypatch.setattr(guardian_module, "select", SimpleNamespace(select=self._select))
        monkeypatch.setattr(guardian_module, "make_safe", lambda *told: self.made_safe.append(told))

    def _select(self, read: list[int], write: list[int], strange: list[int], seconds: float) -> tuple:
        assert read == [self.its.fileno()] and write == strange == []
        self.waits.append(seconds)
        act = self._acts.pop(0)
        if act is None:
            return [], [], []
        act(self)
        return read, [], []

    def guarded(self, *later: object) -> bytes:
        """Guard until the guardian leaves; returns what it sent."""
        guard(self.its.fileno(), 7, b"V", *later)
        assert not self._acts
        with contextlib.suppress(BlockingIOError, OSError):
            return self.ours.recv(64)
        return b""


def beat(driver: Driver) -> None:
    driver.ours.send(HEARTBEAT)


def leave(driver: Driver) -> None:
    driver.ours.send(FAREWELL)


def die(driver: Driver) -> None:
    driver.ours.close()


def end_its_side(driver: Driver) -> None:
    driver.ours.shutdown(socket.SHUT_WR)


def test_beats_are_answered_and_a_driver_that_leaves_is_not_made_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(monkeypatch, beat, beat, leave)
    assert driver.guarded() == HEARTBEAT * 2 + FAREWELL
    assert driver.made_safe == [] and driver.waits == [SILENCE_SECONDS] * 3


def test_a_driver_that_hangs_is_made_safe_in_each_silence_and_guarded_on(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(monkeypatch, beat, None, None, beat, leave)
    assert driver.guarded() == HEARTBEAT * 2 + FAREWELL and driver.made_safe == [(7, b"V")] * 2


def test_a_driver_that_dies_is_made_safe_once_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(monkeypatch, beat, die)
    assert driver.guarded() == b"" and driver.made_safe == [(7, b"V")]
    driver = Driver(monkeypatch, end_its_side)  # and it is told when that is done
    assert driver.guarded() == FAREWELL and driver.made_safe == [(7, b"V")]


def test_what_a_frozen_driver_holds_is_held_for_a_while_only(monkeypatch: pytest.MonkeyPatch, time: SetTime) -> None:
    driver = Driver(monkeypatch, beat, None, None, None, beat, None, leave)
    wait, times = driver._select, iter([0.0, 0.0, 3.0, 6.0, 6.0, 6.0, 6.0])

    def select(*asked: object) -> tuple:
        time.at = 100.0 + next(times)
        return wait(*asked)

    monkeypatch.setattr(guardian_module, "select", SimpleNamespace(select=select))
    later: list[tuple[object, ...]] = []
    monkeypatch.setattr(guardian_module, "_make_safe_later", lambda *told: later.append(told))
    driver.guarded(b"S", 5.0)
    assert driver.made_safe == [(7, b"V"), (7, b"V"), (7, b"S"), (7, b"V")]  # it begins anew with a driver that thawed
    assert later == []  # it left by itself
    driver = Driver(monkeypatch, die)
    driver.guarded(b"S", 5.0)
    assert driver.made_safe == [(7, b"V")] and later == [(7, b"S", time.at + 5.0)]


def test_a_connection_that_is_reset_is_the_end_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def reset(descriptor: int, count: int) -> bytes:
        raise ConnectionResetError

    driver = Driver(monkeypatch, beat)
    monkeypatch.setattr(os, "read", reset)
    driver.guarded()
    assert driver.made_safe == [(7, b"V")]


def test_a_driver_that_is_gone_before_it_is_answered_is_made_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    def beat_and_die(driver: Driver) -> None:
        beat(driver)
        driver.ours.close()

    driver = Driver(monkeypatch, beat_and_die, lambda driver: None)
    driver.guarded()
    assert driver.made_safe == [(7, b"V")]


# --- the emergency request --------------------------------------------------------------------------------------------


def test_the_emergency_request_is_written_twice(time: SetTime, port: tuple[int, int]) -> None:
    make_safe(port[0], b"V\r\n")
    assert heard(port[1]) == b"V\r\nV\r\n" and time.slept == [0.1, 0.1]


def test_what_a_port_takes_piece_by_piece_is_written_whole(
    time: SetTime, port: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda port, data: write(port, data[:1]))
    make_safe(port[0], b"VENT")
    assert heard(port[1]) == b"VENT" * 2


@pytest.mark.parametrize("number", [errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADF])
def test_a_port_whose_device_is_gone_is_not_tried_on(
    time: SetTime, port: tuple[int, int], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def write(port: int, data: bytes) -> int:
        raise OSError(number, "gone")

    monkeypatch.setattr(os, "write", write)
    make_safe(port[0], b"V")
    assert time.slept == []


def test_a_full_port_is_flushed_and_tried_on_and_the_request_begins_anew(
    time: SetTime, port: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, tries, flushed = os.write, [], []

    def take_some(port: int, data: bytes) -> int:
        tries.append(data)
        if len(tries) == 2:
            raise BlockingIOError
        return write(port, data[:2]) if len(tries) == 1 else write(port, data)

    monkeypatch.setattr(os, "write", take_some)
    monkeypatch.setattr(guardian_module.termios, "tcflush", lambda port, queue: flushed.append((port, queue)))
    make_safe(port[0], b"VENT")
    assert tries == [b"VENT", b"NT", b"VENT", b"VENT"]
    assert flushed == [(port[0], guardian_module.termios.TCOFLUSH)] and time.slept == [0.02, 0.1, 0.1]


@pytest.mark.parametrize("rejected", [guardian_module.termios.error, OSError])
@pytest.mark.parametrize(
    ("error", "flushes"), [(BlockingIOError(errno.EAGAIN, "full"), True), (OSError(5000, "odd"), False)]
)
def test_a_port_that_takes_nothing_is_tried_for_a_while(
    time: SetTime,
    port: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    flushes: bool,
    rejected: type[Exception],
) -> None:
    flushed = []

    def write(port: int, data: bytes) -> int:
        raise error

    def flush(port: int, queue: int) -> None:
        flushed.append(queue)
        raise rejected

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(guardian_module.termios, "tcflush", flush)
    began = time.at
    make_safe(port[0], b"V")
    assert EMERGENCY_SECONDS < time.at - began < EMERGENCY_SECONDS + 0.5
    assert bool(flushed) == flushes and time.slept.count(0.02) == pytest.approx(EMERGENCY_SECONDS / 0.02, abs=2)


# --- the request that follows later -----------------------------------------------------------------------------------


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """A port that is open twice, by the guardian, who has it for itself, and by who may want it."""
    (tmp_path / "port").touch()
    ours, others = (os.open(tmp_path / "port", os.O_RDWR) for _ in range(2))
    fcntl.flock(ours, fcntl.LOCK_EX)
    yield ours, others
    os.close(ours)
    os.close(others)


def is_free(port: int) -> bool:
    try:
        fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(port, fcntl.LOCK_UN)
    return True


def test_a_port_that_is_let_go_can_be_opened_by_others(
    locked: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(fcntl, "ioctl", lambda *words: asked.append(words))
    assert not is_free(locked[1])
    let_go(locked[0])
    assert is_free(locked[1]) and asked == [(locked[0], guardian_module.termios.TIOCNXCL)]
    monkeypatch.undo()
    let_go(locked[0])  # which is no terminal


@pytest.mark.parametrize("is_taken", [False, True])
def test_what_follows_later_is_written_unless_another_driver_has_come(
    locked: tuple[int, int], time: SetTime, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    written, free, wait = [], [], time.sleep

    def sleep(seconds: float) -> None:
        wait(seconds)
        free.append(is_free(locked[1]))
        if is_taken and len(free) == 2:
            fcntl.flock(locked[1], fcntl.LOCK_EX)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(guardian_module, "make_safe", lambda *told: written.append((time.at, *told)))
    due = time.at + 0.7
    guardian_module._make_safe_later(locked[0], b"S", due)
    if is_taken:
        assert written == [] and time.slept == [0.2, 0.2]
    else:
        assert written == [(pytest.approx(due), locked[0], b"S")] and not is_free(locked[1])
        assert time.slept == [0.2, 0.2, 0.2, pytest.approx(0.1)]
    assert all(free)  # it is free to be taken meanwhile


# --- serving ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    seen: list[tuple[object, ...]] = []

    def note(connection: int, port: int, *requests: object) -> None:
        os.fstat(port)
        seen.append((connection, port, *requests))

    monkeypatch.setattr(guardian_module, "guard", note)
    return seen


def test_a_port_that_a_driver_hands_on_is_guarded_and_closed(
    port: tuple[int, int], guarded: list[tuple[object, ...]]
) -> None:
    ours, its = socket.socketpair()
    taken: list[int] = []
    socket.send_fds(ours, [HEAD.pack(3, 1, 60.0) + b"VE"], [port[0]])
    ours.send(b"NT")
    serve(its, lambda descriptor: not taken.append(descriptor))
    assert guarded == [(its.fileno(), taken[0], b"VEN", b"T", 60.0)] and taken[0] != port[0]
    assert ours.recv(8) == HEARTBEAT and not its.getblocking()
    with pytest.raises(OSError):
        os.fstat(taken[0])


@pytest.mark.parametrize("why", ["rejected", "none", "half", "empty", "short", "no head"])
def test_what_is_not_from_a_driver_is_not_guarded(
    port: tuple[int, int], guarded: list[tuple[object, ...]], why: str
) -> None:
    ours, its = socket.socketpair()
    whole = HEAD.pack(1, 0, 0.0) + b"V"
    bad = {
        "half": HEAD.pack(1, 1, 0.0) + b"V",
        "empty": HEAD.pack(0, 1, 0.0) + b"V",
        "short": whole[:4],
        "no head": b"",
    }
    data = bad.get(why, whole)
    if data:
        socket.send_fds(ours, [data], [] if why == "none" else [port[0]])
    ours.shutdown(socket.SHUT_WR)
    seen: list[int] = []
    with pytest.raises(ConnectionAbortedError, match="A driver sends its emergency request together with its port"):
        serve(its, lambda descriptor: seen.append(descriptor) or why != "rejected")
    its.close()
    assert guarded == [] and ours.recv(8) == b""
    for descriptor in seen:
        with pytest.raises(OSError):
            os.fstat(descriptor)


def test_a_stranger_that_says_nothing_does_not_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian_module, "JOIN_SECONDS", 0.01)
    ours, its = socket.socketpair()
    with pytest.raises(TimeoutError):
        serve(its, lambda descriptor: True)
    ours.close()


def test_a_driver_that_dies_while_it_joins_is_guarded_all_the_same(
    port: tuple[int, int], guarded: list[tuple[object, ...]]
) -> None:
    ours, its = socket.socketpair()
    socket.send_fds(ours, [HEAD.pack(1, 0, 0.0) + b"V"], [port[0]])
    ours.close()
    serve(its, lambda descriptor: True)
    assert len(guarded) == 1


# --- the driver's side ------------------------------------------------------------------------------------------------


class Service:
    """What listens where a guardian service would, in threads; it beats as it is told."""

    def __init__(self, path: Path) -> None:
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen()
        self.greeting = HEARTBEAT
        self.connection: socket.socket | None = None
        self.said = b""

    def accept(self) -> None:
        self.connection, _ = self.listening.accept()
        self.said = self.connection.recv(64)
        self.connection.send(self.greeting)
        self.connection.setblocking(False)

    def hears(self) -> bytes:
        assert self.connection is not None
        with contextlib.suppress(BlockingIOError):
            return self.connection.recv(64)
        return b""


class Rig:
    """A driver's guardian, joined to a service."""

    def __init__(self, path: Path, port: int, time: SetTime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time, self.service, self.children = time, Service(path), []
        self.made_safe: list[tuple[int, bytes]] = []
        monkeypatch.setattr(guardian_module, "service_sockets", lambda: [str(path)])
        monkeypatch.setattr(guardian_module, "make_safe", lambda *told: self.made_safe.append(told))
        monkeypatch.setattr(Guardian, "_start", lambda guardian: self._start(guardian))
        monkeypatch.setattr(guardian_module, "_reap", lambda process: None)
        self.port = port

    def _start(self, guardian: Guardian) -> socket.socket:
        guardian._unanswered_since = None
        ours, its = socket.socketpair()
        ours.setblocking(False)
        its.setblocking(False)
        self.children.append(its)
        return ours

    def join(self) -> Guardian:
        accepting = threading.Thread(target=self.service.accept)
        accepting.start()
        guardian = Guardian(self.port, b"VENT")
        accepting.join()
        return guardian


@pytest.fixture
def rig(tmp_path: Path, port: tuple[int, int], time: SetTime, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path / "guardian.sock", port[0], time, monkeypatch)


def test_a_driver_joins_a_service_beats_and_hears_its_answers(rig: Rig) -> None:
    guardian = rig.join()
    assert rig.service.said == HEAD.pack(4, 0, 0.0) + b"VENT" and (guardian.kind, guardian.complaint) == ("service", "")
    assert guardian.process_id == os.getpid()
    for _ in range(60):
        guardian.beat()
        if rig.service.hears():
            rig.service.connection.send(HEARTBEAT)
        rig.time.at += HEARTBEAT_SECONDS
    assert guardian.kind == "service" and rig.children == [] and guardian.complaint == ""


def test_it_beats_no_more_often_than_it_has_to(rig: Rig) -> None:
    guardian = rig.join()
    guardian.beat()
    assert rig.service.hears() == HEARTBEAT
    rig.time.at += HEARTBEAT_SECONDS - 0.01
    guardian.beat()
    assert rig.service.hears() == b""
    rig.time.at += 0.01 + 1e-9
    guardian.beat()
    assert rig.service.hears() == HEARTBEAT


def test_a_guardian_that_does_not_answer_for_long_is_replaced(rig: Rig) -> None:
    guardian = rig.join()
    guardian.beat()
    rig.time.at += FROZEN_SECONDS - 0.1
    guardian.beat()
    assert rig.children == []
    rig.time.at += HEARTBEAT_SECONDS
    rig.service.hears()
    guardian.beat()
    assert len(rig.children) == 1 and "The guardian service ended or was frozen" in guardian.complaint
    assert rig.service.hears() == FAREWELL  # should it thaw, it leaves a driver that lives alone
    rig.time.at += HEARTBEAT_SECONDS
    guardian.beat()
    assert rig.children[0].recv(8) == HEARTBEAT


def test_an_answer_counts_from_when_it_is_heard(rig: Rig) -> None:
    guardian = rig.join()
    for _ in range(5):
        guardian.beat()
        rig.time.at += FROZEN_SECONDS - 0.1
        rig.service.connection.send(HEARTBEAT)
    assert rig.children == []


def test_a_guardian_that_ends_is_replaced_at_the_next_beat(rig: Rig) -> None:
    guardian = rig.join()
    guardian.beat()
    rig.service.connection.close()
    rig.time.at += HEARTBEAT_SECONDS
    guardian.beat()
    assert len(rig.children) == 1 and "ended or was frozen" in guardian.complaint


def test_a_child_that_ends_is_replaced_without_a_complaint(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    reaped = []
    monkeypatch.setattr(guardian_module, "_reap", reaped.append)
    monkeypatch.setattr(guardian_module, "service_sockets", lambda: [])
    guardian = Guardian(rig.port, b"VENT")
    guardian._process = child = SimpleNamespace(pid=77)
    assert (guardian.kind, guardian.process_id) == ("child", 77)
    rig.children[0].close()
    guardian.beat()
    assert len(rig.children) == 2 and guardian.complaint == "" and reaped == [child]


def test_one_that_does_not_take_the_port_is_told_and_a_child_guards(rig: Rig) -> None:
    rig.service.greeting = FAREWELL
    guardian = rig.join()
    assert guardian.complaint == "The guardian service did not take the port." and len(rig.children) == 1
    assert rig.service.hears() == FAREWELL


def test_a_service_that_cannot_be_used_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rig.service.listening.close()
    guardian = Guardian(rig.port, b"VENT")
    path = tmp_path / "guardian.sock"
    assert guardian.complaint == f"The guardian service at {path} cannot be used: Connection refused."
    monkeypatch.setattr(guardian_module, "service_sockets", lambda: [str(tmp_path / "none"), str(path / "none")])
    assert Guardian(rig.port, b"VENT").complaint == "" and len(rig.children) == 2


def test_a_driver_that_ends_safe_says_goodbye(rig: Rig) -> None:
    guardian = rig.join()
    ending = threading.Thread(target=guardian.end, args=(False,))
    ending.start()
    rig.service.connection.setblocking(True)
    assert rig.service.connection.recv(8) == FAREWELL and rig.service.connection.recv(8) == b""
    rig.service.connection.send(FAREWELL)
    rig.service.connection.close()
    ending.join()
    assert rig.made_safe == [] and guardian._connection.fileno() == -1


@pytest.mark.parametrize("answer", [HEARTBEAT + FAREWELL, HEARTBEAT, b""])
def test_a_driver_that_ends_in_doubt_has_it_made_safe(rig: Rig, answer: bytes) -> None:
    guardian = rig.join()
    rig.service.connection.setblocking(True)
    ending = threading.Thread(target=guardian.end, args=(True,))
    ending.start()
    assert rig.service.connection.recv(8) == b""  # no farewell: it makes safe
    for one in answer:
        rig.service.connection.send(bytes([one]))
    rig.service.connection.close()
    ending.join()
    assert rig.made_safe == ([] if FAREWELL in answer else [(rig.port, b"VENT")])


def test_a_frozen_guardian_does_not_keep_the_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian_module, "_END_SECONDS", 0.05)
    monkeypatch.setattr(guardian_module, "EMERGENCY_SECONDS", 0.03)
    waited: list[float] = []
    guardian = rig.join()
    guardian._process = SimpleNamespace(wait=waited.append)
    guardian.end(True)
    assert rig.made_safe == [(rig.port, b"VENT")] and waited == [pytest.approx(0.02)]


@pytest.mark.parametrize(("emergency", "seconds"), [(True, 4.0), (False, 1.0)])
def test_an_end_waits_for_the_guardian_and_a_child_that_stays_is_killed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, emergency: bool, seconds: float
) -> None:
    guardian, waited, reaped = rig.join(), [], []

    def wait(seconds: float) -> None:
        raise guardian_module.subprocess.TimeoutExpired("guardian", seconds)

    monkeypatch.setattr(guardian_module, "_reap", reaped.append)
    guardian._process = child = SimpleNamespace(wait=wait)
    guardian._connection = SimpleNamespace(
        send=lambda data: 1,
        shutdown=lambda how: None,
        settimeout=waited.append,
        recv=_answers(HEARTBEAT, FAREWELL, HEARTBEAT),
        close=lambda: None,
    )
    guardian.end(emergency)
    assert waited == [seconds] and reaped == [child] and rig.made_safe == []


def _answers(*chunks: bytes) -> Callable[[int], bytes]:
    left = [*chunks]
    return lambda count: left.pop(0) if left else b""


def test_a_service_that_never_answers_is_waited_for_a_moment(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian_module, "JOIN_SECONDS", 0.01)
    assert "cannot be used: timed out" in Guardian(rig.port, b"VENT").complaint


def test_where_a_service_may_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(guardian_module.SOCKET_VARIABLE, "/elsewhere")
    assert service_sockets() == ["/elsewhere"]
    monkeypatch.setenv(guardian_module.SOCKET_VARIABLE, "")
    assert service_sockets() == []
    monkeypatch.delenv(guardian_module.SOCKET_VARIABLE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert service_sockets() == ["/run/softform/guardian.sock", "/run/user/7/softform/guardian.sock"]
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert service_sockets() == ["/run/softform/guardian.sock"]
