"""The service manager hears what it is told, and nobody waits for one that does not listen."""

import socket
from pathlib import Path

import pytest

from softform_core.service_notify import notify


@pytest.mark.parametrize("named", ["file", "abstract"])
def test_the_manager_hears(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name if named == "file" else f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", name if named == "file" else f"@{name}")
        notify("READY=1\nSTATUS=moves")
        assert manager.recv(64) == b"READY=1\nSTATUS=moves"
        manager.setblocking(False)
        for _ in range(1000):  # one that reads nothing more
            notify("WATCHDOG=1")
    notify("WATCHDOG=1")  # one that is gone


def test_outside_of_a_service_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
