"""Where checks of commands and the judgement of what has settled draw their lines."""

import numpy as np
import pytest

from softform_actuation.commands import CommandRejectedError, SettleDetector, check_age, limit_rate


def test_how_far_in_the_future_a_command_is_stamped_is_told() -> None:
    with pytest.raises(CommandRejectedError, match=r"The command is stamped 0\.11 s in the future"):
        check_age(-0.11, 0.5)


def settled(*errors: float) -> bool:
    detector = SettleDetector(1, tolerance=100.0, seconds=0.5)
    return [bool(detector.update(np.array([error]), 0.5 * index)[0]) for index, error in enumerate(errors)][-1]


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((100.0, 100.0), True),
        ((-100.1, -100.1), False),
        ((300.0, -300.0), True),
        ((300.1, -300.1), False),
        ((1000.0, 0.0, 0.0), True),  # what was longer ago than the time does not count
    ],
)
def test_what_lies_just_within_its_tolerance_has_settled(errors: tuple[float, ...], expected: bool) -> None:
    assert settled(*errors) == expected


def test_a_goal_that_is_near_enough_is_taken_to_the_last_digit() -> None:
    setpoint, goal = 0.8, 0.3
    assert setpoint + (goal - setpoint) != goal
    for rate in (1.0, abs(goal - setpoint)):
        assert limit_rate(np.array([setpoint]), np.array([goal]), np.array([rate]), 1.0)[0] == goal
