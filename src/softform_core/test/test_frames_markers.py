"""Marker frames: averaged, compared with the rest frame, kept on disk."""

import shutil

import numpy as np
import pytest
import zarr

from softform_core.errors import SoftformError
from softform_core.frames.marker_quality import LabelledMarkers, average_markers, check_same_rest, rest_frame
from softform_core.frames.marker_store import MarkerStore, create_marker_frames, open_marker_frames
from softform_core.frames.quality import MarkerQuality
from softform_core.frames.store import FrameStore, create_frames, open_recording
from softform_core.halton import halton_actuations
from softform_core.robots import load_robot

pytestmark = pytest.mark.slow

ROBOT = load_robot("membrane")
NAMES = ["m01", "m02", "m03", "m04", "m05"]
REST = np.array([[-0.1, -0.1, 0.0], [0.1, -0.1, 0.0], [0.1, 0.1, 0.0], [-0.1, 0.1, 0.0], [0.0, 0.0, 0.0]])
PROVENANCE = {"seed": 0, "source": "test", "via": "mocap", "git_revision": "none", "created": "now"}
GOOD = MarkerQuality(0.8, "")


def actuations(frames: int) -> np.ndarray:
    return halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, frames, 0)


def created(path) -> MarkerStore:
    return create_marker_frames(path / "markers.zarr", ROBOT, actuations(4), NAMES, REST, PROVENANCE)


def positions(number: int) -> np.ndarray:
    moved = REST + np.random.default_rng(number).normal(scale=0.01, size=REST.shape)
    moved[number % 5] = np.nan
    return moved


def write(store: MarkerStore, number: int, quality: MarkerQuality = GOOD) -> None:
    store.write_captured(number, positions(number), store.actuation[number] + 5.0, 100.0 + number, quality)


def test_what_is_written_comes_back_with_its_missing_markers(tmp_path):
    store = created(tmp_path)
    for number in (2, 0):
        write(store, number)
    write(store, 1, MarkerQuality(0.2, "20% of the markers are seen."))
    store.extend(actuations(7))
    again = open_marker_frames(store.path, ROBOT)
    assert list(again.captured) == [0, 2] and again.names == NAMES
    assert np.array_equal(again.rest, REST)
    assert np.array_equal(again.captured_positions(), [positions(0), positions(2)], equal_nan=True)
    assert np.array_equal(again.measured[[0, 2]], again.actuation[[0, 2]] + 5.0)
    assert store.rejections == {1: "20% of the markers are seen."} and list(store.pending) == [3, 4, 5, 6]
    assert np.array_equal(store.positions(1), positions(1), equal_nan=True)
    assert store.same_positions(positions(1)) == 1 and store.same_positions(positions(3)) is None


def test_a_store_is_opened_as_what_it_is(tmp_path):
    created(tmp_path)
    create_frames(tmp_path / "frames.zarr", ROBOT, actuations(2), PROVENANCE | {"via": "scanner"})
    assert isinstance(open_recording(tmp_path / "markers.zarr", ROBOT), MarkerStore)
    assert isinstance(open_recording(tmp_path / "frames.zarr", ROBOT), FrameStore)
    with pytest.raises(SoftformError, match="There is no set of frames"):
        open_recording(tmp_path / "nothing.zarr")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: shutil.rmtree(path / "rest"), "misshapen: .*rest"),
        (lambda path: shutil.rmtree(path / "positions"), "misshapen: positions"),
        (lambda path: zarr.open_group(path, mode="r+").attrs.update({"robot": "helix"}), "for robot 'helix'"),
        (lambda path: zarr.open_group(path, mode="r+").attrs.update({"schema_version": 9}), "version 9"),
    ],
)
def test_a_damaged_store_says_what_is_wrong(tmp_path, damage, said):
    store = created(tmp_path)
    write(store, 0)
    damage(store.path)
    with pytest.raises(SoftformError, match=said):
        open_marker_frames(store.path, ROBOT)


def test_a_frame_whose_positions_are_gone_is_lost(tmp_path):
    store = created(tmp_path)
    write(store, 0)
    shutil.rmtree(store.path / "positions" / "c")
    again = open_marker_frames(store.path, ROBOT)
    assert not len(again.captured) and list(again.lost) == [0]


@pytest.mark.parametrize(
    ("names", "rest"),
    [(NAMES[:4], REST), (["m01"] * 5, REST), (NAMES, REST * np.nan), ([], np.empty((0, 3)))],
    ids=["too few names", "one name", "missing", "none"],
)
def test_a_rest_frame_that_is_not_whole_makes_no_store(tmp_path, names, rest):
    with pytest.raises(SoftformError, match="rest frame"):
        create_marker_frames(tmp_path / "m.zarr", ROBOT, actuations(2), names, rest, PROVENANCE)
    assert not (tmp_path / "m.zarr").exists()


def frames_of(*shown: np.ndarray, names: list[str] = NAMES) -> list[LabelledMarkers]:
    return [LabelledMarkers(names, each) for each in shown]


def test_the_mean_leaves_out_what_is_missing():
    hidden = REST + 0.002
    hidden[0] = np.nan
    mean, fault = average_markers(frames_of(REST, REST + 0.001, hidden), NAMES, ROBOT)
    assert fault == "" and np.allclose(mean[1:], REST[1:] + 0.001) and np.allclose(mean[0], REST[0] + 0.0005)
    mean, fault = average_markers(frames_of(REST, hidden, hidden), NAMES, ROBOT)
    assert fault == "" and np.isnan(mean[0]).all() and np.isfinite(mean[1:]).all()


def test_names_and_jumps_are_reported():
    assert "m06 were not there at rest" in average_markers(frames_of(REST, names=[*NAMES[:4], "m06"]), NAMES, ROBOT)[1]
    # A marker that was hidden at rest is no renamed one.
    mean, fault = average_markers(frames_of(REST), NAMES[1:], ROBOT)
    assert fault == "" and np.array_equal(mean, REST[1:])
    jumped = REST.copy()
    jumped[2, 0] += 0.05
    assert "m03 moves by" in average_markers(frames_of(REST, jumped), NAMES, ROBOT)[1]


def test_the_rest_frame_names_the_markers_that_are_seen():
    hidden = REST.copy()
    hidden[3] = np.nan
    names, rest = rest_frame(frames_of(hidden, hidden), ROBOT)
    assert names == ["m01", "m02", "m03", "m05"] and np.array_equal(rest, REST[[0, 1, 2, 4]])
    with pytest.raises(SoftformError, match="No marker is seen"):
        rest_frame(frames_of(REST * np.nan), ROBOT)


def test_markers_moved_or_renamed_between_sessions_are_rejected():
    check_same_rest(NAMES, REST, NAMES[1:], REST[1:] + 0.001, ROBOT)
    moved = REST.copy()
    moved[4, 1] += 0.02
    with pytest.raises(SoftformError, match="m05 rested elsewhere"):
        check_same_rest(NAMES, REST, NAMES, moved, ROBOT)
    with pytest.raises(SoftformError, match="only 1 of 5 names"):
        check_same_rest(NAMES, REST, ["m01", "x2", "x3", "x4", "x5"], REST, ROBOT)
