"""What a goal of `plan_to_shape` must be before it is accepted; every rejection says why and what to do."""

from dataclasses import dataclass

import numpy as np

from softform_client.actuator_values import values_from_message
from softform_core.arrays import Array
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_interfaces.action import PlanToShape
from softform_interfaces.msg import ActuatorValues
from softform_ros.goal_error import GoalError, in_code

Code = PlanToShape.Result
"""Error codes, `NONE` … `INTERNAL_ERROR`; the action's definition is their only list."""


@dataclass(frozen=True)
class PlanGoal:
    """A checked goal.

    Attributes:
        target: Goal of the motion: a shape in the robot's frame, m; or actuator values (k,).
        obstacle: Obstacle to keep clear of, m.
        start: (k,) actuator values, or None: the present ones.
        clearance: m that stays between surface and obstacle.
        max_time: s; 0: the node's default.
        without_sim_to_real: Plan with the simulated shape alone, to compare.
        accept_unreachable: Whether the nearest shape is wanted even if it misses the target widely.
    """

    target: TargetShape | Array
    obstacle: TargetShape
    start: Array | None = None
    clearance: float = 0.0
    max_time: float = 0.0
    without_sim_to_real: bool = False
    accept_unreachable: bool = False


def check_choice(has_target: bool, has_values: bool) -> None:
    """Reject a goal that says twice or not at all where to.

    Raises:
        GoalError: If it does.
    """
    if has_target == has_values:
        raise GoalError(
            Code.INVALID_TARGET,
            f"The goal has {'both a target and' if has_target else 'neither a target nor'} goal values.",
            "Give one of them.",
        )


def check_given_values(values: ActuatorValues, robot: Robot, code: int, what: str) -> Array:
    """Return actuator values (k,) that the robot may be given.

    Raises:
        GoalError: On a wrong number, a value that is not finite, or one out of range.
    """
    with in_code(code, f"{what} cannot be used: "):
        return robot.check_commands(np.asarray(values_from_message(values, robot)))


def check_limits(clearance: float, max_time: float, robot: Robot) -> None:
    """Reject invalid limits.

    Raises:
        GoalError: If one is negative or not finite, or the clearance is larger than the robot.
    """
    if not (np.isfinite(clearance) and 0.0 <= clearance <= float(robot.extent.max())):
        raise GoalError(
            Code.INVALID_OBSTACLES, f"clearance is {clearance} m.", "Give metres, from 0 to the robot's size."
        )
    if not (np.isfinite(max_time) and max_time >= 0.0):
        raise GoalError(Code.INVALID_TARGET, f"max_time is {max_time} s.", "Give a positive number, or 0.")
