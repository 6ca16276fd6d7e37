"""Commands, slew limit and settling, without a board."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softform_actuation.commands import CommandRejectedError, SettleDetector, check_age, check_command, limit_rate
from softform_core.robots import Robot, load_robot

NAMES = [f"c{i}" for i in range(1, 10)]
UNITS = ["Pa"] * 9


@pytest.fixture
def robot() -> Robot:
    return load_robot("membrane")


def test_a_command_is_put_into_the_order_of_the_chambers(robot: Robot) -> None:
    pressures = [100.0 * i for i in range(9)]
    assert check_command(robot, NAMES[::-1], UNITS, pressures[::-1]) == pytest.approx(pressures)


def test_rounding_beyond_the_range_is_clamped(robot: Robot) -> None:
    command = check_command(robot, NAMES, UNITS, [5000.0000001, -1e-9] + [0.0] * 7)
    assert command[0] == 5000.0
    assert command[1] == 0.0


@pytest.mark.parametrize(
    ("names", "pressures", "reason"),
    [
        (NAMES, [0.0] * 8, "9 names, 9 units and 8 values"),
        (NAMES[:8], [0.0] * 8, "Name each actuator"),
        ([], [], r"\(none\)"),
        ([*NAMES[:8], "c8"], [0.0] * 9, "Name each actuator"),
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
        check_command(robot, names, UNITS[: len(names)], pressures)


@pytest.mark.parametrize("unit", ["kPa", "", "m"])
def test_a_unit_that_does_not_fit_is_rejected(robot: Robot, unit: str) -> None:
    with pytest.raises(CommandRejectedError, match=f"c4 in '{unit}'"):
        check_command(robot, NAMES, [*UNITS[:3], unit, *UNITS[4:]], [0.0] * 9)
    with pytest.raises(CommandRejectedError, match="8 units"):
        check_command(robot, NAMES, UNITS[:8], [0.0] * 9)


@pytest.mark.parametrize(("age", "reason"), [(0.51, "0.51 s ago"), (-0.11, "in the future"), (math.nan, "ago")])
def test_a_command_of_another_time_is_rejected(age: float, reason: str) -> None:
    for fresh in (0.0, 0.5, -0.1):
        check_age(fresh, 0.5)
    with pytest.raises(CommandRejectedError, match=reason):
        check_age(age, 0.5)


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


def settled_after(errors: list[float], tick: float = 0.1) -> list[bool]:
    detector = SettleDetector(1, tolerance=100.0, seconds=0.5)
    return [bool(detector.update(np.array([error]), index * tick)[0]) for index, error in enumerate(errors)]


def test_a_chamber_settles_only_after_the_whole_time_at_its_goal() -> None:
    assert settled_after([50.0] * 8) == [False] * 5 + [True] * 3


def test_noise_about_the_goal_does_not_unsettle() -> None:
    assert settled_after([150.0, -150.0] * 5)[-1]


def test_a_mean_that_is_off_is_not_settled() -> None:
    assert not any(settled_after([120.0] * 10))


def test_a_chamber_that_passes_through_its_goal_is_not_settled() -> None:
    assert not any(settled_after([200.0 * (5 - index) for index in range(11)]))


def test_chambers_settle_one_by_one_and_a_new_goal_starts_anew() -> None:
    detector = SettleDetector(2, tolerance=100.0, seconds=0.5)
    for moment in np.arange(0.0, 0.55, 0.1):
        settled = detector.update(np.array([0.0, 2000.0]), float(moment))
    assert settled.tolist() == [True, False]
    detector.reset()
    assert not detector.update(np.array([0.0, 0.0]), 0.6).any()
