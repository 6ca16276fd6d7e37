"""Held-out frames: never trained on, then or later, and decided by their numbers alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_core.training.split import EVERY, LEAST, hold_out

numbers = st.sets(st.integers(0, 200), min_size=EVERY)


def test_one_frame_in_eight_judges_forty():
    used, held_out = hold_out(range(40))
    assert held_out == [7, 15, 23, 31, 39] and len(used) == 35


@given(numbers)
def test_frames_are_parted_without_rest(frames):
    try:
        used, held_out = hold_out(frames)
    except SoftformError:
        return
    assert not set(used) & set(held_out) and set(used) | set(held_out) == frames
    assert len(held_out) >= LEAST


@given(numbers, numbers)
def test_more_frames_move_none_from_one_part_to_the_other(frames, more):
    try:
        used, held_out = hold_out(frames)
    except SoftformError:
        return
    later_used, later_held_out = hold_out(frames | more, used, held_out)
    assert set(used) <= set(later_used) and set(held_out) <= set(later_held_out)
    new = (frames | more) - frames
    assert set(later_held_out) - set(held_out) == {number for number in new if number % EVERY == EVERY - 1}


def test_a_held_out_frame_that_is_gone_judges_no_more():
    used, held_out = hold_out(range(40))
    assert hold_out(set(range(40)) - {7}, used, held_out)[1] == [15, 23, 31, 39]


def test_one_of_five_judges_a_new_copy():
    used, held_out = hold_out(range(5))
    assert used == [0, 1, 2, 4] and held_out == [3]
    assert hold_out(range(40), used, held_out) == (
        sorted(set(range(40)) - {3, 7, 15, 23, 31, 39}),
        [3, 7, 15, 23, 31, 39],
    )


def test_too_few_frames_are_rejected():
    with pytest.raises(SoftformError, match="Of 8 frames only 2 can be held out"):
        hold_out(range(8), used=range(6))
