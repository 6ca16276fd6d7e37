"""When more frames stop paying, from errors that are known."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.training.frames_needed import PAYS, frames_needed


def curve(floor, slope):
    """Errors (mm) of five held-out frames that differ by a few per cent."""
    shares = np.array([0.96, 0.98, 1.0, 1.02, 1.04])
    return lambda part: shares * (floor + slope / len(part))


def test_a_doubling_beyond_the_frames_needed_does_not_pay():
    floor, slope = 0.3, 2.0
    found = frames_needed(range(35), curve(floor, slope))
    assert found.frames == [5, 10, 20, 35] and found.held_out == 5
    n = found.needed
    assert (slope / (2 * n)) / (floor + slope / n) == pytest.approx(PAYS, rel=0.03)
    assert found.least <= n <= found.most
    assert f"From {n} frames on" in found.text and "Capture more" in found.text and not found.as_dict()["enough"]


def test_frames_that_teach_nothing_more_are_enough():
    found = frames_needed(range(35), curve(0.3, 0.05))
    assert found.needed <= 5 and found.as_dict()["enough"] and "These are enough" in found.text


def test_errors_that_only_fall_show_no_end():
    found = frames_needed(range(35), curve(-0.001, 4.0))
    assert found.needed is None and "No end is in sight" in found.text


def test_few_frames_do_not_say_how_many_are_needed():
    with pytest.raises(SoftformError, match="12 frames to learn from are too few"):
        frames_needed(range(12), curve(0.3, 2.0))
