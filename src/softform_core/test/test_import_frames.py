"""Scans from elsewhere become frames: judged as collected ones, resumed, named where they are unfit."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.store import open_frames
from softform_core.halton import halton_actuations
from softform_core.importing import frames as importing
from softform_core.importing.frames import import_frames
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_core.shapes.read import read_shape
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply
from softform_core.training.recorded_frames import read_recorded_frames
from softform_core.units import MM_PER_M, PA_PER_KPA

FRAMES = 4
COLUMNS = [f"p{number}" for number in range(1, 10)]


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture
def captures(robot, tmp_path):
    """A table in kPa of scans in mm, a little higher than simulated; the third one is of a robot half a metre away."""
    pipeline = load_pipeline(robot, 3000)
    actuations = halton_actuations(robot.actuation_min, robot.actuation_max, FRAMES, 5)
    rows = [",".join([*COLUMNS, "scan"])]
    for number, actuation in enumerate(actuations):
        points = pipeline.points(actuation) / MM_PER_M * [1.0, 1.0, 1.05] + [0.5 * (number == 2), 0.0, 0.0]
        write_ply(tmp_path / f"scan_{number}.ply", Shape.from_cloud(points), "mm")
        rows.append(",".join([*(f"{value / PA_PER_KPA:.4f}" for value in actuation), f"scan_{number}.ply"]))
    table = tmp_path / "captures.csv"
    table.write_text("\n".join(rows) + "\n")
    return table, actuations


def run(table, *arguments):
    words = ["import", "frames", str(table), "--robot", "membrane", "--actuation", ",".join(COLUMNS)]
    return CliRunner().invoke(main, [*words, "--output", str(table.parent / "frames.zarr"), *arguments])


def test_fit_scans_are_learned_from_and_the_unfit_one_is_named(robot, captures):
    table, actuations = captures
    result = run(table, "--unit", "mm", "--actuation-unit", "kPa")
    assert result.exit_code == 0, result.output
    assert "3 frames" in result.output and "frame 2 is rejected" in result.output and "beside robot" in result.output
    assert "train s2r --robot membrane" in result.output
    store = open_frames(table.parent / "frames.zarr", robot)
    assert store.captured.tolist() == [0, 1, 3]
    np.testing.assert_allclose(store.actuation, actuations, atol=0.1)
    np.testing.assert_array_equal(store.measured, store.actuation)
    weights = extract_mlp(load_forward_kinematics(robot)[0])
    recorded = read_recorded_frames(store.path, robot, weights, 0)
    assert recorded.numbers == [0, 1, 3] and recorded.origin["source"].startswith("captures.csv")


def test_frames_in_order_know_what_was_before_them(robot, captures):
    table, actuations = captures
    assert run(table, "--unit", "mm", "--actuation-unit", "kPa", "--in-order").exit_code == 0
    past = open_frames(table.parent / "frames.zarr", robot).pasts(robot.rest_actuation)
    assert np.isnan(past[0]).all() and np.isnan(past[3][:-3]).all()
    np.testing.assert_allclose(past[3][-3:], actuations[:3], atol=0.1)  # the rejected one was gone through, too
    read = read_recorded_frames(table.parent / "frames.zarr", robot, extract_mlp(load_forward_kinematics(robot)[0]), 0)
    np.testing.assert_array_equal(read.frames.past, past[[0, 1, 3]])


def test_an_interrupted_import_goes_on_and_another_table_is_not_added(robot, captures, monkeypatch):
    table, _ = captures
    arguments = robot, table, COLUMNS, "scan", "mm", "kPa", table.parent / "frames.zarr"

    def read_file(path, unit):
        if path.name == "scan_3.ply":
            raise KeyboardInterrupt
        return read(path, unit)

    read = importing.read_file
    monkeypatch.setattr(importing, "read_file", read_file)
    with pytest.raises(KeyboardInterrupt):
        import_frames(*arguments, progress=False)
    assert open_frames(arguments[-1]).pending.tolist() == [3]
    monkeypatch.undo()
    assert len(import_frames(*arguments, progress=False).captured) == 3
    table.write_text(table.read_text() + table.read_text().splitlines()[1] + "\n")
    with pytest.raises(SoftformError, match="other frames.*another --output"):
        import_frames(*arguments, progress=False)


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("place", [(0, 0, 0), (np.nan,) * 3])
def test_a_scan_that_misses_far_more_than_the_others_is_rejected_with_both_shares(robot, captures, number, place):
    """The kind of field/files/29_frames_one_bad: NaN in a sixth of one scan of many."""
    table, _ = captures
    scan = table.parent / f"scan_{number}.ply"
    points = MM_PER_M * read_shape(scan, "mm").points
    points[::6] = place
    np.savetxt(scan.with_suffix(".xyz"), points, fmt="%.4f")
    table.write_text(table.read_text().replace(scan.name, scan.with_suffix(".xyz").name))
    result = run(table, "--unit", "mm", "--actuation-unit", "kPa")
    assert result.exit_code == 0, result.output
    reason = f"{len(points[::6])} of its {len(points)} points were not measured"
    assert "2 frames" in result.output and reason in result.output and "0% in the others" in result.output
    store = open_frames(table.parent / "frames.zarr", robot)
    assert store.captured.tolist() == [one for one in (0, 1, 3) if one != number]
    assert list(store.rejections) == sorted([2, number])


@pytest.mark.parametrize("number", [0, 3])
def test_one_scan_that_cannot_be_read_is_a_reason_and_is_looked_at_again(robot, captures, number):
    """The kinds of field/files/29_frames_one_bad: NaN, and what is no scan at all."""
    table, _ = captures
    scan = table.parent / f"scan_{number}.ply"
    good = scan.read_bytes()
    scan.write_bytes(b"q" * len(good))
    first = run(table, "--unit", "mm", "--actuation-unit", "kPa")
    assert first.exit_code == 0, first.output
    assert "2 frames" in first.output and f"frame {number} is rejected: {scan}" in first.output
    scan.write_bytes(good)
    assert "3 frames" in run(table, "--unit", "mm", "--actuation-unit", "kPa").output


@pytest.mark.long
@pytest.mark.parametrize(
    ("share", "place"), [(0.17, (0, 0, 0)), (0.03, (0, 0, 0)), (0.17, (np.nan,) * 3), (0.17, (9, -30, 5))]
)
def test_points_that_say_not_measured_are_left_out(robot, captures, share, place):
    """The kinds of field/files/29_frames_zeros_* and _nan_*; in a scan that was moved zeros are at another place."""
    table, _ = captures
    count = 0
    for number in range(FRAMES):
        points = MM_PER_M * read_shape(table.parent / f"scan_{number}.ply", "mm").points
        lost = np.random.default_rng(number).random(len(points)) < share
        points[lost] = place
        count += int(lost.sum())
        np.savetxt(table.parent / f"scan_{number}.xyz", points, fmt="%.4f")
    table.write_text(table.read_text().replace(".ply", ".xyz"))
    result = run(table, "--unit", "mm", "--actuation-unit", "kPa")
    assert result.exit_code == 0, result.output
    store = open_frames(table.parent / "frames.zarr", robot)
    kept = sum(len(store.points(number)) for number in range(FRAMES))
    assert kept == FRAMES * len(points) - count
    assert store.captured.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--unit", "m", "--actuation-unit", "kPa"], "mm|--unit"),
        (["--unit", "mm", "--actuation-unit", "Pa"], "--actuation-unit"),
        (["--unit", "mm", "--actuation-unit", "kPa", "--scans", "mesh"], "no column 'mesh'"),
        (["--unit", "mm", "--actuation-unit", "kPa", "--measured", "p1,p2"], "--measured names 2 columns"),
    ],
)
def test_what_is_wrong_is_said_with_the_option_that_helps(captures, arguments, said):
    result = run(captures[0], *arguments)
    assert result.exit_code == 2
    assert re.search(said, result.output), result.output
    assert not (captures[0].parent / "frames.zarr").exists()


def test_a_scan_that_is_missing_is_named(captures):
    (captures[0].parent / "scan_1.ply").unlink()
    result = run(captures[0], "--unit", "mm", "--actuation-unit", "kPa")
    assert result.exit_code == 2 and "scan_1.ply does not exist: line 3" in result.output
