"""A power cut at every point of storing frames, and every damaged file: a frame is whole, or it is told lost."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.frames.marker_store import create_marker_frames
from softform_core.frames.quality import COVERAGE_CELLS, FrameQuality, MarkerQuality
from softform_core.frames.recording import Recording
from softform_core.frames.store import FrameStore, create_frames, open_recording
from softform_core.halton import halton_actuations
from softform_core.robots import load_robot

ROBOT = load_robot("membrane")
PROVENANCE = {"seed": 0, "source": "test", "via": "scanner", "git_revision": "none", "created": "now"}
ACTUATIONS = halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, 3, 0)
NAMES = ["m01", "m02", "m03"]
SEEN = np.tri(COVERAGE_CELLS, dtype=bool)
VIA = ["scanner", "mocap"]

Tree = dict[str, bytes]


class Disk:
    """What would be on the disk, below a folder, were the power cut before each call that orders it.

    Whoever wants a content or a name to stay has to fsync the file, or its folder. Three kinds of disk: one keeps only
    that, one keeps all names but no other content, one keeps all.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trees: list[tuple[int, Tree]] = []
        self.done = 0  # what was promised before the cut
        self._folder = folder
        self._contents: dict[tuple[int, int], bytes] = {}
        self._names: dict[int, dict[str, tuple[int, int]]] = {}
        fsync, replace = os.fsync, os.replace

        def spied_fsync(fd: int) -> None:
            self.cut()
            fsync(fd)
            self._synced(Path(os.readlink(f"/proc/self/fd/{fd}")))

        def spied_replace(source: str | Path, target: str | Path) -> None:
            self.cut()
            replace(source, target)

        monkeypatch.setattr(os, "fsync", spied_fsync)
        monkeypatch.setattr(os, "replace", spied_replace)

    def cut(self) -> None:
        """Keep what the three disks hold now."""
        names = {path: _identity(path) for path in self._folder.rglob("*") if path.is_file()}
        now = {str(path.relative_to(self._folder)): (path, identity) for path, identity in names.items()}
        found = [
            self._kept(self._folder.stat().st_ino, ""),
            {name: self._contents.get(identity, b"") for name, (_, identity) in now.items()},
            {name: path.read_bytes() for name, (path, _) in now.items()},
        ]
        self.trees += [(self.done, tree) for tree in found if (self.done, tree) not in self.trees]

    def _synced(self, path: Path) -> None:
        if path.is_dir():
            self._names[path.stat().st_ino] = {one.name: _identity(one) for one in path.iterdir()}
        else:
            self._contents[_identity(path)] = path.read_bytes()

    def _kept(self, folder: int, prefix: str) -> Tree:
        found: Tree = {}
        for name, identity in self._names.get(folder, {}).items():
            if identity[1] < 0:
                found |= self._kept(identity[0], f"{prefix}{name}/")
            else:
                found[prefix + name] = self._contents.get(identity, b"")
        return found


def _identity(path: Path) -> tuple[int, int]:
    """Number of the file and when it was written, for numbers are used again; of folders -1."""
    state = path.stat()
    return state.st_ino, -1 if path.is_dir() else state.st_mtime_ns


def laid_out(tree: Tree, folder: Path) -> Path:
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "frames.zarr"


def created(path: Path, via: str) -> Recording:
    if via == "scanner":
        return create_frames(path, ROBOT, ACTUATIONS, PROVENANCE)
    return create_marker_frames(path, ROBOT, ACTUATIONS, NAMES, data(0, via)[:3], PROVENANCE)


def data(number: int, via: str) -> np.ndarray:
    """Never zero; the clouds' chunks are shared by frames."""
    return 1.0 + np.random.default_rng(number).random((6000 if via == "scanner" else 3, 3)).astype(np.float32)


def write(store: Recording, number: int, via: str, fault: str = "") -> None:
    measured, moment = store.actuation[number] + 5.0, 100.0 + number
    if isinstance(store, FrameStore):
        store.write_captured(number, data(number, via), measured, moment, FrameQuality(0.75, SEEN, 0.01, fault))
    else:
        store.write_captured(number, data(number, via), measured, moment, MarkerQuality(0.75, fault))


def whole_frames(path: Path, via: str) -> set[int]:
    """Frames that the reader returns; each is what was written."""
    store = open_recording(path, ROBOT)
    captured, measured, moments, coverage = store.captured.tolist(), store.measured, store.captured_at, store.coverage
    assert sorted(captured + store.pending.tolist() + list(store.rejections)) == list(range(len(store)))
    assert set(store.lost) <= set(store.pending.tolist())
    for number in captured:
        if isinstance(store, FrameStore):
            assert np.array_equal(store.points(number), data(number, via))
        else:
            assert np.array_equal(store.positions(number), data(number, via))
        assert np.array_equal(measured[number], ACTUATIONS[number] + 5.0)
        assert moments[number] == 100.0 + number and coverage[number] == 0.75
    return set(captured)


@pytest.mark.parametrize("via", VIA)
def test_a_power_cut_leaves_each_frame_whole_or_not_captured(tmp_path, monkeypatch, via):
    disk = Disk(tmp_path / "before", monkeypatch)
    (tmp_path / "before").mkdir()
    store = created(tmp_path / "before" / "frames.zarr", via)
    for number, fault in ((0, ""), (1, ""), (2, "a hand before the scanner.")):
        disk.done = number + 1
        write(store, number, via, fault)
    disk.done = 4
    disk.cut()
    monkeypatch.undo()
    assert len(disk.trees) > 60
    for place, (done, tree) in enumerate(disk.trees):
        path = laid_out(tree, tmp_path / "after")
        if done or path.exists():
            found = whole_frames(path, via)
            assert found >= set(range(done - 1)) - {2}, f"cut {place} lost a frame that was stored"
        shutil.rmtree(tmp_path / "after", ignore_errors=True)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("via", VIA)
@pytest.mark.parametrize("damage", [lambda content: None, lambda content: b"", lambda content: content[:-1] + b"\0"])
def test_a_file_that_is_lost_or_damaged_takes_its_frames_out(tmp_path, via, damage):
    path = tmp_path / "frames.zarr"
    store = created(path, via)
    for number in (0, 1):
        write(store, number, via)
    lost = 0
    for file in [one for one in path.rglob("*") if one.is_file()]:
        content = file.read_bytes()
        damaged = damage(content)
        file.unlink() if damaged is None else file.write_bytes(damaged)
        try:
            lost += whole_frames(path, via) != {0, 1}
        except SoftformError:
            lost += 1
        file.write_bytes(content)
    assert lost >= 8 and whole_frames(path, via) == {0, 1}


@pytest.mark.parametrize("via", VIA)
def test_a_lost_frame_is_named_and_captured_again(tmp_path, via):
    path = tmp_path / "frames.zarr"
    store = created(path, via)
    for number in (0, 1):
        write(store, number, via)
    shutil.rmtree(path / "measured" / "c")
    found = open_recording(path, ROBOT, writable=True)
    assert set(found.lost) == {0, 1} and not len(found.captured) and found.pending.tolist() == [0, 1, 2]
    assert all("not what was stored" in reason for reason in found.lost.values())
    write(found, 1, via)
    assert set(found.lost) == {0} and whole_frames(path, via) == {1}


def test_a_file_is_on_disk_once_it_is_written(tmp_path, monkeypatch):
    disk = Disk(tmp_path, monkeypatch)
    for number in (1, 2):
        write_atomically(tmp_path / "state", b"%d" % number)
        disk.done = number
    disk.cut()
    assert len(disk.trees) > 8
    for done, tree in disk.trees:
        assert tree.get("state", b"0") in {b"%d" % done, b"%d" % (done + 1)}
