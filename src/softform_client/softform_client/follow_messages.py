"""Goals of `follow_waypoints`, what their waypoints must be, and between messages and what is worked with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_client.actuator_values import check_taken, values_from_message, values_to_message
from softform_client.reach_goal import check_header, check_shape, check_whole, given_values, one_of
from softform_client.reach_messages import faces_from_message
from softform_client.shared_codes import CODE_OF_FOLLOWING, in_codes
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.inverse.timing import check_times
from softform_core.robots import Robot
from softform_core.shapes.features import output_parameters
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import MAX_POINTS, check_count, check_scale
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import SolveOptions
from softform_ros.conversions import cloud_from_points, points_from_cloud
from softform_ros.goal_error import GoalError, in_code

Code = FollowWaypoints.Result
"""Error codes, `NONE` … `INTERNAL_ERROR`; the action's definition is their only list."""

MAX_WAYPOINTS = 10_000
"""Most waypoints of a path; at its fastest a robot takes an hour for as many."""

_OFF_PLANE = 1e-3
"""Largest distance of a point from the plane in which a planar robot moves, m."""

_TAKEN = {"seed", "without_sim_to_real", "accept_unreachable"}
_SAMPLED_POINTS = 5_000
"""Number of points sampled from each mesh of a path."""


class PathKind(IntEnum):
    """Kind of a path's waypoints."""

    POINTS = FollowWaypoints.Goal.POINTS
    SHAPES = FollowWaypoints.Goal.SHAPES
    ACTUATORS = FollowWaypoints.Goal.ACTUATORS


@dataclass(frozen=True)
class PointPath:
    """Places of the tip, or of one point of the surface.

    Attributes:
        points: (m, 3) m.
        uv: (2,) which point of a patch is led, its middle if nothing is said; of a frame, or a tip, it does not count.
        output: Patch or frame of the robot that is led; empty: its first patch, or the tip.
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
class FollowGoal:
    """A checked goal.

    Attributes:
        path: Path in the robot's frame.
        times: (m,) s after the start at which each waypoint is due, or None: as fast as the robot settles.
        plan_only: Never move hardware.
        seed: (k,) start of the first solve, or None: the present values, else the middle of the range.
        without_sim_to_real: Plan with the simulated robot alone, to compare.
        accept_unreachable: Whether the nearest place is wanted even where it misses a waypoint widely.
    """

    path: Path
    times: Array | None = None
    plan_only: bool = False
    seed: Array | None = None
    without_sim_to_real: bool = False
    accept_unreachable: bool = False


def _check_points(points: Array, uv: Array, output: str, robot: Robot) -> PointPath:
    """Return points, (m, 3) m, along which a frame of the robot, or the point (2,) of its surface, can be led."""
    if not np.isfinite(points).all():
        index = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise GoalError(Code.INVALID_PATH, f"Waypoint {index + 1} is NaN or infinite.", "Give x, y and z in m.")
    size = float(np.linalg.norm(robot.extent)) if robot.surfaces else robot.body.size
    with in_code(Code.INVALID_PATH):
        check_scale(points, "Waypoint", robot.name, size)
    if not robot.surfaces:
        off_plane = np.abs(points[:, 2])
        if robot.tip_dimensions == 2 and off_plane.max() > _OFF_PLANE:
            index = int(off_plane.argmax())
            raise GoalError(
                Code.INVALID_PATH,
                f"Waypoint {index + 1} is {points[index, 2]:g} m off the plane z = 0, in which '{robot.name}' moves.",
                "Give z = 0.",
            )
    with in_code(Code.INVALID_PATH):
        output_parameters(robot, output, uv)
    return PointPath(points, uv, output)


def _check_values(values: Sequence[float], robot: Robot) -> ActuatorPath:
    """Return actuator values, waypoint by waypoint in the robot's unit, that the robot may be given."""
    count = len(robot.actuators)
    if len(values) % count:
        raise GoalError(
            Code.INVALID_PATH,
            f"{len(values)} values are no waypoints of {count} actuators.",
            f"Give {count} values for each waypoint: {', '.join(robot.actuators)}.",
        )
    rows = np.asarray(values, dtype=np.float64).reshape(-1, count)
    checked = []
    for number, row in enumerate(rows, 1):
        with in_code(Code.INVALID_PATH, f"Waypoint {number}: "):
            checked.append(robot.check_commands(row))
    return ActuatorPath(np.array(checked))


def goal_from_message(
    message: FollowWaypoints.Goal, robot: Robot, frame: str, now: float, max_age: float
) -> FollowGoal:
    """Check a goal message for a robot with that frame at `now` (s since the epoch), and unpack it.

    Raises:
        GoalError: If the goal cannot be accepted, as when its path is older than `max_age`, s.
    """
    options = message.options
    with in_codes(CODE_OF_FOLLOWING):
        kind = one_of(PathKind, message.kind, Code.INVALID_PATH, "kind of path")
        # Actuator values have no frame.
        if kind is not PathKind.ACTUATORS:
            check_header(message.header, frame, now, max_age)
        check_taken(options, _TAKEN, "follow_waypoints", Code.INVALID_PATH)
        seed = given_values(options.seed, robot, Code.INVALID_SEED, "Seed values")
        path, count = _path(message, kind, robot, frame)
    times = None
    if len(message.times):
        times = np.asarray(message.times, dtype=np.float64)
        with in_code(Code.INVALID_TIMES):
            check_times(times, count)
    return FollowGoal(path, times, message.plan_only, seed, options.without_sim_to_real, options.accept_unreachable)


def _path(message: FollowWaypoints.Goal, kind: PathKind, robot: Robot, frame: str) -> tuple[Path, int]:
    """Return the checked path, and the number of its waypoints."""
    if kind is PathKind.POINTS:
        _check_count(len(message.points), "points")
        points = np.array([[point.x, point.y, point.z] for point in message.points], dtype=np.float64)
        return _check_points(points, np.array([message.u, message.v]), message.output, robot), len(points)
    if kind is PathKind.SHAPES:
        if not robot.surfaces:
            raise GoalError(
                Code.INVALID_PATH,
                f"Robot '{robot.name}' has a tip and no surface: it cannot take shapes.",
                f"Send a path of kind {PathKind.POINTS.value} (POINTS) or {PathKind.ACTUATORS.value} (ACTUATORS).",
            )
        _check_count(len(message.shapes), "shapes")
        total = sum(cloud.width * cloud.height for cloud in message.shapes)
        if total > MAX_POINTS:
            raise GoalError(
                Code.INVALID_PATH,
                f"The shapes have {total} points together, at most {MAX_POINTS} are allowed.",
                "Thin the shapes out: a thousand points each show a surface.",
            )
        as_it_is = message.options.accept_unreachable
        shapes = []
        for number, cloud in enumerate(message.shapes, 1):
            with in_code(Code.INVALID_PATH, f"Waypoint {number}: "):
                shapes.append(_shape(cloud, robot, frame, as_it_is))
        return ShapePath(tuple(shapes)), len(shapes)
    _check_count(math.ceil(len(message.actuators.value) / len(robot.actuators)), "actuators")
    with in_code(Code.INVALID_PATH):
        values = values_from_message(message.actuators, robot)
    path = _check_values(values, robot)
    return path, len(path.values)


def _check_count(count: int, what: str) -> None:
    """Reject a number of waypoints before they are unpacked."""
    if count == 0:
        raise GoalError(Code.INVALID_PATH, "The path is empty.", f"Give one waypoint at least, in `{what}`.")
    if count > MAX_WAYPOINTS:
        raise GoalError(
            Code.INVALID_PATH,
            f"The path has {count} waypoints, at most {MAX_WAYPOINTS} are allowed.",
            "Send it in parts, one goal after the other.",
        )


def _shape(cloud: PointCloud2, robot: Robot, frame: str, as_it_is: bool) -> Shape:
    if cloud.header.frame_id not in ("", frame):
        raise SoftformError(
            f"It is in frame '{cloud.header.frame_id}', not in '{frame}'.", "Leave the frame of each shape empty."
        )
    check_count(cloud.width * cloud.height, "target")
    shape = check_shape(points_from_cloud(cloud), faces_from_message([]), robot)
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
        message.output = goal.path.output
        message.u, message.v = (float(parameter) for parameter in goal.path.uv)
    elif isinstance(goal.path, ShapePath):
        message.kind = int(PathKind.SHAPES)
        message.shapes = [cloud_from_points(_cloud_of(shape).points, frame, stamp) for shape in goal.path.shapes]
    else:
        assert isinstance(goal.path, ActuatorPath)
        message.kind = int(PathKind.ACTUATORS)
        message.actuators = values_to_message(goal.path.values)
    return message


def _cloud_of(shape: Shape) -> Shape:
    """Return a cloud even by area: a mesh's vertices may be few and uneven."""
    return shape if shape.faces is None else shape.sample(_SAMPLED_POINTS)
