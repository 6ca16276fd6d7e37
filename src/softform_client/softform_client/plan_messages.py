"""Between the messages of `plan_to_shape` and what is worked with."""

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2
from shape_msgs.msg import MeshTriangle

from softform_client.actuator_values import check_taken, values_to_message
from softform_client.plan_goal import Code, PlanGoal, check_choice, check_given_values, check_limits
from softform_client.reach_goal import check_header, check_shape, check_size, check_upright, check_whole
from softform_core.planning.obstacles import check_obstacle
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_interfaces.action import PlanToShape
from softform_interfaces.msg import SolveOptions
from softform_ros.conversions import cloud_from_points, points_from_cloud, seconds_from_stamp
from softform_ros.goal_error import in_code

_TAKEN = {"max_time", "without_sim_to_real", "accept_unreachable"}


def goal_from_message(message: PlanToShape.Goal, robot: Robot, frame: str, now: float, max_age: float) -> PlanGoal:
    """Check a goal message and unpack it.

    Args:
        message: The goal message.
        robot: Robot that moves.
        frame: The robot's frame.
        now: Present time, s since the epoch.
        max_age: Largest age of target and obstacles, s.

    Raises:
        GoalError: If the goal cannot be accepted.
    """

    def points_of(cloud: PointCloud2, what: str) -> NDArray[np.float64]:
        check_header(cloud.header.frame_id, seconds_from_stamp(cloud.header.stamp), frame, now, max_age, what)
        check_size(cloud.width * cloud.height, what)
        return points_from_cloud(cloud)

    options = message.options
    check_taken(options, _TAKEN, "plan_to_shape", Code.INVALID_TARGET)
    check_limits(message.clearance, options.max_time, robot)
    has_target = message.target.width * message.target.height > 0
    check_choice(has_target, len(message.goal.value) > 0)
    target: TargetShape | NDArray[np.float64]
    if has_target:
        with in_code(Code.INVALID_TARGET):
            target = check_shape(points_of(message.target, "target"), _faces(message.triangles), robot)
            if not options.accept_unreachable:
                check_upright(target, robot)
                check_whole(target, robot)
    else:
        target = check_given_values(message.goal, robot, Code.INVALID_TARGET, "goal")
    start = None
    if len(message.start.value):
        start = check_given_values(message.start, robot, Code.INVALID_START, "start")
    with in_code(Code.INVALID_OBSTACLES):
        obstacle = check_obstacle(points_of(message.obstacles, "obstacle"), _faces(message.obstacle_triangles), robot)
    return PlanGoal(
        target,
        obstacle,
        start,
        message.clearance,
        options.max_time,
        options.without_sim_to_real,
        options.accept_unreachable,
    )


def goal_to_message(goal: PlanGoal, frame: str, stamp: Time) -> PlanToShape.Goal:
    """Pack a goal; the inverse of `goal_from_message`."""
    message = PlanToShape.Goal(
        obstacles=cloud_from_points(goal.obstacle.points, frame, stamp),
        obstacle_triangles=_triangles(goal.obstacle),
        start=values_to_message(goal.start),
        clearance=float(goal.clearance),
        options=SolveOptions(
            max_time=float(goal.max_time),
            without_sim_to_real=goal.without_sim_to_real,
            accept_unreachable=goal.accept_unreachable,
        ),
    )
    if isinstance(goal.target, TargetShape):
        message.target = cloud_from_points(goal.target.points, frame, stamp)
        message.triangles = _triangles(goal.target)
    else:
        message.goal = values_to_message(goal.target)
    return message


def _faces(triangles: list[MeshTriangle]) -> NDArray[np.int64]:
    return np.array([triangle.vertex_indices for triangle in triangles], dtype=np.int64).reshape(-1, 3)


def _triangles(shape: TargetShape) -> list[MeshTriangle]:
    if shape.faces is None:
        return []
    return [MeshTriangle(vertex_indices=face) for face in shape.faces.astype(np.uint32)]
