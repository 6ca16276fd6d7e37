"""Between the action's messages and what the solver works with."""

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import PointCloud2
from shape_msgs.msg import MeshTriangle
from std_msgs.msg import Header

from softform_client.actuator_values import values_to_message
from softform_client.feature_checks import check_features, check_wanted
from softform_client.reach_goal import (
    Code,
    ReachGoal,
    check_header,
    check_limits,
    check_mode,
    check_seed,
    check_shape,
    check_size,
    check_upright,
    check_whole,
)
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.target import TargetShape
from softform_interfaces.action import CaptureShape, ReachShape
from softform_interfaces.msg import SolveOptions, TargetPoints
from softform_ros.conversions import (
    NORMAL_FIELDS,
    cloud_from_points,
    points_from_cloud,
    seconds_from_stamp,
    values_from_cloud,
)
from softform_ros.goal_error import GoalError, in_code

MOST_TRIANGLES = 20_000
"""Triangles of a message are unpacked one by one, by the thread that also repeats what the robot holds: a hundred
thousand take most of the second after which the driver vents."""

SAMPLED_POINTS = 20_000


def as_light(shape: TargetShape) -> TargetShape:
    """The shape itself, or of a mesh of more than `MOST_TRIANGLES` a cloud of `SAMPLED_POINTS`, even by area."""
    if shape.faces is None or len(shape.faces) <= MOST_TRIANGLES:
        return shape
    return shape.sample(SAMPLED_POINTS)


def goal_from_message(
    message: ReachShape.Goal, robot: Robot, frame: str, now: float, max_target_age: float
) -> ReachGoal:
    """Check a goal message and unpack it.

    Args:
        message: The goal message.
        robot: Robot that takes the shape.
        frame: The robot's frame.
        now: Present time, s since the epoch.
        max_target_age: Largest age of the target, s.

    Raises:
        GoalError: If the goal cannot be accepted.
    """
    mode = check_mode(message.mode)
    options = message.options
    check_limits(options.tolerance, options.max_time, message.max_rounds, options.starts, options.preference)
    features = features_from_message(message.features, robot)
    target = None
    if features is not None:
        _check_header(message.features.header, frame, now, max_target_age)
    if features is None or message.target.width * message.target.height > 0:
        target = target_from_message(message, robot, frame, now, max_target_age)
    goal = ReachGoal(
        target,
        mode,
        message.fix_pose,
        check_seed(options.seed, robot),
        options.tolerance,
        options.max_time,
        message.max_rounds,
        options.without_sim_to_real,
        features,
        message.partial,
        options.starts,
        check_seed(options.preferred, robot, "Preferred"),
        options.preference,
        options.accept_unreachable,
    )
    if goal.fix_pose and not goal.accept_unreachable:
        check_upright(target, robot)
    if not (goal.partial or goal.accept_unreachable):
        check_whole(target, robot)
    return check_wanted(goal)


def _check_header(header: Header, frame: str, now: float, max_age: float) -> None:
    check_header(header.frame_id, seconds_from_stamp(header.stamp), frame, now, max_age)


def target_from_message(
    message: ReachShape.Goal | CaptureShape.Goal, robot: Robot, frame: str, now: float, max_age: float
) -> TargetShape:
    """Check the target of a goal and unpack it; arguments as of `goal_from_message`.

    Raises:
        GoalError: If it is in another frame, too old, or unusable.
    """
    _check_header(message.target.header, frame, now, max_age)
    check_size(message.target.width * message.target.height)
    with in_code(Code.INVALID_TARGET):
        points = points_from_cloud(message.target)
    triangles = np.array([triangle.vertex_indices for triangle in message.triangles], dtype=np.int64).reshape(-1, 3)
    shape = check_shape(points, triangles, robot)
    if shape.faces is None and {*NORMAL_FIELDS} <= {field.name for field in message.target.fields}:
        with in_code(Code.INVALID_TARGET):
            normals = values_from_cloud(message.target, NORMAL_FIELDS)
        if np.isfinite(normals).all():
            shape = TargetShape.from_cloud(shape.points, normals)
    return shape


def features_from_message(message: TargetPoints, robot: Robot) -> FeaturePoints | None:
    """Unpack feature points, or None if there are none; frame and stamp are the caller's to check.

    Raises:
        GoalError: If sizes differ, a number is not finite or out of range, or a position shows a wrong unit.
    """
    if len(message.u) != len(message.v):
        raise GoalError(
            Code.INVALID_TARGET,
            f"Feature points have {len(message.u)} u and {len(message.v)} v.",
            "Give one u and one v for each.",
        )
    uv = np.stack([message.u, message.v], axis=1).astype(np.float64)
    positions = np.array([(point.x, point.y, point.z) for point in message.position], dtype=np.float64).reshape(-1, 3)
    return check_features(uv, positions, message.weight, robot)


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
        options=SolveOptions(
            seed=values_to_message(goal.seed),
            tolerance=float(goal.tolerance),
            max_time=float(goal.max_time),
            starts=goal.starts,
            preferred=values_to_message(goal.preferred),
            preference=float(goal.preference),
            without_sim_to_real=goal.without_sim_to_real,
            accept_unreachable=goal.accept_unreachable,
        ),
    )


def target_to_message(target: TargetShape | None, frame: str, stamp: Time) -> tuple[PointCloud2, list[MeshTriangle]]:
    """Pack a target, or none, as the two fields of a goal; large meshes as points (`as_light`)."""
    light = TargetShape(np.zeros((0, 3))) if target is None else as_light(target)
    normals = light.normals if light.faces is None else None
    fields = {} if normals is None else dict(zip(NORMAL_FIELDS, normals.T, strict=True))
    cloud = cloud_from_points(light.points, frame, stamp, fields)
    if light.faces is None:
        return cloud, []
    return cloud, [MeshTriangle(vertex_indices=face) for face in light.faces.astype(np.uint32)]


def features_to_message(features: FeaturePoints, frame: str, stamp: Time) -> TargetPoints:
    """Pack feature points."""
    return TargetPoints(
        header=Header(frame_id=frame, stamp=stamp),
        u=features.uv[:, 0].tolist(),
        v=features.uv[:, 1].tolist(),
        position=[Point(x=float(x), y=float(y), z=float(z)) for x, y, z in features.positions],
        weight=features.weights.tolist(),
    )


def pose_to_message(pose: RigidTransform) -> Pose:
    """Pack (R, t) in m."""
    x, y, z, w = (float(value) for value in pose.quaternion())
    tx, ty, tz = (float(value) for value in pose.translation)
    return Pose(position=Point(x=tx, y=ty, z=tz), orientation=Quaternion(x=x, y=y, z=z, w=w))


def pose_from_message(message: Pose) -> RigidTransform:
    """Unpack (R, t) in m."""
    p, q = message.position, message.orientation
    return RigidTransform(Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix(), np.array([p.x, p.y, p.z]))
