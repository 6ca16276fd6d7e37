"""The codes by which parts fail are those of the actions, each in its block."""

from types import SimpleNamespace

import pytest

from softform_interfaces.action import (
    CaptureShape,
    CollectDataset,
    FollowWaypoints,
    PlanToShape,
    ReachShape,
    ShapeObject,
)
from softform_ros.checked_action import CheckedAction
from softform_ros.goal_error import GoalCode

BLOCKS = {ReachShape: 100, CollectDataset: 200, FollowWaypoints: 300, PlanToShape: 400, CaptureShape: 500}
BLOCKS |= {ShapeObject: 600}


def codes_of(action):
    kind = type(action.Result)  # constants of a message are its class's
    return {name: getattr(action.Result, name) for name in dir(kind) if name.isupper() and name[0].isalpha()}


@pytest.mark.parametrize("action", BLOCKS, ids=lambda action: action.__name__)
def test_the_codes_of_an_action_have_names_and_keep_to_their_block(action):
    numbers = codes_of(action)
    assert numbers.keys() <= {code.name for code in GoalCode} and numbers.pop("NONE") == 0
    assert len(numbers) >= 8 and len(set(numbers.values())) == len(numbers)
    assert all(number - BLOCKS[action] in range(100) for number in numbers.values())


def test_each_code_is_one_of_an_action():
    assert {code.name for code in GoalCode} == {name for action in BLOCKS for name in codes_of(action)}


@pytest.mark.parametrize(
    ("code", "number"), [(GoalCode.UNREACHABLE, ReachShape.Result.UNREACHABLE), (GoalCode.NO_PATH, 199)]
)
def test_a_code_becomes_the_number_of_the_action_and_one_that_it_lacks_an_internal_error(code, number):
    served = SimpleNamespace(_result=ReachShape.Result)
    result = CheckedAction._in_numbers(served, ReachShape.Result(), code, "It is \x1b[2J far.")
    assert result.error_code == number and "\x1b" not in result.error_msg
