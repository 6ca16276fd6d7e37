"""The steady error is taken off, within bounds, and nothing else is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softform_pneumatics.trim import LARGEST_TRIM, SteadyErrorTrim

TICK = 1.0 / 30.0


def hold(
    trim: SteadyErrorTrim, setpoint: float, deficit: float, seconds: float, start: float = 0.0, every: int = 0
) -> float:
    """Hold a setpoint with a board that stays `deficit` Pa below its target; return the last pressure, Pa.

    Every `every`-th reading is a corrupt one.
    """
    pressure = 0.0
    for tick in range(int(seconds / TICK)):
        moment = start + tick * TICK
        pressure = float(trim.targets(np.array([setpoint]), moment)[0]) - deficit
        trim.take(np.array([0.0 if every and tick % every == 0 else pressure]), moment)
    return pressure


@pytest.mark.parametrize("deficit", [-80.0, 70.0, 250.0])
def test_a_steady_error_is_taken_off(deficit: float) -> None:
    assert hold(SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0)), 3000.0, deficit, 3.0) == pytest.approx(
        3000.0, abs=10.0
    )


def test_a_chamber_without_error_gets_the_setpoint_itself() -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    assert hold(trim, 3000.0, 0.0, 3.0) == 3000.0
    assert trim.value[0] == 0.0


def test_corrupt_lines_that_look_like_good_ones_do_not_pump() -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    hold(trim, 3000.0, 0.0, 3.0, every=3)
    assert trim.value[0] == 0.0


@given(st.lists(st.tuples(st.floats(0.0, 5000.0), st.floats(-1e6, 1e6)), min_size=1, max_size=60))
def test_no_reading_moves_a_target_by_more_than_the_bound_or_to_the_other_side(
    moments: list[tuple[float, float]],
) -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    for index, (setpoint, pressure) in enumerate(moments):
        moment = 0.1 * index
        target = float(trim.targets(np.array([setpoint]), moment)[0])
        assert abs(target - setpoint) <= LARGEST_TRIM + 1e-9
        assert 0.0 <= target <= 5000.0 and (target == 0.0 or setpoint > 0.0)
        trim.take(np.array([pressure]), moment)


def test_at_zero_nothing_is_learned_and_nothing_is_sent() -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    assert hold(trim, 0.0, 80.0, 3.0) == -80.0
    assert trim.value[0] == 0.0
    hold(trim, 3000.0, 80.0, 3.0, start=3.0)
    assert trim.targets(np.zeros(1), 6.0)[0] == 0.0


def test_a_range_without_zero_pumps_nothing_up() -> None:
    trim = SteadyErrorTrim(np.array([500.0, -5000.0]), np.array([5000.0, -500.0]))
    for tick in range(60):
        assert not trim.targets(np.zeros(2), tick * TICK).any()
        trim.take(np.array([-80.0, 80.0]), tick * TICK)


def test_the_way_to_a_new_setpoint_is_no_steady_error() -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    hold(trim, 2000.0, 60.0, 3.0)
    learned = trim.value[0]
    for tick in range(5):  # within the transient it is 500 Pa behind
        moment = 3.0 + tick * TICK
        trim.targets(np.array([2500.0]), moment)
        trim.take(np.array([2000.0]), moment)
    assert trim.value[0] == learned


def test_it_is_done_once_the_error_is_small_and_at_the_latest_after_two_windows() -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    assert not trim.is_done
    hold(trim, 3000.0, 0.0, 0.9)
    assert trim.is_done
    hold(trim, 2000.0, 80.0, 0.8, start=0.9)
    assert not trim.is_done  # one window, which saw a large error
    hold(trim, 2000.0, 80.0, 0.6, start=1.7)
    assert trim.is_done
    trim.targets(np.array([2500.0]), 2.3)
    assert not trim.is_done
    hold(trim, 2500.0, 4000.0, 1.2, start=2.3)  # a leak that no trim makes good
    assert trim.is_done


def test_at_rest_from_the_beginning_it_is_done_too() -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    hold(trim, 0.0, -80.0, 1.2)
    assert trim.is_done


def test_a_vented_board_begins_anew() -> None:
    trim = SteadyErrorTrim(np.zeros(1), np.full(1, 5000.0))
    hold(trim, 3000.0, 80.0, 3.0)
    assert trim.value[0] > 50.0
    trim.reset()
    assert trim.targets(np.array([3000.0]), 9.0)[0] == 3000.0
