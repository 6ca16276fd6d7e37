"""A computer that is about to sleep waits until the robot is safe; played by a bus of this test's own."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jeepney import DBusAddress, MessageType, message_bus, new_error, new_method_return, new_signal
from jeepney.io.blocking import Proxy, open_dbus_connection

from softform_actuation import sleep
from softform_actuation.sleep import SleepWatch

MANAGER = DBusAddress("/org/freedesktop/login1", None, "org.freedesktop.login1.Manager")


class Logind(threading.Thread):
    """Grants delays, each a pipe that ends when it is let go of, and tells of sleep."""

    def __init__(self, grants: bool) -> None:
        super().__init__(daemon=True)
        self._grants = grants
        self._bus = open_dbus_connection("SYSTEM", enable_fds=True)
        Proxy(message_bus, self._bus).RequestName("org.freedesktop.login1")
        self.asked: list[tuple[str, ...]] = []
        self.delays: list[int] = []

    def run(self) -> None:
        while True:
            try:
                call = self._bus.receive()
            except (OSError, ValueError, RuntimeError):
                return
            if call.header.message_type is not MessageType.method_call:
                continue
            self.asked.append(call.body)
            if not self._grants:
                self._bus.send(new_error(call, "org.freedesktop.DBus.Error.AccessDenied"))
                continue
            reader, writer = os.pipe()
            self._bus.send(new_method_return(call, "h", (writer,)))
            os.close(writer)
            self.delays.append(reader)

    def tell(self, begins: bool) -> None:
        self._bus.send(new_signal(MANAGER, "PrepareForSleep", "b", (begins,)))

    def may_sleep(self, delay: int) -> bool:
        os.set_blocking(self.delays[delay], False)
        try:
            return os.read(self.delays[delay], 1) == b""
        except BlockingIOError:
            return False


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    if shutil.which("dbus-daemon") is None:
        pytest.skip("There is no dbus-daemon here (Debian's package dbus-daemon).")
    process = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address", f"--address=unix:path={tmp_path}/bus"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", process.stdout.readline().strip().split(",")[0])
    monkeypatch.setattr(sleep, "_TICK_SECONDS", 0.05)
    yield process
    process.kill()
    process.communicate()


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_sleep_waits_until_all_is_safe_each_time(bus: subprocess.Popen[str]) -> None:
    logind = Logind(grants=True)
    logind.start()
    is_safe, calls = threading.Event(), []

    def make_safe() -> None:
        calls.append("safe")
        is_safe.wait()

    watch = SleepWatch(make_safe)
    assert watch.is_watching
    assert [(asked[0], asked[3]) for asked in logind.asked] == [("sleep", "delay")]
    logind.tell(True)
    wait_for(lambda: calls)
    assert not logind.may_sleep(0)
    is_safe.set()
    wait_for(lambda: logind.may_sleep(0))
    logind.tell(False)  # it woke up: the next sleep is held back, too
    wait_for(lambda: len(logind.delays) == 2)
    logind.tell(True)
    wait_for(lambda: logind.may_sleep(1))
    assert len(calls) == 2
    watch.close()
    assert not watch.is_watching


def test_what_fails_does_not_keep_the_computer_awake(
    bus: subprocess.Popen[str], caplog: pytest.LogCaptureFixture
) -> None:
    logind = Logind(grants=True)
    logind.start()
    watch = SleepWatch(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    logind.tell(True)
    wait_for(lambda: logind.may_sleep(0))
    assert "was not made safe" in caplog.text and watch.is_watching
    watch.close()


def test_a_watch_that_ends_lets_the_computer_sleep(bus: subprocess.Popen[str]) -> None:
    logind = Logind(grants=True)
    logind.start()
    watch = SleepWatch(lambda: None)
    watch.close()
    wait_for(lambda: logind.may_sleep(0))


def test_a_bus_that_ends_is_told(bus: subprocess.Popen[str], caplog: pytest.LogCaptureFixture) -> None:
    logind = Logind(grants=True)
    logind.start()
    watch = SleepWatch(lambda: None)
    bus.kill()
    wait_for(lambda: not watch.is_watching)
    assert "any more" in caplog.text
    watch.close()


@pytest.mark.parametrize("who", ["no bus", "a bus without logind", "a logind that rejects"])
def test_where_nobody_tells_it_is_said_once_and_nothing_is_done(
    who: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus")
    if who != "no bus":
        request.getfixturevalue("bus")
    if who == "a logind that rejects":
        Logind(grants=False).start()
    watch = SleepWatch(lambda: None)
    assert not watch.is_watching
    assert [record.levelname for record in caplog.records] == ["INFO"]
    watch.close()
