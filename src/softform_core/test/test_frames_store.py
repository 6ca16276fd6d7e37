"""The frames store: what is written comes back, whatever stops the writer."""

import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.frames.quality import COVERAGE_CELLS, FrameQuality
from softform_core.frames.recording import FrameStatus
from softform_core.frames.store import FrameStore, create_frames, open_frames
from softform_core.halton import halton_actuations
from softform_core.robots import load_robot
from softform_core.stores.past import REMEMBERED

ROBOT = load_robot("membrane")
PROVENANCE = {"seed": 0, "source": "test", "via": "scanner", "git_revision": "none", "created": "now"}
GOOD = FrameQuality(0.75, np.tri(COVERAGE_CELLS, dtype=bool), 0.01, "")


def actuations(frames: int, seed: int = 0) -> np.ndarray:
    return halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, frames, seed)


def created(path: Path, frames: int = 4) -> FrameStore:
    return create_frames(path, ROBOT, actuations(frames), PROVENANCE)


def cloud(number: int, points: int) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(points, 3)).astype(np.float32)


def write(store: FrameStore, number: int, points: int = 50, quality: FrameQuality = GOOD) -> None:
    store.write_captured(number, cloud(number, points), store.actuation[number] + 5.0, 100.0 + number, quality)


@pytest.mark.long
@settings(max_examples=15)
@given(order=st.permutations(range(4)), sizes=st.lists(st.integers(1, 20_000), min_size=4, max_size=4))
def test_clouds_of_any_size_come_back_in_any_order(order, sizes, tmp_path_factory):
    store = created(tmp_path_factory.mktemp("frames") / "frames.zarr")
    for number in order:
        write(store, number, sizes[number])
    again = open_frames(store.path, ROBOT)
    assert list(again.captured) == [0, 1, 2, 3] and not len(again.pending)
    for number, size in enumerate(sizes):
        assert np.array_equal(again.captured_points(number), cloud(number, size))
        assert np.array_equal(again.measured[number], again.actuation[number] + 5.0)
        assert again.captured_at[number] == 100.0 + number and again.coverage[number] == 0.75
        assert np.array_equal(store.covered[number], GOOD.covered)


def test_a_frame_that_was_cut_short_is_taken_again(tmp_path):
    """Points and offsets that were written without their status belong to nobody."""
    store = created(tmp_path / "frames.zarr")
    write(store, 0)
    write(store, 1, 400)
    group = zarr.open_group(store.path, mode="r+")
    group["status"][1] = FrameStatus.PENDING
    assert list(open_frames(store.path).pending) == [1, 2, 3]
    write(store, 1, 30)
    write(store, 2)
    assert [len(store.captured_points(n)) for n in (0, 1, 2)] == [50, 30, 50]
    assert np.array_equal(store.captured_points(2), cloud(2, 50))


def test_a_longer_data_set_begins_with_the_shorter(tmp_path):
    store = created(tmp_path / "frames.zarr")
    write(store, 3)
    store.extend(actuations(9))
    assert len(store) == 9 and np.array_equal(store.actuation, actuations(9))
    assert list(store.captured) == [3] and np.array_equal(store.captured_points(3), cloud(3, 50))
    assert np.isnan(store.measured[4:]).all() and np.isnan(store.coverage[4:]).all()
    store.extend(actuations(2))
    assert len(store) == 9
    with pytest.raises(SoftformError, match="other actuations"):
        store.extend(actuations(12, seed=1))


def test_a_growth_that_was_cut_short_is_done_again(tmp_path):
    store = created(tmp_path / "frames.zarr")
    write(store, 0)
    group = zarr.open_group(store.path, mode="r+")
    for name, array in group.arrays():
        if name != "points":
            array.resize((9, *array.shape[1:]))
    again = open_frames(store.path, ROBOT, writable=True)
    assert len(again) == 4 and list(again.pending) == [1, 2, 3]
    again.extend(actuations(9))
    assert len(again) == 9 and list(again.captured) == [0]


def test_what_was_commanded_before_each_frame_is_known_from_when_they_were_captured(tmp_path):
    """Frame 1 is taken again in a second session, which begins at rest as the first did."""
    store, rest = created(tmp_path / "frames.zarr"), np.full(9, 7.0)
    assert store.pasts(rest) is None  # nobody says that these were collected one after the other
    store.begin_session({"began": datetime.fromtimestamp(99.0, UTC).isoformat()})
    write(store, 0)
    write(store, 1, quality=replace(GOOD, fault="a hand before the scanner."))
    write(store, 2)
    a, known = store.actuation, store.pasts(rest)
    assert np.array_equal(known[0], np.tile(rest, (REMEMBERED, 1)))
    assert np.array_equal(known[2], [*[rest] * (REMEMBERED - 2), a[0], a[1]])
    store.take_back([1])
    store.begin_session({"began": datetime.fromtimestamp(150.0, UTC).isoformat()})
    store.write_captured(1, cloud(1, 50), a[1], 160.0, GOOD)
    again = open_frames(store.path, ROBOT).pasts(rest)
    assert again.shape == (4, REMEMBERED, 9)
    assert np.array_equal(again[1], [*[rest] * (REMEMBERED - 3), a[0], a[2], rest])


def test_rejected_frames_keep_their_cloud_and_reason(tmp_path):
    store = created(tmp_path / "frames.zarr")
    write(store, 2, quality=FrameQuality(0.1, GOOD.covered, 0.0, "it covers too little."))
    assert store.rejections == {2: "it covers too little."}
    assert len(store.points(2)) == 50 and not len(store.captured) and list(store.pending) == [0, 1, 3]
    with pytest.raises(SoftformError, match="Frame 2 .* not captured"):
        store.captured_points(2)
    assert store.same_cloud(cloud(2, 50)) == 2
    assert store.same_cloud(cloud(1, 50)) is None


def test_values_that_are_not_finite_are_rejected(tmp_path):
    store = created(tmp_path / "frames.zarr")
    points = cloud(0, 20)
    points[3, 1] = np.nan
    with pytest.raises(SoftformError, match="Frame 0 .* not finite"):
        store.write_captured(0, points, store.actuation[0], 1.0, GOOD)
    with pytest.raises(SoftformError, match="not finite"):
        store.write_captured(0, cloud(0, 20), np.full(9, np.nan), 1.0, GOOD)
    assert len(store.pending) == 4 and not len(store.points(0))


def test_a_full_disk_says_so_and_loses_nothing(tmp_path):
    """The limit on file sizes stands in for the end of the disk: metadata fit below it, a cloud does not."""
    store = created(tmp_path / "frames.zarr")
    write(store, 0)
    code = (
        "import numpy as np\nfrom softform_core.frames.quality import *\nfrom softform_core.frames.store import *\n"
        f"store = open_frames({str(store.path)!r}, writable=True)\n"
        "quality = FrameQuality(1.0, np.ones((COVERAGE_CELLS, COVERAGE_CELLS), bool), 0.0, '')\n"
        "store.write_captured(1, np.random.rand(16000, 3), store.actuation[1], 1.0, quality)\n"
    )

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    stopped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=no_large_files)
    assert stopped.returncode != 0
    assert (
        "SoftformError: Writing the set of frames" in stopped.stderr and "run the same command again" in stopped.stderr
    )
    cut = open_frames(store.path, ROBOT, writable=True)
    assert list(cut.captured) == [0] and np.array_equal(cut.captured_points(0), cloud(0, 50))
    write(cut, 1, 16_000)
    assert np.array_equal(cut.captured_points(1), cloud(1, 16_000))


def test_two_do_not_write_one_store(tmp_path):
    path = tmp_path / "frames.zarr"
    with (
        only_writer(path, "collecting"),
        pytest.raises(SoftformError, match=rf"Another process \({os.getpid()}: .*\) is collecting"),
        only_writer(path, "collecting"),
    ):
        pass
    with only_writer(path, "collecting"):
        pass


def test_who_was_killed_holds_no_store(tmp_path):
    path = tmp_path / "frames.zarr"
    lines = (
        "from softform_core.files import *",
        f"with only_writer(Path({str(path)!r}), 'x'):",
        " os.kill(os.getpid(), 9)",
    )
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)]).returncode == -9
    assert (tmp_path / ".frames.zarr.lock").read_text()
    with only_writer(path, "collecting"):
        pass


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda p: shutil.rmtree(p / "status"), "misshapen: status"),
        (lambda p: shutil.rmtree(p / "actuation"), "misshapen: actuation"),
        (lambda p: zarr.open_group(p, mode="r+").attrs.update({"schema_version": 7}), "version 7"),
        (
            lambda p: zarr.open_group(p, mode="r+").attrs.update({"schema": "softform/simulation"}),
            "softform/simulation",
        ),
        (lambda p: zarr.open_group(p, mode="r+").attrs.update({"robot": "helix"}), "for robot 'helix'"),
        (lambda p: (p / "zarr.json").write_text("{"), "cannot be read|not a Zarr group"),
        (lambda p: shutil.rmtree(p), "There is no set of frames"),
    ],
)
def test_a_damaged_store_says_what_is_wrong(tmp_path, damage, said):
    path = created(tmp_path / "frames.zarr").path
    damage(path)
    with pytest.raises(SoftformError, match=said):
        open_frames(path, ROBOT)


def test_lost_points_are_noticed(tmp_path):
    store = created(tmp_path / "frames.zarr")
    write(store, 0)
    zarr.open_group(store.path, mode="r+")["points"].resize((20, 3))
    with pytest.raises(SoftformError, match="Frame 0 .* is lost"):
        store.captured_points(0)


def test_actuations_fill_the_working_range():
    many = actuations(400)
    assert (many >= ROBOT.actuation_min).all() and (many <= ROBOT.actuation_max).all()
    share = (many - ROBOT.actuation_min) / (ROBOT.actuation_max - ROBOT.actuation_min)
    counts = np.array([np.histogram(column, bins=10, range=(0.0, 1.0))[0] for column in share.T])
    assert counts.min() >= 20  # 40 a tenth if even
    assert np.array_equal(actuations(40), many[:40])
    assert not np.array_equal(actuations(40, seed=1), many[:40])
    with pytest.raises(SoftformError, match="one at least"):
        actuations(0)
