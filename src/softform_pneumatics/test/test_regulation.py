"""Commands, slew limit and settling, without a board."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softform_core.robots import Robot
from softform_pneumatics.regulation import CommandRejectedError, SettleDetector, check_command, limit_rate

NAMES = [f"c{i}" for i in range(1, 10)]


def test_a_command_is_put_into_the_order_of_the_chambers(robot: Robot) -> None:
    pressures = [100.0 * i for i in range(9)]
    assert check_command(robot, NAMES[::-1], pressures[::-1]) == pytest.approx(pressures)


def test_rounding_beyond_the_range_is_clamped(robot: Robot) -> None:
    command = check_command(robot, NAMES, [5000.0000001, -1e-9] + [0.0] * 7)
    assert command[0] == 5000.0
    assert command[1] == 0.0


@pytest.mark.parametrize(
    ("names", "pressures", "reason"),
    [
        (NAMES, [0.0] * 8, "9 names and 8 pressures"),
        (NAMES[:8], [0.0] * 8, "names the chambers"),
        ([], [], r"\(none\)"),
        ([*NAMES[:8], "c8"], [0.0] * 9, "names the chambers"),
        ([*NAMES[:8], "left"], [0.0] * 9, "left"),
        (NAMES, [math.nan] + [0.0] * 8, "c1 is not a finite"),
        (NAMES, [0.0] * 8 + [math.inf], "c9 is not a finite"),
        (NAMES, [5001.0] + [0.0] * 8, "5001 Pa of c1"),
        (NAMES, [-1.0] + [0.0] * 8, "-1 Pa of c1"),
    ],
)
def test_a_wrong_command_is_rejected_with_its_reason(
    robot: Robot, names: list[str], pressures: list[float], reason: str
) -> None:
    with pytest.raises(CommandRejectedError, match=reason):
        check_command(robot, names, pressures)


pressures = arrays(np.float64, 9, elements=st.floats(0.0, 5000.0))


@given(pressures, pressures, st.floats(0.0, 0.2))
def test_a_setpoint_never_changes_faster_than_allowed_and_never_overshoots(
    setpoint: np.ndarray, goal: np.ndarray, seconds: float
) -> None:
    following = limit_rate(setpoint, goal, 4000.0, seconds)
    assert np.all(np.abs(following - setpoint) <= 4000.0 * seconds + 1e-9)
    assert np.all(np.abs(goal - following) <= np.abs(goal - setpoint))


@given(pressures, pressures)
def test_the_goal_is_reached_exactly(setpoint: np.ndarray, goal: np.ndarray) -> None:
    for _ in range(26):
        setpoint = limit_rate(setpoint, goal, 4000.0, 0.05)
    assert np.array_equal(setpoint, goal)


def test_a_chamber_settles_only_after_the_whole_time_within_tolerance() -> None:
    detector = SettleDetector(2, tolerance=100.0, seconds=0.5)
    assert not detector.update(np.array([50.0, 200.0]), 0.0).any()
    assert not detector.update(np.array([50.0, 90.0]), 0.4).any()
    assert detector.update(np.array([-50.0, 90.0]), 0.5).tolist() == [True, False]
    assert detector.update(np.array([150.0, 90.0]), 0.8).tolist() == [False, False]
    assert detector.update(np.array([50.0, 90.0]), 0.95).tolist() == [False, True]
    detector.reset()
    assert not detector.update(np.array([50.0, 90.0]), 1.0).any()
