import errno
import os
import threading
import time

import numpy as np
import pytest

from softform_capture.scanner import folder_source
from softform_capture.scanner.folder_source import (
    REST_WITHOUT_END,
    FolderSource,
    FolderWatcher,
    RejectedFile,
    ScanFile,
    capture_time,
)
from softform_core.errors import SoftformError
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply

SURFACE = Shape(np.random.default_rng(0).random((500, 3)))


def write_scan(path, captured_at=1_700_000_000.25):
    write_ply(path, SURFACE, "mm", [f"captured_at {captured_at:.6f}"])
    return path


def poll_twice(source):
    """What appears is taken at the second look, when it has stopped changing."""
    return source.poll() + source.poll()


@pytest.fixture
def source(tmp_path):
    return FolderSource(tmp_path, "mm")


def test_a_new_export_is_read_once_in_metres_with_its_capture_time(tmp_path, source):
    assert poll_twice(source) == []
    write_scan(tmp_path / "a.ply")
    (found,) = poll_twice(source)
    assert isinstance(found, ScanFile)
    assert found.path == tmp_path / "a.ply"
    assert found.captured_at == pytest.approx(1_700_000_000.25)
    assert np.allclose(found.shape.points, SURFACE.points, atol=1e-7)
    assert poll_twice(source) == []


def test_a_name_used_again_is_a_new_export(tmp_path, source):
    for captured_at in (1_700_000_000.0, 1_700_000_001.0):
        write_scan(tmp_path / "latest.ply", captured_at)
        (found,) = poll_twice(source)
        assert found.captured_at == captured_at


def test_exports_come_oldest_first(tmp_path, source):
    for number, name in enumerate(["c.ply", "a.ply", "b.ply"]):
        write_scan(tmp_path / name)
        os.utime(tmp_path / name, ns=(10**18 + number, 10**18 + number))
    assert [found.path.name for found in poll_twice(source)] == ["c.ply", "a.ply", "b.ply"]


def test_an_export_that_is_replaced_while_it_is_read_does_not_lend_its_shape_a_later_time(
    tmp_path, source, monkeypatch
):
    path, read = write_scan(tmp_path / "latest.ply", 1_700_000_000.0), folder_source.read_shape

    def replace_behind(path, unit):
        shape = read(path, unit)
        write_scan(tmp_path / ".next.ply", 1_700_000_003.0).rename(path)
        return shape

    monkeypatch.setattr(folder_source, "read_shape", replace_behind)
    assert poll_twice(source) == []
    monkeypatch.undo()
    (found,) = poll_twice(source)
    assert found.path == path and found.captured_at == 1_700_000_003.0


def test_many_exports_are_read_a_few_at_a_time(tmp_path, source):
    for number in range(2 * folder_source.AT_ONCE + 1):
        write_scan(tmp_path / f"{number:02d}.ply")
        os.utime(tmp_path / f"{number:02d}.ply", ns=(10**18 + number, 10**18 + number))
    polls = [[found.path.stem for found in source.poll()] for _ in range(5)]
    assert [len(names) for names in polls] == [0, folder_source.AT_ONCE, folder_source.AT_ONCE, 1, 0]
    assert sum(polls, []) == sorted(sum(polls, []))


def test_a_drive_that_comes_back_does_not_make_its_exports_new(tmp_path):
    source = FolderSource(tmp_path / "drive", "mm")
    (tmp_path / "drive").mkdir()
    write_scan(tmp_path / "drive" / "a.ply")
    assert len(poll_twice(source)) == 1
    (tmp_path / "drive").rename(tmp_path / "away")
    (tmp_path / "drive").mkdir()
    assert poll_twice(source) == []
    (tmp_path / "drive").rmdir()
    (tmp_path / "away").rename(tmp_path / "drive")
    assert poll_twice(source) == []


def test_thousands_of_old_exports_are_passed_over_unread(tmp_path, source):
    for number in range(3000):
        (tmp_path / f"{number}.ply").write_bytes(b"damaged")
    assert source.skip_existing() == 3000
    assert poll_twice(source) == []
    write_scan(tmp_path / "new.ply")
    assert [found.path.name for found in poll_twice(source)] == ["new.ply"]


def test_old_exports_are_read_where_they_are_asked_for(tmp_path, source):
    write_scan(tmp_path / "old.ply")
    assert len(poll_twice(source)) == 1


def test_a_file_still_being_written_is_waited_for(tmp_path, source):
    whole = write_scan(tmp_path / ".hidden.ply").read_bytes()
    growing = tmp_path / "growing.ply"
    for end in range(500, len(whole), 1500):
        growing.write_bytes(whole[:end])
        assert source.poll() == []
    growing.write_bytes(whole)
    (found,) = poll_twice(source)
    assert isinstance(found, ScanFile)


def test_a_file_read_too_early_is_rejected_and_read_again_when_whole(tmp_path, source):
    whole = write_scan(tmp_path / ".hidden.ply").read_bytes()
    (tmp_path / "a.ply").write_bytes(whole[:-100])
    (first,) = poll_twice(source)
    assert isinstance(first, RejectedFile)
    assert "truncated" in first.reason
    assert poll_twice(source) == []
    (tmp_path / "a.ply").write_bytes(whole)
    (second,) = poll_twice(source)
    assert isinstance(second, ScanFile)


@pytest.mark.parametrize("name", ["a.obj", "a.XYZ"])
def test_a_type_without_an_end_mark_must_rest_for_longer(tmp_path, source, name):
    rows = ["0 0 0\n", "1 0 0\n", "1 1 0\n", "0 1 5\n", "9 9 9\n"]
    rows = [f"v {row}" for row in rows] if name == "a.obj" else rows
    now = [0.0]
    source.clock = lambda: now[0]
    (tmp_path / name).write_text("".join(rows[:4]))  # the writer pauses where the file seems to be whole
    for now[0] in (0.0, 1.0, REST_WITHOUT_END - 0.1):
        assert source.poll() == []
    with open(tmp_path / name, "a") as file:
        file.write(rows[4])
    for now[0] in (REST_WITHOUT_END, REST_WITHOUT_END + 1.0):
        assert source.poll() == []
    now[0] = 2.0 * REST_WITHOUT_END
    (found,) = source.poll()
    assert len(found.shape.points) == 5


def test_bad_files_are_rejected_with_reasons_and_good_ones_still_come(tmp_path, source):
    (tmp_path / "empty.ply").touch()
    (tmp_path / "noise.stl").write_bytes(os.urandom(300))
    (tmp_path / "noise.obj").write_bytes(os.urandom(300))
    source.clock = iter([0.0, REST_WITHOUT_END]).__next__
    (tmp_path / "dangling.ply").symlink_to(tmp_path / "none")
    (tmp_path / "folder.ply").mkdir()
    (tmp_path / "notes.txt").write_text("not a scan")
    write_scan(tmp_path / "good.ply")
    found = {result.path.name: result for result in poll_twice(source)}
    assert set(found) == {"empty.ply", "noise.stl", "noise.obj", "good.ply"}
    assert isinstance(found.pop("good.ply"), ScanFile)
    assert all(isinstance(result, RejectedFile) and str(result.path) in result.reason for result in found.values())


def test_an_export_that_is_tidied_away_is_no_fault(tmp_path, source):
    write_scan(tmp_path / "a.ply")
    source.poll()
    (tmp_path / "a.ply").unlink()
    assert source.poll() == []


def test_a_folder_may_come_later_but_a_missing_one_is_said(tmp_path):
    source = FolderSource(tmp_path / "later", "mm")
    with pytest.raises(SoftformError, match="cannot be read"):
        source.poll()
    (tmp_path / "later").mkdir()
    write_scan(tmp_path / "later" / "a.ply")
    assert len(poll_twice(source)) == 1


def test_without_a_stated_capture_time_it_is_the_time_of_change(tmp_path):
    path = tmp_path / "a.ply"
    write_ply(path, SURFACE, "mm")
    os.utime(path, (1.6e9, 1.6e9))
    assert capture_time(path) == 1.6e9


@pytest.mark.parametrize("stated", ["yesterday", "nan", "-5", "0"])
def test_a_capture_time_that_is_none_is_rejected(tmp_path, stated):
    path = tmp_path / "a.ply"
    write_ply(path, SURFACE, "mm", [f"captured_at {stated}"])
    with pytest.raises(SoftformError, match="capture time"):
        capture_time(path)


def test_a_scanner_whose_clock_is_ahead_is_rejected(tmp_path):
    with pytest.raises(SoftformError, match="in the future"):
        capture_time(write_scan(tmp_path / "a.ply", time.time() + 60.0))


def test_the_watcher_survives_a_drive_that_fails(tmp_path, source, monkeypatch):
    failures, faults, came = [OSError(errno.ESTALE, "Stale file handle"), MemoryError()], [], threading.Event()
    poll = source.poll

    def failing():
        if failures:
            raise failures.pop()
        return poll()

    monkeypatch.setattr(source, "poll", failing)
    watcher = FolderWatcher(source, 0.02, lambda scan: came.set(), print, faults.append)
    watcher.start()
    write_scan(tmp_path / "a.ply")
    assert came.wait(20.0)
    watcher.stop()
    assert faults[:2] == ["MemoryError: ", "OSError: [Errno 116] Stale file handle"] and faults[-1] == ""


def test_the_watcher_survives_what_its_callbacks_raise(tmp_path, source):
    scans, rejected, faults = [], [], []
    three = threading.Event()

    def on_scan(scan):
        scans.append(scan.path.name)
        if len(scans) == 3:
            three.set()
        if scan.path.name == "a.ply":
            raise SoftformError("too small", "scale it")
        if scan.path.name == "b.ply":
            raise ZeroDivisionError("division by zero")

    watcher = FolderWatcher(source, 0.02, on_scan, rejected.append, faults.append)
    watcher.start()
    for name in ("a.ply", "b.ply", "c.ply"):
        write_scan(tmp_path / name)
    assert three.wait(20.0)
    watcher.stop()
    assert sorted(scans) == ["a.ply", "b.ply", "c.ply"]
    assert {r.path.name: r.reason for r in rejected} == {
        "a.ply": "too small scale it",
        "b.ply": "ZeroDivisionError: division by zero",
    }
    assert set(faults) == {""}
    write_scan(tmp_path / "late.ply")
    time.sleep(0.1)
    assert "late.ply" not in scans
