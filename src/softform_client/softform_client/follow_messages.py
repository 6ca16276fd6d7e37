"""Goals of `follow_waypoints`, what their waypoints must be, and between messages and what is worked with."""

import math
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from std_msgs.msg import Header

from softform_client.actuator_values import values_from_message, values_to_message
from softform_client.reach_goal import check_header, check_shape, one_of
from softform_client.reach_messages import check_places, faces_from_message
from softform_client.solve_options import SolveGoal, options_from_message, options_to_message
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.homing import homing_path
from softform_core.inverse.timing import check_times
from softform_core.robots import Robot
from softform_core.shapes.features import anchored_parameters, named_outputs
from softform_core.shapes.open_tube import check_goes_around
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import MAX_POINTS, check_count
from softform_interfaces.action import FollowWaypoints
from softform_ros.conversions import cloud_from_points, points_from_cloud
from softform_ros.goal_error import GoalCode, in_code

MAX_WAYPOINTS = 10_000
"""Most waypoints of a path; at its fastest a robot takes an hour for as many."""

_OFF_PLANE = 1e-3
"""Largest distance of a point from the plane in which a planar robot moves, m."""

_TAKEN = {"model", "seed", "without_sim_to_real", "accept_unreachable"}
_SAMPLED_POINTS = 5_000
"""Number of points sampled from each mesh of a path."""


class PathKind(IntEnum):
    """Kind of a path's waypoints."""

    POINTS = FollowWaypoints.Goal.POINTS
    SHAPES = FollowWaypoints.Goal.SHAPES
    ACTUATORS = FollowWaypoints.Goal.ACTUATORS
    HOME = FollowWaypoints.Goal.HOME


WITHOUT_FRAME = PathKind.ACTUATORS, PathKind.HOME
"""Kinds whose waypoints are values of actuators."""


@dataclass(frozen=True)
class PointPath:
    """Places of the tip, or of one point of the surface.

    Attributes:
        points: (m, 3) m.
        uv: (2,) which point of a patch or skin is led, its middle if nothing is said; of a frame it does not count.
        output: Patch, frame or skin of the robot that is led; empty: its first patch, or the tip.
    """

    points: Array
    uv: Array = field(default_factory=lambda: np.array([0.5, 0.5]))
    output: str = ""


@dataclass(frozen=True)
class ShapePath:
    """Target shapes, in m."""

    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class ActuatorPath:
    """Actuator values, (m, k), in the robot's unit."""

    values: Array


Path = PointPath | ShapePath | ActuatorPath


@dataclass(frozen=True)
class FollowGoal(SolveGoal):
    """A checked goal, its path in the robot's frame; its fields are the arguments of `ShapeClient.follow`."""

    path: Path
    times: Array | None = None
    plan_only: bool = False


@in_code(GoalCode.INVALID_PATH)
def goal_from_message(
    message: FollowWaypoints.Goal, robot: Robot, frame: str, now: float, max_age: float
) -> FollowGoal:
    """Check a goal message for a robot with that frame at `now` (s since the epoch), and unpack it.

    Raises:
        GoalError: If the goal cannot be accepted, as when its path is older than `max_age`, s.
    """
    kind = one_of(PathKind, message.kind, "kind of path")
    if kind not in WITHOUT_FRAME:
        check_header(message.header, frame, now, max_age)
    options = options_from_message(message.options, robot, "follow_waypoints", _TAKEN)
    path: Path
    if kind is PathKind.POINTS:
        count, path = len(message.points), _points(message, robot)
    elif kind is PathKind.SHAPES:
        count, path = len(message.shapes), _shapes(message, robot, frame)
    else:
        path = _way_home(message, robot) if kind is PathKind.HOME else _values(message, robot)
        count = len(path.values)
    times = None
    if len(message.times):
        times = np.asarray(message.times, dtype=np.float64)
        with in_code(GoalCode.INVALID_TIMES):
            check_times(times, count)
    return FollowGoal(path, times, message.plan_only, **options)


def _points(message: FollowWaypoints.Goal, robot: Robot) -> PointPath:
    """Return points along which a frame of the robot, or a point of its surface, can be led."""
    _check_count(len(message.points), "points")
    points = np.array([[point.x, point.y, point.z] for point in message.points], dtype=np.float64)
    uv = np.array([message.u, message.v])
    if not np.isfinite(points).all():
        index = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise SoftformError(f"Waypoint {index + 1} is NaN or infinite.", "Give x, y and z in m.")
    check_places(points, "Waypoint", robot)
    off_plane = np.abs(points[:, 2])
    is_in_plane = not robot.surfaces and robot.tip_dimensions == 2 and message.output in ("", *named_outputs(robot))
    if is_in_plane and off_plane.max() > _OFF_PLANE:  # a skin has a thickness
        index = int(off_plane.argmax())
        raise SoftformError(
            f"Waypoint {index + 1} is {points[index, 2]:g} m off the plane z = 0, in which '{robot.name}' moves.",
            "Give z = 0.",
        )
    anchored_parameters(robot, message.output, uv[None])
    return PointPath(points, uv, message.output)


def _shapes(message: FollowWaypoints.Goal, robot: Robot, frame: str) -> ShapePath:
    if not robot.surfaces:
        raise SoftformError(
            f"Robot '{robot.name}' has a tip and no surface: it cannot take shapes.",
            f"Send a path of kind {PathKind.POINTS.value} (POINTS) or {PathKind.ACTUATORS.value} (ACTUATORS).",
        )
    _check_count(len(message.shapes), "shapes")
    total = sum(cloud.width * cloud.height for cloud in message.shapes)
    if total > MAX_POINTS:
        raise SoftformError(
            f"The shapes have {total} points together, at most {MAX_POINTS} are allowed.",
            "Thin the shapes out: a thousand points each show a surface.",
        )
    shapes = []
    for number, cloud in enumerate(message.shapes, 1):
        with in_code(GoalCode.INVALID_PATH, f"Waypoint {number}: "):
            if cloud.header.frame_id not in ("", frame):
                raise SoftformError(
                    f"It is in frame '{cloud.header.frame_id}', not in '{frame}'.",
                    "Leave the frame of each shape empty.",
                )
            check_count(cloud.width * cloud.height, "target")
            shape = check_shape(points_from_cloud(cloud), faces_from_message([]), robot)
            if not message.options.accept_unreachable:
                check_goes_around(shape, robot)
            shapes.append(shape)
    return ShapePath(tuple(shapes))


def _values(message: FollowWaypoints.Goal, robot: Robot) -> ActuatorPath:
    """Return actuator values, waypoint by waypoint in the robot's unit, that the robot may be given."""
    count = len(robot.actuators)
    _check_count(math.ceil(len(message.actuators.value) / count), "actuators")
    values = values_from_message(message.actuators, robot)
    if len(values) % count:
        raise SoftformError(
            f"{len(values)} values are no waypoints of {count} actuators.",
            f"Give {count} values for each waypoint: {', '.join(robot.actuators)}.",
        )
    checked = []
    for number, row in enumerate(np.reshape(values, (-1, count)), 1):
        with in_code(GoalCode.INVALID_PATH, f"Waypoint {number}: "):
            checked.append(robot.check_commands(row))
    return ActuatorPath(np.array(checked))


def _way_home(message: FollowWaypoints.Goal, robot: Robot) -> ActuatorPath:
    if len(message.points) or len(message.shapes) or len(message.actuators.value):
        raise SoftformError("A way home is found by the node: it takes no waypoints.", "Leave them empty.")
    return ActuatorPath(homing_path(robot))


def _check_count(count: int, what: str) -> None:
    """Reject a number of waypoints before they are unpacked."""
    if count == 0:
        raise SoftformError("The path is empty.", f"Give one waypoint at least, in `{what}`.")
    if count > MAX_WAYPOINTS:
        raise SoftformError(
            f"The path has {count} waypoints, at most {MAX_WAYPOINTS} are allowed.",
            "Send it in parts, one goal after the other.",
        )


def goal_to_message(goal: FollowGoal, frame: str, stamp: Time) -> FollowWaypoints.Goal:
    """Pack a goal; the inverse of `goal_from_message`, but that of a mesh an even cloud is sent."""
    message = FollowWaypoints.Goal(
        header=Header(frame_id=frame, stamp=stamp),
        times=[] if goal.times is None else [float(time) for time in goal.times],
        plan_only=goal.plan_only,
        options=options_to_message(goal),
    )
    if isinstance(goal.path, PointPath):
        message.kind = int(PathKind.POINTS)
        message.points = [Point(x=float(x), y=float(y), z=float(z)) for x, y, z in goal.path.points]
        message.output = goal.path.output
        message.u, message.v = (float(parameter) for parameter in goal.path.uv)
    elif isinstance(goal.path, ShapePath):
        message.kind = int(PathKind.SHAPES)
        message.shapes = [cloud_from_points(_even(shape).points, frame, stamp) for shape in goal.path.shapes]
    else:
        assert isinstance(goal.path, ActuatorPath)
        message.kind = int(PathKind.ACTUATORS)
        message.actuators = values_to_message(goal.path.values)
    return message


def _even(shape: Shape) -> Shape:
    """Return a cloud even by area: a mesh's vertices may be few and uneven."""
    return shape if shape.faces is None else shape.sample(_SAMPLED_POINTS)
