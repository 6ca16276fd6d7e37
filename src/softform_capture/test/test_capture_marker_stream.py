"""Frames with everything that capture systems do wrong: what leaves the stream is aligned and believable."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softform_capture.motion_capture.attendance import MarkerStrangers
from softform_capture.motion_capture.marker_plausibility import PlausibilityLimits
from softform_capture.motion_capture.marker_stream import MarkerStream
from softform_core.errors import SoftformError
from softform_core.registration.base_alignment import base_alignment

pytestmark = pytest.mark.slow

BASE = {
    "base_1": [-0.2, -0.2, 0.0],
    "base_2": [0.2, -0.18, 0.0],
    "base_3": [0.2, 0.15, 0.0],
    "base_4": [-0.18, 0.2, 0.03],
}
LINE = np.linspace(-0.12, 0.12, 5)
REST = np.stack([*np.meshgrid(LINE, LINE, indexing="ij"), np.zeros((5, 5))], axis=-1).reshape(-1, 3)
NAMES = [*BASE, *(f"m{number:02d}" for number in range(len(REST)))]
SURFACE = slice(len(BASE), None)
ROTATION, SHIFT = Rotation.from_rotvec([1.0, 0.4, -0.2]), np.array([0.5, -1.0, 2.0])
PERIOD = 0.03


def surface(time: float) -> np.ndarray:
    """A sheet that bulges by up to 50 mm and back within two seconds, (M, 3) m in the robot's frame."""
    bulge = 0.05 * np.sin(np.pi * time / 2.0) ** 2 * np.cos(np.pi * REST[:, 0] / 0.3) * np.cos(np.pi * REST[:, 1] / 0.3)
    return REST + np.column_stack([np.zeros((len(REST), 2)), bulge])


def captured(time: float, noise: float = 0.0) -> np.ndarray:
    """All markers in the system's frame."""
    places = np.vstack([list(BASE.values()), surface(time)])
    seen = ROTATION.inv().apply(places - SHIFT)
    return seen + noise * np.random.default_rng(round(1000 * time)).standard_normal(seen.shape)


@pytest.fixture
def stream() -> MarkerStream:
    return MarkerStream(BASE, 0.002, PlausibilityLimits())


def run(
    stream: MarkerStream, frames: range, spoil=lambda number, positions: None, noise: float = 1e-4
) -> list[np.ndarray]:
    given = []
    for number in frames:
        positions = captured(number * PERIOD, noise)
        spoil(number, positions)
        given.append(stream.take(NAMES, positions, number * PERIOD, number))
    return given


def test_frames_come_in_the_robots_frame_without_the_base(stream: MarkerStream) -> None:
    frames = run(stream, range(100))
    assert stream.names == NAMES[SURFACE]
    error = [frame - surface(number * PERIOD) for number, frame in enumerate(frames)]
    assert np.abs(error).max() < 1e-3
    assert 2e-5 < stream.record.residual < 4e-4
    record = stream.record
    assert (record.frames, record.jumps, record.exchanges, record.missing) == (100, 0, 0, 0.0)
    assert (stream.order.lost, stream.order.clock_steps, stream.gaps.count) == (0, 0, 0)


def test_occlusions_stay_missing_and_end_where_the_marker_really_is(stream: MarkerStream) -> None:
    def occlude(number, positions):
        if 10 <= number < 40:
            positions[4 + 12] = np.nan
            positions[1] = np.nan

    frames = run(stream, range(60), occlude)
    missing = np.isnan(frames).any(axis=2)
    assert missing[10:40, 12].all() and missing.sum() == 30
    assert stream.record.jumps == 0
    assert stream.record.misalignment == "", "three base markers are enough"


def test_a_ghost_is_hidden_until_it_is_gone(stream: MarkerStream) -> None:
    def ghost(number, positions):
        if 10 <= number < 15:
            positions[4 + 3] += [0.0, 0.0, 0.1]

    missing = np.isnan(run(stream, range(30), ghost)).any(axis=2)
    assert missing[10:15, 3].all() and missing.sum() == 5
    assert stream.record.jumps == 5


def test_two_glimpses_of_a_reflection_are_not_believed(stream: MarkerStream) -> None:
    def reflection(number, positions):
        if 10 <= number < 60:
            positions[4 + 3] += [0.04, 0.0, 0.0] if number in (10, 50) else np.nan

    missing = np.isnan(run(stream, range(70), reflection)).any(axis=2)
    assert missing[10:60, 3].all() and not missing[60:].any()


def test_a_first_frame_of_the_base_alone_is_rejected(stream: MarkerStream) -> None:
    with pytest.raises(SoftformError, match="No marker of the surface"):
        stream.take(list(BASE), captured(0.0)[: len(BASE)], 0.0, 0)
    assert len(run(stream, range(1, 3))[-1]) == len(REST)


def test_a_marker_that_was_moved_is_believed_after_a_while(stream: MarkerStream) -> None:
    def moved(number, positions):
        if number >= 10:
            positions[4 + 3] += 0.04

    missing = np.isnan(run(stream, range(80), moved)).any(axis=2)
    hidden = np.flatnonzero(missing[:, 3])
    assert hidden[0] == 10
    assert 1.0 <= len(hidden) * PERIOD <= 2.2, "the settle time, and what the sheet moved meanwhile"
    assert missing.sum() == len(hidden)


@pytest.mark.parametrize("fast", [True, False], ids=["at rest", "after a gap"])
def test_exchanged_labels_are_hidden_as_long_as_they_are_exchanged(stream: MarkerStream, fast: bool) -> None:
    def exchange(number, positions):
        if 20 <= number < 70:
            positions[[4 + 6, 4 + 12]] = positions[[4 + 12, 4 + 6]]

    frames = [*range(15 if fast else 10), *range(15, 90)]
    missing = np.isnan(run(stream, frames, exchange)).any(axis=2)
    hidden = {int(frame): set(np.flatnonzero(row)) for frame, row in zip(frames, missing, strict=True) if row.any()}
    assert hidden == {number: {6, 12} for number in range(20, 70)}
    assert stream.record.exchanges == 100
    assert stream.record.exchanged == []


@pytest.mark.parametrize("shift", [0.05, 0.3])
def test_markers_that_all_moved_far_between_two_frames_are_seen_again_at_once(shift: float) -> None:
    """A long arm between frames that came late: each marker lies nearest to where another one was."""
    arm = np.column_stack([np.repeat(np.linspace(0.0, 0.9, 50), 8), *np.tile(REST[:8, :2], (50, 1)).T])
    far = arm + [shift, 0.0, 0.0]
    names = [f"m{number}" for number in range(len(arm))]
    stream = MarkerStream(BASE, 0.002, PlausibilityLimits())
    for number, places in enumerate([arm, arm, far, far, far, arm]):
        seen = np.vstack([list(BASE.values()), places])
        given = stream.take([*BASE, *names], seen, 0.1 * number, number)
        assert given == pytest.approx(places)


def test_without_base_markers_the_last_good_alignment_serves(stream: MarkerStream) -> None:
    with pytest.raises(SoftformError, match="not aligned yet"):
        stream.take(NAMES[4:], captured(0.0)[4:], 0.0, 0)
    run(stream, range(1, 5))

    def spoil(number, positions):
        positions[[0, 1]] = positions[[1, 0]] if number % 2 else np.nan

    frames = run(stream, range(5, 10), spoil)
    assert np.abs(frames[-1] - surface(9 * PERIOD)).max() < 1e-3
    assert "m off their places" in stream.record.misalignment


def test_a_marker_alone_is_believed_as_long_as_it_does_not_fly() -> None:
    """The tip of a chain of rods: it has no neighbours to be compared with, and may come out of hiding elsewhere."""
    stream = MarkerStream(BASE, 0.002, PlausibilityLimits())
    names, base = [*BASE, "tip"], captured(0.0)[: len(BASE)]
    tip = captured(0.0)[len(BASE) :][:1]
    for number, (offset, believed) in enumerate([(0.0, True), (0.06, True), (0.12, True), (0.3, False)]):
        seen = stream.take(names, np.concatenate([base, tip + [offset, 0.0, 0.0]]), PERIOD * number, number)
        assert np.isfinite(seen).all() == believed


@pytest.mark.parametrize("garbage", [[1e200, 0.0, 0.0], [0.0, -2e5, 0.0], [0.0, 0.0, 0.0], [np.inf, 0.0, 0.0]])
def test_a_marker_where_none_can_be_is_missing(stream: MarkerStream, garbage: list[float]) -> None:
    def spoil(number, positions):
        if number % 2:
            positions[4 + 7] = positions[1] = garbage

    missing = np.isnan(run(stream, range(30), spoil)).any(axis=2)
    assert missing[1::2, 7].all() and missing.sum() == 15
    assert (stream.record.misalignment, stream.record.jumps) == ("", 0)


@pytest.mark.parametrize("share", [1.01, 0.99])
def test_base_markers_that_are_off_for_too_long_end_the_alignment(share: float) -> None:
    """One that was knocked, by a little less and a little more than the limit."""

    def knock(number, positions):
        positions[0] += [0.004, 0.0, 0.0]

    knocked = captured(0.0)
    knock(0, knocked)
    stream = MarkerStream(BASE, share * base_alignment(NAMES, knocked, BASE, np.inf)[1], PlausibilityLimits())
    run(stream, range(10), noise=0.0)
    last = 10 + round(1.0 / PERIOD)  # 0.99 s after the first knocked frame
    run(stream, range(10, last + 1), knock, noise=0.0)
    if share > 1.0:
        run(stream, range(last + 1, last + 100), knock, noise=0.0)
        assert stream.record.misalignment == ""
        return
    assert "off their places" in stream.record.misalignment
    assert stream.alignment is not None, "for as long as a hand may have touched it"
    for number in (last + 1, last + 2):
        with pytest.raises(SoftformError, match="were moved") as caught:
            run(stream, range(number, number + 1), knock)
        assert "base_markers" in caught.value.next_step
    with pytest.raises(SoftformError, match="were moved"):
        run(stream, range(last + 3, last + 4), lambda number, positions: positions[:4].fill(np.nan))
    frames = run(stream, range(last + 4, last + 10))
    assert np.abs(frames[-1] - surface((last + 9) * PERIOD)).max() < 1e-3


def test_a_base_that_is_hidden_for_long_is_not_a_base_that_was_moved(stream: MarkerStream) -> None:
    def hide(number, positions):
        positions[:2] = np.nan

    run(stream, range(10))
    assert np.abs(run(stream, range(10, 200), hide)[-1] - surface(199 * PERIOD)).max() < 1e-3
    assert "2 of the base markers" in stream.record.misalignment


def test_a_clock_that_is_set_back_does_not_make_a_moved_base(stream: MarkerStream) -> None:
    def exchange(number, positions):
        positions[[0, 1]] = positions[[1, 0]]

    run(stream, range(1000, 1005))
    run(stream, [1005], exchange)
    with pytest.raises(SoftformError, match="no later"):
        run(stream, [5], exchange)
    run(stream, range(6, 12), exchange)
    assert stream.order.clock_steps == 1 and stream.alignment is not None


def test_millimetres_align_nothing(stream: MarkerStream) -> None:
    with pytest.raises(SoftformError, match="metres"):
        stream.take(NAMES, 1000.0 * captured(0.0), 0.0, 0)


def test_names_are_those_of_the_first_frame_in_any_order(stream: MarkerStream) -> None:
    run(stream, range(3))
    names = [*NAMES[:8], "m99", *NAMES[9:]]
    order = np.random.default_rng(0).permutation(len(names))
    given = stream.take([names[index] for index in order], captured(0.1)[order], 0.1, 3)
    assert np.flatnonzero(np.isnan(given).any(axis=1)).tolist() == [4]
    assert np.abs(given - surface(0.1))[5:].max() < 1e-3
    assert stream.strangers.names == ["m99"]


def test_reflections_with_new_names_in_every_frame_are_soon_forgotten() -> None:
    strangers = MarkerStrangers()
    for number in range(1000):
        strangers.see([f"r{number}"], 0.001 * number)
    assert strangers.names == [f"r{number}" for number in range(999, 899, -1)]
    strangers.see(["new", "other"], 5.0)
    assert strangers.names[:3] == ["new", "other", "r999"]
    strangers.see([], 9.0)
    assert strangers.names == ["new", "other"]
    strangers.see([], 10.1)
    assert strangers.names == []
    strangers.see(["late"], 200.0)
    strangers.see([], 100.0)
    assert strangers.names == [], "the clock was set back"


def test_late_frames_are_rejected_and_lost_ones_counted(stream: MarkerStream) -> None:
    run(stream, [0, 1, 5])
    with pytest.raises(SoftformError, match="no later"):
        stream.take(NAMES, captured(0.0), 2 * PERIOD, 6)
    assert stream.order.lost == 3
