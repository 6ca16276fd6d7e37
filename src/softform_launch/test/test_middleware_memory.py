"""Shared memory that dead processes left is removed, what anybody uses is not."""

import fcntl
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from softform_launch.middleware_memory import OF_MIDDLEWARE, SHARED_MEMORY, remove_unused

PORT = ["fastrtps_port7001", "sem.fastrtps_port7001_mutex"]
SEGMENT = ["fastrtps_00ff9d7035ee68e6", "fastrtps_00ff9d7035ee68e6_el"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in [*PORT, *SEGMENT, "of_another_program"]:
        (tmp_path / name).write_bytes(b"0")
    return tmp_path


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_nobody_uses_is_removed_and_other_programs_files_are_not(folder: Path) -> None:
    assert remove_unused(folder, youngest=0.0) == 4
    assert left(folder) == ["of_another_program"]


def test_what_is_mapped_stays(folder: Path) -> None:
    with (folder / PORT[0]).open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert remove_unused(folder, youngest=0.0) == 2
    assert left(folder) == sorted([*PORT, "of_another_program"])


def test_what_is_locked_stays(folder: Path) -> None:
    with (folder / SEGMENT[1]).open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert remove_unused(folder, youngest=0.0) == 2
    assert left(folder) == sorted([*SEGMENT, "of_another_program"])


def test_what_has_just_been_made_stays(folder: Path) -> None:
    assert remove_unused(folder) == 0


def test_a_nodes_memory_is_recognised() -> None:
    """The names are the middleware's: should it use others one day, this fails."""
    program = "import rclpy, sys; rclpy.init(); node = rclpy.create_node('short'); print('up', flush=True); input()"
    words = [sys.executable, "-c", program]
    before = set(os.listdir(SHARED_MEMORY))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None and node.stdout.readline() == "up\n"
        made = {name for name in set(os.listdir(SHARED_MEMORY)) - before if "fastrtps" in name}
        mapped = Path(f"/proc/{node.pid}/maps").read_text(encoding="utf-8")
        node.communicate("\n")
    assert made and all(OF_MIDDLEWARE.fullmatch(name) for name in made)
    assert any(f"{SHARED_MEMORY}/{name}" in mapped for name in made)
