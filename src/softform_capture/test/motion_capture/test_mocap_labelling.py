"""Unlabelled points: the base by its distances, the others by where they were."""

import numpy as np
import pytest
from captured_scene import BASE, SHEET, SHEET_NAMES, seen

from softform_capture.motion_capture.captured_frame import CapturedFrame, no_points, parse_renames, plain_labels
from softform_capture.motion_capture.labelling import Labeller, find_base, read_rest_markers
from softform_core.errors import SoftformError

PLACES = np.array(list(BASE.values()))
LIMIT, REACH = 0.002, 0.015


def points_only(points, number=0):
    return CapturedFrame(number, number, [], no_points(), points)


def test_the_base_is_found_among_other_points_and_with_one_hidden():
    random = np.random.default_rng(3)
    points = np.vstack([seen(), random.uniform(-0.3, 0.3, (20, 3))])
    index, motion = find_base(points + 2e-4 * random.standard_normal(points.shape), PLACES, LIMIT)
    assert index.tolist() == [0, 1, 2, 3]
    assert np.abs(motion.apply(seen()[4:]) - SHEET).max() < 2e-3
    index, _ = find_base(seen()[[0, 2, 3, *range(4, 13)]], PLACES, LIMIT)
    assert index.tolist() == [0, -1, 1, 2]


def test_two_bases_are_none():
    points = np.vstack([seen()[:4], seen()[:4] + [1.0, 0.0, 0.0]])
    assert find_base(points, PLACES, LIMIT) is None
    assert find_base(seen()[4:], PLACES, LIMIT) is None


def test_the_names_of_a_file_hold_from_the_first_frame_on(tmp_path):
    path = tmp_path / "rest.yaml"
    path.write_text("".join(f"top_{i}: [{x}, {y}, {z}]\n" for i, (x, y, z) in enumerate(SHEET[::-1])))
    rest = read_rest_markers(path)
    frame = Labeller(BASE, rest, LIMIT, REACH).label(points_only(np.delete(seen(), 6, axis=0)))
    assert frame.names == [*BASE, *(f"top_{i}" for i in range(9))]
    assert np.flatnonzero(np.isnan(frame.positions).any(axis=1)).tolist() == [len(BASE) + 6]
    assert np.allclose(frame.positions[len(BASE) :][[0, 8]], seen()[len(BASE) :][[8, 0]])


def test_a_marker_that_comes_back_has_its_name_although_the_sheet_has_moved():
    labeller = Labeller(BASE, {}, LIMIT, REACH)
    for number in range(60):
        points = seen()
        points[4:] += 0.001 * number  # all move by 60 mm, in steps; the fifth is hidden on the way
        shown = np.delete(points, 8, axis=0) if 5 < number < 55 else points
        frame = labeller.label(points_only(shown, number))
        assert frame.names == [*BASE, *SHEET_NAMES]
        assert np.isnan(frame.positions[8]).all() == (5 < number < 55)
        assert np.nanmax(np.abs(frame.positions - points)) < 1e-9


def test_points_that_imitate_a_hidden_base_do_not_move_it():
    labeller = Labeller(BASE, {}, LIMIT, REACH)
    labeller.label(points_only(seen()))
    points = seen()[2:]  # two of the base's markers are covered
    imitation = seen()[:3] + [0.7, 0.5, 0.2]
    for number in range(1, 4):
        frame = labeller.label(points_only(np.vstack([points, imitation]), number))
        assert np.isnan(frame.positions[:4]).all()
        assert np.allclose(frame.positions[4:], seen()[4:])
    moved = seen() + [0.01, -0.02, 0.03]  # the robot, or the cameras: all of it
    frame = labeller.label(points_only(moved, 4))
    assert np.allclose(frame.positions, moved)


def test_a_base_that_the_system_labels_is_taken_as_it_says():
    names, points = [*BASE, "wand"], seen()
    frame = CapturedFrame(0, 0, names, np.vstack([points[:4], [[9.0, 9.0, 9.0]]]), points[4:])
    labelled = Labeller(BASE, {}, LIMIT, REACH).label(frame)
    assert labelled.names == [*BASE, *SHEET_NAMES, "wand"]
    assert np.allclose(labelled.positions[:13], points)


@pytest.mark.parametrize(
    "points, complaint", [(seen()[2:], "not among the 11 points"), (np.ones((201, 3)), "Send the markers only")]
)
def test_what_cannot_be_labelled_is_rejected(points, complaint):
    with pytest.raises(SoftformError, match=complaint):
        Labeller(BASE, {}, LIMIT, REACH).label(points_only(points))


@pytest.mark.parametrize("text", ["", "- 1", "a: [1, 2]", "a: [1, 2, .nan]", "a: b", "a: [", "a: 3"])
def test_rest_markers_that_are_none_are_rejected(tmp_path, text):
    (tmp_path / "rest.yaml").write_text(text)
    with pytest.raises(SoftformError, match="rest markers"):
        read_rest_markers(tmp_path / "rest.yaml")


def test_names_are_plain_unless_they_come_twice():
    assert plain_labels([("a", "x"), ("b", "x"), ("b", "y")]) == ["a:x", "b:x", "y"]


def test_renames():
    assert parse_renames(["", "base:Marker 1 = base_1"]) == {"base:Marker 1": "base_1"}
    frame = CapturedFrame(0, 0, ["a", "b"], np.zeros((2, 3))).renamed({"a": "c"})
    assert frame.names == ["c", "b"]
    with pytest.raises(SoftformError, match="twice after renaming"):
        frame.renamed({"b": "c"})
    for rules in (["a"], ["a="], ["a=b", "a=c"], ["a=c", "b=c"]):
        with pytest.raises(SoftformError, match="theirs=ours"):
            parse_renames(rules)
