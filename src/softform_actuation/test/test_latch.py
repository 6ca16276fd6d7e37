"""The latch over every way in which its files, its folder and the names of its port can be wrong."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from softform_actuation import latch as latch_module
from softform_actuation.assembly import latch_of
from softform_actuation.latch import LEFT_ACTIVE, LEFT_UNCONFIRMED, Latch
from softform_core.errors import SoftformError
from softform_core.robots import load_robot


def test_a_latch_is_found_again_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state" / "latch.json"
    assert Latch(path).read() is None
    Latch(path).set("stopped by request")
    assert Latch(path).read() == "stopped by request"
    Latch(path).clear()
    assert Latch(path).read() is None
    Latch(path).clear()


@pytest.mark.parametrize("content", [b"", b"{", b'{"reason": 3}', b"\xff\xfe", b"[]"])
def test_a_damaged_latch_counts_as_latched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "latch.json"
    path.write_bytes(content)
    assert "cannot be read" in str(Latch(path).read())


@pytest.mark.parametrize("doubt", [LEFT_ACTIVE, f"{LEFT_UNCONFIRMED} (the board is lost)"])
def test_a_stop_without_a_driver_does_not_claim_that_a_robot_left_in_doubt_is_vented(
    tmp_path: Path, doubt: str
) -> None:
    latch = Latch(tmp_path / "latch.json")
    for _ in range(2):
        assert "moves nothing" in latch.stop_unconfigured()
    assert "not configured" in str(latch.read())
    latch.set(doubt)
    for _ in range(2):
        with pytest.raises(SoftformError, match="nothing was made safe now"):
            latch.stop_unconfigured()
    assert latch.read() == doubt
    latch.set("a chamber leaked")  # and the board had confirmed that it vents
    assert "moves nothing" in latch.stop_unconfigured() and latch.read() == "a chamber leaked"


def test_a_stop_that_could_not_be_latched_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(latch_module, "write_atomically", full)
    with pytest.raises(SoftformError, match="would not survive"):
        Latch(tmp_path / "latch.json").stop_unconfigured()


def test_a_latch_that_cannot_be_written_says_so_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    latch = Latch(tmp_path / "file" / "latch.json")
    latch.set("stopped")
    assert "would not survive" in latch.failure


@pytest.mark.parametrize("number", ["77", None])
def test_a_latch_is_found_by_whatever_name_the_port_has_now(
    plugged: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str | None
) -> None:
    monkeypatch.setenv("SOFTFORM_STATE", str(tmp_path))
    robot = load_robot("membrane")

    def latch(port: str) -> Latch:
        return latch_of({"port": port}, robot)

    plugged(("/dev/ttyUSB0", number, "1-1"))
    latch("/dev/ttyUSB0").set("stopped by request")
    plugged(("/dev/ttyUSB1", number, "1-1"), ("/dev/ttyUSB2", "9", "1-4"))
    assert latch("/dev/ttyUSB2").read() is None
    assert latch("/dev/ttyUSB1").read() == "stopped by request"
    plugged()
    assert str(latch("/dev/ttyUSB0").read()).startswith("stopped by request")
    plugged(("/dev/ttyUSB0", number, "1-1"))
    latch("/dev/ttyUSB0").clear()
    assert not list(tmp_path.iterdir())


def test_a_latch_tells_whose_it_is_and_a_reset_of_another_device_leaves_that_one_latched(
    plugged: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOFTFORM_STATE", str(tmp_path))
    robot, port = load_robot("membrane"), {"port": "/dev/null"}  # 1:3 stands for the number that passes on
    plugged(("/dev/null", "77", "1-1"))
    latch_of(port, robot).set("a chamber leaked")
    assert "USB adapter 1a86:7523 77" in (tmp_path / "device_1_3.latch.json").read_text()
    plugged(("/dev/null", "78", "1-2"))
    latch = latch_of(port, robot)
    assert latch.read() == "a chamber leaked (latched for USB adapter 1a86:7523 77)"
    latch.clear()
    assert latch.read() is None
    plugged(("/dev/null", "77", "1-1"))
    assert latch_of(port, robot).read() == "a chamber leaked"


def test_a_stop_in_a_container_without_adapters_is_found_on_the_host(
    plugged: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOFTFORM_STATE", str(tmp_path))
    robot, link = load_robot("membrane"), tmp_path / "board"
    link.symlink_to("/dev/null")
    plugged()
    latch_of({"port": "/dev/null"}, robot).set("stopped")
    plugged(("/dev/null", "77", "1-1"))
    assert str(latch_of({"port": str(link)}, robot).read()).startswith("stopped")


def deny(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A folder where this user, which may be root, may not write."""
    access = os.access

    def denied(path: Path, mode: int) -> bool:
        return not (Path(path) == folder and mode & os.W_OK) and access(path, mode)

    monkeypatch.setattr(os, "access", denied)

    def reject(path: Path, content: bytes) -> None:
        raise SoftformError(f"{path} cannot be written: Permission denied.", "Check the folder.")

    monkeypatch.setattr(latch_module, "write_atomically", reject)


def test_a_folder_that_is_there_and_cannot_be_written_is_latched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    latch = Latch(tmp_path / "latch.json")
    assert latch.read() is None
    deny(monkeypatch, tmp_path)
    assert latch.read() == f"the latch folder {tmp_path} cannot be written"
    with pytest.raises(SoftformError, match="stays latched: the latch folder"):
        latch.clear()
    latch.set("stopped")
    assert "would not survive" in latch.failure
    with pytest.raises(SoftformError, match="would not survive"):
        latch.stop_unconfigured()


def test_what_was_left_elsewhere_counts_and_goes_with_the_rest(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "latch.json", tmp_path / "there" / "latch.json"
    Latch(there).set("stopped")
    latch = Latch(here, elsewhere=[there])
    assert latch.read() == "stopped"
    latch.set("stopped again")
    assert "again" in here.read_text() and "again" not in there.read_text()
    latch.clear()
    assert latch.read() is None and not there.exists()
    there.mkdir()
    with pytest.raises(SoftformError, match="cannot be removed"):
        latch.clear()
