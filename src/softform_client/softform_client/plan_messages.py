"""Goals of `plan_to_shape`, and between their messages and what is worked with."""

from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Time

from softform_client.actuator_values import check_taken, values_to_message
from softform_client.reach_goal import check_shape, check_upright, check_whole, given_values
from softform_client.reach_messages import faces_from_message, points_from_message, triangles_to_message
from softform_core.arrays import Array
from softform_core.planning.obstacles import check_obstacle
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_interfaces.action import PlanToShape
from softform_interfaces.msg import SolveOptions
from softform_ros.conversions import cloud_from_points
from softform_ros.goal_error import GoalError, in_code

Code = PlanToShape.Result
"""Error codes, `NONE` … `INTERNAL_ERROR`; the action's definition is their only list."""

_TAKEN = {"max_time", "without_sim_to_real", "accept_unreachable"}


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

    target: Shape | Array
    obstacle: Shape
    start: Array | None = None
    clearance: float = 0.0
    max_time: float = 0.0
    without_sim_to_real: bool = False
    accept_unreachable: bool = False


def goal_from_message(message: PlanToShape.Goal, robot: Robot, frame: str, now: float, max_age: float) -> PlanGoal:
    """Check a goal message for a robot with that frame at `now` (s since the epoch), and unpack it.

    Raises:
        GoalError: If the goal cannot be accepted, as when target or obstacles are older than `max_age`, s.
    """
    options = message.options
    check_taken(options, _TAKEN, "plan_to_shape", Code.INVALID_TARGET)
    _check_limits(message, robot)
    has_target = message.target.width * message.target.height > 0
    if has_target == (len(message.goal.value) > 0):
        raise GoalError(
            Code.INVALID_TARGET,
            f"The goal has {'both a target and' if has_target else 'neither a target nor'} goal values.",
            "Give one of them.",
        )
    target: Shape | Array | None = given_values(message.goal, robot, Code.INVALID_TARGET, "goal")
    if target is None:
        with in_code(Code.INVALID_TARGET):
            points = points_from_message(message.target, frame, now, max_age)
            target = check_shape(points, faces_from_message(message.triangles), robot)
            if not options.accept_unreachable:
                check_upright(target, robot)
                check_whole(target, robot)
    start = given_values(message.start, robot, Code.INVALID_START, "start")
    with in_code(Code.INVALID_OBSTACLES):
        points = points_from_message(message.obstacles, frame, now, max_age, "obstacle")
        obstacle = check_obstacle(points, faces_from_message(message.obstacle_triangles), robot)
    return PlanGoal(
        target,
        obstacle,
        start,
        message.clearance,
        options.max_time,
        options.without_sim_to_real,
        options.accept_unreachable,
    )


def _check_limits(message: PlanToShape.Goal, robot: Robot) -> None:
    """Reject limits that are negative or not finite, and a clearance larger than the robot."""
    clearance, max_time = message.clearance, message.options.max_time
    if not (np.isfinite(clearance) and 0.0 <= clearance <= float(robot.extent.max())):
        raise GoalError(
            Code.INVALID_OBSTACLES, f"clearance is {clearance} m.", "Give metres, from 0 to the robot's size."
        )
    if not (np.isfinite(max_time) and max_time >= 0.0):
        raise GoalError(Code.INVALID_TARGET, f"max_time is {max_time} s.", "Give a positive number, or 0.")


def goal_to_message(goal: PlanGoal, frame: str, stamp: Time) -> PlanToShape.Goal:
    """Pack a goal; the inverse of `goal_from_message`."""
    message = PlanToShape.Goal(
        obstacles=cloud_from_points(goal.obstacle.points, frame, stamp),
        obstacle_triangles=triangles_to_message(goal.obstacle),
        start=values_to_message(goal.start),
        clearance=float(goal.clearance),
        options=SolveOptions(
            max_time=float(goal.max_time),
            without_sim_to_real=goal.without_sim_to_real,
            accept_unreachable=goal.accept_unreachable,
        ),
    )
    if isinstance(goal.target, Shape):
        message.target = cloud_from_points(goal.target.points, frame, stamp)
        message.triangles = triangles_to_message(goal.target)
    else:
        message.goal = values_to_message(goal.target)
    return message
