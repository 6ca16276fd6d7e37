"""Between the messages of `follow_waypoints` and what is worked with."""

import math

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_client.actuator_values import check_taken, values_from_message, values_to_message
from softform_client.follow_goal import (
    ActuatorPath,
    Code,
    FollowGoal,
    Path,
    PathKind,
    PointPath,
    ShapePath,
    check_count,
    check_due_times,
    check_has_surface,
    check_kind,
    check_points,
    check_values,
    checked_waypoint,
)
from softform_client.reach_goal import check_header, check_seed, check_shape, check_size, check_whole
from softform_client.shared_codes import in_codes_of_following
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.shapes.validate import MAX_POINTS
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import SolveOptions
from softform_ros.conversions import cloud_from_points, points_from_cloud, seconds_from_stamp
from softform_ros.goal_error import GoalError, in_code

_TAKEN = {"seed", "without_sim_to_real", "accept_unreachable"}
_SAMPLED_POINTS = 5_000
"""Points that are sampled from each mesh of a path."""


def goal_from_message(
    message: FollowWaypoints.Goal, robot: Robot, frame: str, now: float, max_age: float
) -> FollowGoal:
    """Check a goal message and unpack it.

    Args:
        message: The goal message.
        robot: Robot that follows the path.
        frame: The robot's frame.
        now: Present time, s since the epoch.
        max_age: Largest age of the path, s.

    Raises:
        GoalError: If the goal cannot be accepted.
    """
    with in_codes_of_following():
        kind = check_kind(message.kind)
        # Actuator values have no frame.
        if kind is not PathKind.ACTUATORS:
            check_header(message.header.frame_id, seconds_from_stamp(message.header.stamp), frame, now, max_age)
        check_taken(message.options, _TAKEN, "follow_waypoints", Code.INVALID_PATH)
        seed = check_seed(message.options.seed, robot)
        path, count = _path(message, kind, robot, frame)
        times = check_due_times(message.times, count)
    options = message.options
    return FollowGoal(path, times, message.plan_only, seed, options.without_sim_to_real, options.accept_unreachable)


def _path(message: FollowWaypoints.Goal, kind: PathKind, robot: Robot, frame: str) -> tuple[Path, int]:
    """The checked path, and the number of its waypoints."""
    if kind is PathKind.POINTS:
        check_count(len(message.points), "points")
        points = np.array([[point.x, point.y, point.z] for point in message.points], dtype=np.float64)
        return check_points(points, np.array([message.u, message.v]), message.point, robot), len(points)
    if kind is PathKind.SHAPES:
        surface_robot = check_has_surface(robot)
        check_count(len(message.shapes), "shapes")
        total = sum(cloud.width * cloud.height for cloud in message.shapes)
        if total > MAX_POINTS:
            raise GoalError(
                Code.INVALID_PATH,
                f"The shapes have {total} points together, at most {MAX_POINTS} are allowed.",
                "Thin the shapes out: a thousand points each show a surface.",
            )
        as_it_is = message.options.accept_unreachable
        shapes = tuple(
            checked_waypoint(index, lambda cloud: _shape(cloud, surface_robot, frame, as_it_is), cloud)
            for index, cloud in enumerate(message.shapes)
        )
        return ShapePath(shapes), len(shapes)
    check_count(math.ceil(len(message.actuators.value) / len(robot.actuators)), "actuators")
    with in_code(Code.INVALID_PATH):
        values = values_from_message(message.actuators, robot)
    path = check_values(values, robot)
    return path, len(path.values)


def _shape(cloud: PointCloud2, robot: Robot, frame: str, as_it_is: bool) -> TargetShape:
    if cloud.header.frame_id not in ("", frame):
        raise SoftformError(
            f"It is in frame '{cloud.header.frame_id}', not in '{frame}'.", "Leave the frame of each shape empty."
        )
    check_size(cloud.width * cloud.height)
    shape = check_shape(points_from_cloud(cloud), np.empty((0, 3), dtype=np.int64), robot)
    if not as_it_is:
        check_whole(shape, robot)
    return shape


def goal_to_message(goal: FollowGoal, frame: str, stamp: Time) -> FollowWaypoints.Goal:
    """Pack a goal; the inverse of `goal_from_message`, but that of a mesh an even cloud is sent."""
    message = FollowWaypoints.Goal(
        header=Header(frame_id=frame, stamp=stamp),
        times=[] if goal.times is None else [float(time) for time in goal.times],
        plan_only=goal.plan_only,
        options=SolveOptions(
            seed=values_to_message(goal.seed),
            without_sim_to_real=goal.without_sim_to_real,
            accept_unreachable=goal.accept_unreachable,
        ),
    )
    if isinstance(goal.path, PointPath):
        message.kind = int(PathKind.POINTS)
        message.points = [Point(x=float(x), y=float(y), z=float(z)) for x, y, z in goal.path.points]
        message.point = goal.path.point
        message.u, message.v = (float(parameter) for parameter in goal.path.uv)
    elif isinstance(goal.path, ShapePath):
        message.kind = int(PathKind.SHAPES)
        message.shapes = [cloud_from_points(_cloud_of(shape).points, frame, stamp) for shape in goal.path.shapes]
    else:
        assert isinstance(goal.path, ActuatorPath)
        message.kind = int(PathKind.ACTUATORS)
        message.actuators = values_to_message(goal.path.values)
    return message


def _cloud_of(shape: TargetShape) -> TargetShape:
    """A mesh's vertices may be few and uneven; its area is what is wanted."""
    return shape if shape.faces is None else shape.sample(_SAMPLED_POINTS)
