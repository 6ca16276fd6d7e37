"""Convert between the action's messages and what the solver works with."""

from array import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_client.reach_goal import Mode, ReachGoal, check_header, check_shape, check_upright, one_of
from softform_client.solve_options import check_at_most, options_from_message, options_to_message
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.open_tube import check_goes_around
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_count, check_scale
from softform_interfaces.action import CaptureShape, ReachShape
from softform_interfaces.msg import TargetPoints
from softform_ros.conversions import NORMAL_FIELDS, cloud_from_points, points_from_cloud, values_from_cloud
from softform_ros.goal_error import GoalCode, in_code
from softform_ros.quaternions import quaternion_of, rotation_of

MOST_TRIANGLES = 200_000
"""Most triangles of a message: searching them for closest points takes time and memory."""

SAMPLED_POINTS = 20_000

MAX_ROUNDS = 100
"""Most corrections in a closed loop; a few are enough."""


def as_light(shape: Shape) -> Shape:
    """Return the shape itself, or of a mesh of more than `MOST_TRIANGLES` a cloud of `SAMPLED_POINTS`, even by area."""
    if shape.faces is None or len(shape.faces) <= MOST_TRIANGLES:
        return shape
    return shape.sample(SAMPLED_POINTS)


@in_code(GoalCode.INVALID_TARGET)
def goal_from_message(
    message: ReachShape.Goal, robot: Robot, frame: str, now: float, max_target_age: float
) -> ReachGoal:
    """Check a goal message for a robot with that frame at `now` (s since the epoch), and unpack it.

    Raises:
        GoalError: If the goal cannot be accepted, as when its target is older than `max_target_age`, s.
    """
    mode = one_of(Mode, message.mode, "mode")
    check_at_most("max_rounds", message.max_rounds, MAX_ROUNDS)
    features = features_from_message(message.features, robot)
    if features is not None:
        check_header(message.features.header, frame, now, max_target_age)
    has_target = message.target.width * message.target.height > 0
    if has_target and not robot.surfaces:
        raise SoftformError(
            f"Robot '{robot.name}' has a tip and no surface: it has no shape to take.",
            "Give a place of its tip as a feature point, or lead it along points with follow_waypoints.",
        )
    target = None
    if features is None or has_target:
        target = target_from_message(message, robot, frame, now, max_target_age)
    options = options_from_message(message.options, robot, "reach_shape")
    goal = ReachGoal(target, mode, message.fix_pose, message.max_rounds, features, message.partial, **options)
    if target is None:
        assert features is not None
        _check_features_alone(goal, len(features))
        return goal
    if goal.fix_pose and not goal.accept_unreachable:
        check_upright(target, robot)
    if not (goal.partial or goal.accept_unreachable):
        check_goes_around(target, robot)
    return goal


def _check_features_alone(goal: ReachGoal, count: int) -> None:
    """Reject a goal whose feature points alone are to be verified, or posed by fewer than three."""
    if goal.mode.verifies:
        raise SoftformError(
            f"{goal.mode.name} compares a capture with the target, and the goal has feature points alone.",
            "Give a target, too, or use PLAN_ONLY or PLAN_AND_MOVE.",
        )
    if goal.partial:
        raise SoftformError("partial is about a target, and the goal has feature points alone.", "Leave it out.")
    if not goal.fix_pose and count < 3:
        raise SoftformError(
            f"{count} feature points do not fix the pose of a target.",
            "Set fix_pose, or give at least 3 points.",
        )


def points_from_message(
    cloud: PointCloud2, frame: str, now: float, max_age: float, what: str = "target"
) -> NDArray[np.float64]:
    """Check a cloud and unpack its points, (N, 3) m; arguments as of `check_header`.

    Raises:
        SoftformError: If it is in another frame, too old, too small or too large, or cannot be read.
    """
    check_header(cloud.header, frame, now, max_age, what)
    check_count(cloud.width * cloud.height, what)  # before they are copied
    return points_from_cloud(cloud)


def target_from_message(
    message: ReachShape.Goal | CaptureShape.Goal, robot: Robot, frame: str, now: float, max_age: float
) -> Shape:
    """Check the target of a goal and unpack it; arguments as of `goal_from_message`.

    Raises:
        SoftformError: If it is in another frame, too old, or unusable.
    """
    points = points_from_message(message.target, frame, now, max_age)
    shape = check_shape(points, faces_from_message(message.triangles), robot)
    if shape.faces is None and {*NORMAL_FIELDS} <= {field.name for field in message.target.fields}:
        normals = values_from_cloud(message.target, NORMAL_FIELDS)
        if np.isfinite(normals).all():
            shape = Shape.from_cloud(shape.points, normals)
    return shape


def features_from_message(message: TargetPoints, robot: Robot) -> FeaturePoints | None:
    """Unpack feature points, or None if there are none; frame and stamp are the caller's to check.

    Raises:
        SoftformError: If sizes differ, a number is not finite or out of range, or a position shows a wrong unit.
    """
    count = len(message.position)
    lengths = {"u": len(message.u), "v": len(message.v), "output": len(message.output) or count}
    if not any((count, *lengths.values(), len(message.weight))):
        return None
    if wrong := [f"{lengths[name]} {name}" for name in lengths if lengths[name] != count]:
        raise SoftformError(
            f"There are {count} positions of feature points and {', '.join(wrong)}.",
            "Give one of each for each point; output may be empty.",
        )
    positions = np.array([(point.x, point.y, point.z) for point in message.position], dtype=np.float64).reshape(-1, 3)
    uv = np.stack([message.u, message.v], axis=1).astype(np.float64)
    weights = message.weight if len(message.weight) else None
    features = FeaturePoints.of(uv, positions, weights, message.output).on(robot)
    check_places(features.positions, "Feature point", robot)
    return features


def check_places(points: NDArray[np.float64], what: str, robot: Robot) -> None:
    """Reject places (N, 3) m so far from the robot that their unit must be another one.

    Raises:
        SoftformError: If they are.
    """
    check_scale(points, what, robot.name, float(np.linalg.norm(robot.extent)) if robot.surfaces else robot.body.size)


def faces_from_message(triangles: Sequence[int]) -> NDArray[np.int64]:
    """Unpack triangles, (F, 3).

    Raises:
        SoftformError: If they are no whole triangles, or too many.
    """
    if len(triangles) % 3 or len(triangles) > 3 * MOST_TRIANGLES:
        raise SoftformError(
            f"{len(triangles)} indices are no triangles, or more than {MOST_TRIANGLES}.",
            "Give three vertices for each triangle, or thin the mesh out.",
        )
    return np.array(triangles, dtype=np.int64).reshape(-1, 3)


def triangles_to_message(shape: Shape) -> "array[int]":
    """Pack the triangles of a mesh; none of a cloud."""
    return array("I", b"" if shape.faces is None else np.ascontiguousarray(shape.faces, dtype=np.uint32).tobytes())


def goal_to_message(goal: ReachGoal, frame: str, stamp: Time) -> ReachShape.Goal:
    """Pack a goal; the inverse of `goal_from_message`, but for large meshes (`as_light`)."""
    cloud, triangles = target_to_message(goal.target, frame, stamp)
    return ReachShape.Goal(
        target=cloud,
        triangles=triangles,
        features=TargetPoints() if goal.features is None else features_to_message(goal.features, frame, stamp),
        partial=goal.partial,
        fix_pose=goal.fix_pose,
        mode=int(goal.mode),
        max_rounds=goal.max_rounds,
        options=options_to_message(goal),
    )


def target_to_message(target: Shape | None, frame: str, stamp: Time) -> tuple[PointCloud2, "array[int]"]:
    """Pack a target, or none, as the two fields of a goal; large meshes as points (`as_light`)."""
    light = Shape(np.zeros((0, 3))) if target is None else as_light(target)
    normals = light.normals if light.faces is None else None
    fields = {} if normals is None else dict(zip(NORMAL_FIELDS, normals.T, strict=True))
    return cloud_from_points(light.points, frame, stamp, fields), triangles_to_message(light)


def features_to_message(features: FeaturePoints, frame: str, stamp: Time) -> TargetPoints:
    """Pack feature points."""
    return TargetPoints(
        header=Header(frame_id=frame, stamp=stamp),
        output=features.output,
        u=features.uv[:, 0].tolist(),
        v=features.uv[:, 1].tolist(),
        position=[Point(x=float(x), y=float(y), z=float(z)) for x, y, z in features.positions],
        weight=features.weights.tolist(),
    )


def pose_to_message(pose: RigidTransform) -> Pose:
    """Pack (R, t) in m."""
    x, y, z = (float(value) for value in pose.translation)
    return Pose(position=Point(x=x, y=y, z=z), orientation=quaternion_of(pose.rotation))


def pose_from_message(message: Pose) -> RigidTransform:
    """Unpack (R, t) in m."""
    place = message.position
    return RigidTransform(rotation_of(message.orientation), np.array([place.x, place.y, place.z]))
