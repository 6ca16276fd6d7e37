"""Goals of `plan_to_shape`, and between their messages and what is worked with."""

from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Time

from softform_client.actuator_values import given_values, values_to_message
from softform_client.reach_goal import check_shape, check_upright
from softform_client.reach_messages import faces_from_message, points_from_message, triangles_to_message
from softform_client.solve_options import SolveGoal, options_from_message, options_to_message
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.planning.obstacles import check_obstacle
from softform_core.robots import Robot
from softform_core.shapes.open_tube import check_goes_around
from softform_core.shapes.shape import Shape
from softform_interfaces.action import PlanToShape
from softform_ros.conversions import cloud_from_points
from softform_ros.goal_error import GoalCode, GoalError, in_code

_TAKEN = {"max_time", "model", "without_sim_to_real", "accept_unreachable"}


@dataclass(frozen=True)
class PlanGoal(SolveGoal):
    """A checked goal, in the robot's frame; its fields are the arguments of `ShapeClient.plan`."""

    target: Shape | Array
    obstacle: Shape
    start: Array | None = None
    clearance: float = 0.0


@in_code(GoalCode.INVALID_TARGET)
def goal_from_message(message: PlanToShape.Goal, robot: Robot, frame: str, now: float, max_age: float) -> PlanGoal:
    """Check a goal message for a robot with that frame at `now` (s since the epoch), and unpack it.

    Raises:
        GoalError: If the goal cannot be accepted, as when target or obstacles are older than `max_age`, s.
    """
    options = options_from_message(message.options, robot, "plan_to_shape", _TAKEN)
    if not (np.isfinite(message.clearance) and 0.0 <= message.clearance <= float(robot.extent.max())):
        raise GoalError(
            GoalCode.INVALID_OBSTACLES,
            f"clearance is {message.clearance} m.",
            "Give metres, from 0 to the robot's size.",
        )
    has_target = message.target.width * message.target.height > 0
    if has_target == (len(message.goal.value) > 0):
        raise SoftformError(
            f"The goal has {'both a target and' if has_target else 'neither a target nor'} goal values.",
            "Give one of them.",
        )
    target: Shape | Array | None = given_values(message.goal, robot, GoalCode.INVALID_TARGET, "goal")
    if target is None:
        points = points_from_message(message.target, frame, now, max_age)
        target = check_shape(points, faces_from_message(message.triangles), robot)
        if not message.options.accept_unreachable:
            check_upright(target, robot)
            check_goes_around(target, robot)
    start = given_values(message.start, robot, GoalCode.INVALID_START, "start")
    with in_code(GoalCode.INVALID_OBSTACLES):
        points = points_from_message(message.obstacles, frame, now, max_age, "obstacle")
        obstacle = check_obstacle(points, faces_from_message(message.obstacle_triangles), robot)
    return PlanGoal(target, obstacle, start, message.clearance, **options)


def goal_to_message(goal: PlanGoal, frame: str, stamp: Time) -> PlanToShape.Goal:
    """Pack a goal; the inverse of `goal_from_message`."""
    message = PlanToShape.Goal(
        obstacles=cloud_from_points(goal.obstacle.points, frame, stamp),
        obstacle_triangles=triangles_to_message(goal.obstacle),
        start=values_to_message(goal.start),
        clearance=float(goal.clearance),
        options=options_to_message(goal),
    )
    if isinstance(goal.target, Shape):
        message.target = cloud_from_points(goal.target.points, frame, stamp)
        message.triangles = triangles_to_message(goal.target)
    else:
        message.goal = values_to_message(goal.target)
    return message
