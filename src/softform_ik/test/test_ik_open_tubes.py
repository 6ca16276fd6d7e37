"""Half a tube as the target of a robot whose surface is a tube: rejected, unless the goal takes it as it is."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from softform_client import follow_messages, plan_messages, reach_messages
from softform_client.follow_messages import FollowGoal, ShapePath
from softform_client.plan_messages import PlanGoal
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_ros.goal_error import GoalCode, GoalError

ROBOT = load_robot("manipulator")
AWAY = Shape(np.random.default_rng(0).random((50, 3)) * 0.01 + 0.2)


def tube(turns):
    """Cloud of a straight tube, or of what is left of it within so many turns."""
    angle, height = np.random.default_rng(1).random((2, 2000)) * np.array([[2.0 * np.pi * turns], [0.25]])
    return Shape(np.column_stack([0.025 * np.cos(angle), 0.025 * np.sin(angle), height]))


def reach(shape, **changes):
    message = reach_messages.goal_to_message(ReachGoal(shape, Mode.PLAN_ONLY, **changes), "base_link", Time())
    return reach_messages.goal_from_message(message, ROBOT, "base_link", 0.0, 60.0).target


def plan(shape, **changes):
    message = plan_messages.goal_to_message(PlanGoal(shape, AWAY, **changes), "base_link", Time())
    return plan_messages.goal_from_message(message, ROBOT, "base_link", 0.0, 60.0).target


def follow(shape, **changes):
    path = ShapePath((tube(1.0), shape))
    message = follow_messages.goal_to_message(FollowGoal(path, **changes), "base_link", Time())
    return follow_messages.goal_from_message(message, ROBOT, "base_link", 0.0, 60.0).path.shapes[1]


@pytest.mark.parametrize(
    ("unpack", "code", "takes"),
    [
        (reach, GoalCode.INVALID_TARGET, {"partial": True}),
        (reach, GoalCode.INVALID_TARGET, {"fix_pose": False, "accept_unreachable": True}),
        (plan, GoalCode.INVALID_TARGET, {"accept_unreachable": True}),
        (follow, GoalCode.INVALID_PATH, {"accept_unreachable": True}),
    ],
    ids=["reach a part", "reach", "plan", "follow"],
)
def test_half_a_tube_is_rejected_unless_it_is_meant(unpack, code, takes):
    assert len(unpack(tube(1.0)).points) == len(unpack(tube(0.5), **takes).points) == 2000
    with pytest.raises(GoalError, match=r"open: .* degrees .* 'manipulator' is a tube.*partial") as caught:
        unpack(tube(0.5))
    assert caught.value.code == code
