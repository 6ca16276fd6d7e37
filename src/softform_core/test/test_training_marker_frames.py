"""Frames of markers: what cannot be trained on is rejected or flagged with the frame's number."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.frames.frames import MarkerFrames
from softform_core.frames.marker_checks import check_markers, marker_faults
from softform_core.registration.marker_motion import exchanged_markers

SIDE = np.linspace(0.1, 0.9, 5)
UV = np.stack(np.meshgrid(SIDE, SIDE, indexing="ij"), axis=-1).reshape(-1, 2)
FRAMES, MARKERS = 6, len(UV)


def expected() -> np.ndarray:
    """Simulated markers (n, M, 3) m: bulges of several heights over a sheet of 0.32 m."""
    height = np.linspace(0.01, 0.06, FRAMES)[:, None] * np.sin(np.pi * UV).prod(axis=1)
    flat = np.broadcast_to(0.32 * UV - 0.16, (FRAMES, MARKERS, 2))
    return np.concatenate([flat, height[..., None]], axis=2)


def captured() -> np.ndarray:
    """The same with a smooth gap of 8 mm, noise, and every tenth marker missing."""
    generator = np.random.default_rng(0)
    gap = 0.008 * np.sin(2.0 * UV @ [3.0, 2.0])[:, None] * [0.2, 0.1, 1.0]
    positions = expected() + gap + 1e-4 * generator.standard_normal((FRAMES, MARKERS, 3))
    positions[generator.random((FRAMES, MARKERS)) < 0.1] = np.nan
    return positions


def frames(positions: np.ndarray, **changes) -> MarkerFrames:
    given = {
        "actuation": np.zeros((FRAMES, 9)),
        "names": [f"m{number + 1:02d}" for number in range(MARKERS)],
        "uv": UV,
        "positions": positions,
    } | changes
    return MarkerFrames(**given)


def changed(frame: int, marker: int | slice, value) -> np.ndarray:
    positions = captured()
    positions[frame, marker] = value
    return positions


def test_visibility_and_parts() -> None:
    whole = frames(captured())
    assert len(whole) == FRAMES
    assert 0.0 < 1.0 - whole.visible.mean() < 0.3
    some = whole.part(np.array([4, 1]))
    np.testing.assert_array_equal(some.positions, whole.positions[[4, 1]])
    assert some.names == whole.names


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        (changed(3, slice(None), np.nan), "Frame 3: no marker is visible"),
        (changed(2, 7, [0.0, np.nan, 0.0]), "Frame 2: coordinates of m08"),
        (changed(4, 0, np.inf), "Frame 4: coordinates of m01"),
        (1000.0 * captured(), "Frame 0: a coordinate of"),
        (captured()[:, 1:], "Give n actuations"),
    ],
)
def test_bad_positions_are_rejected(positions: np.ndarray, words: str) -> None:
    with pytest.raises(SoftformError) as rejected:
        frames(positions)
    assert words in str(rejected.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"names": ["m01"] * MARKERS}, "one name"),
        ({"uv": UV + 0.5}, "unit square"),
        ({"actuation": np.full((FRAMES, 9), np.nan)}, "Frame 0: its actuation"),
    ],
)
def test_bad_labels_are_rejected(changes: dict, words: str) -> None:
    with pytest.raises(SoftformError) as rejected:
        frames(captured(), **changes)
    assert words in str(rejected.value)


def test_good_frames_have_no_fault() -> None:
    check_markers(frames(captured()), expected())


def test_exchanged_markers_are_named_with_their_frame() -> None:
    positions = expected()
    positions[4, [6, 12]] = positions[4, [12, 6]]
    (fault,) = marker_faults(frames(positions), expected())
    assert (fault.frame, fault.markers) == (4, (6, 12))
    with pytest.raises(SoftformError, match="frame 4: markers m07, m13 seem to be exchanged"):
        check_markers(frames(positions), expected())


def test_markers_renamed_from_one_frame_on_are_flagged_in_each() -> None:
    positions = expected()
    positions[3:] = np.roll(positions[3:], 1, axis=1)
    assert [fault.frame for fault in marker_faults(frames(positions), expected())] == [3, 4, 5]


def test_a_label_on_the_place_of_a_missing_marker_is_found() -> None:
    positions = expected()[0]
    positions[3], positions[8] = positions[8].copy(), np.nan
    assert exchanged_markers(positions, expected()[0]).tolist() == [3]


def test_a_jump_is_found_though_no_label_fits_better() -> None:
    positions = captured()
    positions[1, 12] = expected()[1, 12] + [0.0, 0.0, 0.05]
    (fault,) = marker_faults(frames(positions), expected())
    assert (fault.frame, fault.markers) == (1, (12,))
    assert "off its neighbours" in fault.reason


def far_off() -> np.ndarray:
    """A gap (M, 3) m along x that is almost the distance between markers at the middle one and falls off around it."""
    away = np.linalg.norm(0.32 * (UV - 0.5), axis=1)
    return 0.05 * np.exp(-((away / 0.12) ** 2))[:, None] * [1.0, 0.0, 0.0]


def test_a_gap_as_large_as_the_distance_between_markers_is_no_exchange() -> None:
    middle, beside = MARKERS // 2, MARKERS // 2 + 5  # the first axis of `UV` is x
    positions = expected() + far_off()
    positions[2, beside] = np.nan
    assert exchanged_markers(positions[2], expected()[2]).tolist() == [middle], "by itself it sits on the other's place"
    check_markers(frames(positions), expected())
    positions[4, [0, 1]] = positions[4, [1, 0]]
    (fault,) = marker_faults(frames(positions), expected())
    assert (fault.frame, fault.markers) == (4, (0, 1)), "real exchanges are still found"


def test_where_neighbours_differ_anyway_only_more_is_a_jump() -> None:
    rough = np.random.default_rng(1).normal(0.0, 0.006, (FRAMES, MARKERS, 3))
    positions = expected() + rough
    positions[1, 12] += [0.0, 0.0, 0.03]  # would be a jump on a smooth gap
    check_markers(frames(positions), expected())
    positions[1, 12] += [0.0, 0.0, 0.25]
    (fault,) = marker_faults(frames(positions), expected())
    assert (fault.frame, fault.markers) == (1, (12,))


def test_no_more_than_five_faults_are_spelled_out() -> None:
    positions = expected() + [0.5, 0.0, 0.0]
    with pytest.raises(SoftformError, match="frame 4: .*; and 1 more frames"):
        check_markers(frames(positions), expected())


@pytest.mark.parametrize(
    "wrong", [captured() * [-1.0, 1.0, 1.0], captured() + [0.5, 0.0, 0.0]], ids=["mirrored", "elsewhere"]
)
def test_frames_of_another_robot_are_all_flagged(wrong: np.ndarray) -> None:
    assert [fault.frame for fault in marker_faults(frames(wrong), expected())] == list(range(FRAMES))
