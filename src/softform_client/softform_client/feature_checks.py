"""What feature points, and goals that want nothing else, must be before a goal is accepted."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softform_client.reach_goal import Code, ReachGoal
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.validate import check_scale
from softform_ros.goal_error import GoalError, in_code


def check_features(
    uv: NDArray[np.float64], positions: NDArray[np.float64], weights: Sequence[float], robot: Robot
) -> FeaturePoints | None:
    """Return the feature points, (M, 2) and (M, 3) m with M weights or 1 each, or None if there are none.

    Raises:
        GoalError: If sizes differ, a number is not finite or out of range, or a position shows a wrong unit.
    """
    if not (len(uv) or len(positions) or len(weights)):
        return None
    with in_code(Code.INVALID_TARGET):
        features = FeaturePoints.of(uv, positions, weights if len(weights) else None)
        robot.patches.split(features.uv)
        check_scale(features.positions, "Feature point", robot.name, float(np.linalg.norm(robot.extent)))
    return features


def check_wanted(goal: ReachGoal) -> ReachGoal:
    """Return a goal whose parts fit together.

    Raises:
        GoalError: If nothing is wanted, or feature points alone are to be verified or posed by fewer than three.
    """
    if goal.target is not None:
        return goal
    if goal.features is None:
        raise GoalError(
            Code.INVALID_TARGET, "The goal has neither a target nor feature points.", "Give one of them, or both."
        )
    if goal.mode.verifies:
        raise GoalError(
            Code.INVALID_TARGET,
            f"{goal.mode.name} compares a capture with the target, and the goal has feature points alone.",
            "Give a target, too, or use PLAN_ONLY or PLAN_AND_MOVE.",
        )
    if goal.partial:
        raise GoalError(
            Code.INVALID_TARGET, "partial is about a target, and the goal has feature points alone.", "Leave it out."
        )
    if not goal.fix_pose and len(goal.features) < 3:
        raise GoalError(
            Code.INVALID_TARGET,
            f"{len(goal.features)} feature points do not fix the pose of a target.",
            "Set fix_pose, or give at least 3 points.",
        )
    return goal
