"""Where the driver keeps its latch: one place of the machine, whatever a shell, a checkout or a run says."""

import os
import pwd
from pathlib import Path

import pytest

from softform_actuation import state_files
from softform_actuation.assembly import latch_of
from softform_core.robots import load_robot

PORT = "/dev/serial/by-path/board"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, as the system knows it; no folder is shared, and no test's is set."""
    user = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd((*user[:5], str(tmp_path / "home"), user[6])))
    monkeypatch.setattr(state_files, "SHARED", tmp_path / "not there")
    monkeypatch.delenv(state_files.OVERRIDE, raising=False)
    return tmp_path / "home"


def test_a_latch_is_found_whatever_the_environment_says(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = load_robot("membrane")
    latch_of({"port": PORT}, robot).set("stopped")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for name in (
        "SOFTFORM_RUNS",
        "SOFTFORM_DATA",
        "HOME",
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
    ):
        monkeypatch.setenv(name, str(elsewhere / name))
        assert latch_of({"port": PORT}, robot).read() == "stopped", name
    assert latch_of({"port": "/dev/serial/by-path/other"}, robot).read() is None
    assert [path.parent for path in home.rglob("*.latch.json")] == [home / ".local" / "state" / "softform"]
    assert not list(elsewhere.iterdir())


def test_another_checkout_finds_it_too(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("membrane")
    latch_of({"port": PORT}, robot).set("stopped")
    monkeypatch.setenv("SOFTFORM_HOME", str(tmp_path / "checkout"))
    assert latch_of({"port": PORT}, robot).read() == "stopped"


def test_the_folder_of_the_machine_comes_first(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "SHARED", tmp_path)
    assert state_files.state_file(PORT, "latch") == tmp_path / "dev_serial_by_path_board.latch.json"


def test_a_shared_folder_that_cannot_be_written_is_no_reason_for_another_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot, shared = load_robot("membrane"), tmp_path / "shared"
    latch_of({"port": PORT}, robot).set("stopped")  # by this user, before there was a shared folder
    monkeypatch.setattr(state_files, "SHARED", shared)
    shared.mkdir()
    assert latch_of({"port": PORT}, robot).read() == "stopped"
    latch_of({"port": PORT}, robot).clear()
    assert not list(home.rglob("*.latch.json"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert state_files.state_file(PORT, "latch").parent == shared
    assert latch_of({"port": PORT}, robot).read() == f"the latch folder {shared} cannot be written"


def test_a_shared_folder_on_a_disk_that_is_not_mounted_counts_as_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.symlink_to(tmp_path / "disk")
    monkeypatch.setattr(state_files, "SHARED", shared)
    latch = latch_of({"port": PORT}, load_robot("membrane"))
    assert "cannot be written" in str(latch.read())
    latch.set("stopped")
    assert "would not survive" in latch.failure


def test_a_folder_that_is_set_is_the_only_one(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("membrane")
    latch_of({"port": PORT}, robot).set("stopped")
    monkeypatch.setenv(state_files.OVERRIDE, str(tmp_path / "own"))
    assert latch_of({"port": PORT}, robot).read() is None
