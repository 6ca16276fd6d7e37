"""Between the action's messages and what the solver works with."""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import PointCloud2
from shape_msgs.msg import MeshTriangle
from std_msgs.msg import Header

from softform_client.actuator_values import values_to_message
from softform_client.reach_goal import (
    Code,
    Mode,
    ReachGoal,
    check_header,
    check_shape,
    check_upright,
    check_whole,
    given_values,
    one_of,
)
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.target import TargetShape
from softform_core.shapes.validate import check_count, check_scale
from softform_interfaces.action import CaptureShape, ReachShape
from softform_interfaces.msg import SolveOptions, TargetPoints
from softform_ros.conversions import NORMAL_FIELDS, cloud_from_points, points_from_cloud, values_from_cloud
from softform_ros.goal_error import GoalError, in_code

MOST_TRIANGLES = 20_000
"""Triangles of a message are unpacked one by one, by the thread that also repeats what the robot holds: a hundred
thousand take most of the second after which the driver vents."""

SAMPLED_POINTS = 20_000

MAX_STARTS = 1000
"""More starts than this never found anything better: the search ends by itself long before."""

MAX_ROUNDS = 100
"""More corrections than this are a mistake: a few are enough."""


def as_light(shape: TargetShape) -> TargetShape:
    """The shape itself, or of a mesh of more than `MOST_TRIANGLES` a cloud of `SAMPLED_POINTS`, even by area."""
    if shape.faces is None or len(shape.faces) <= MOST_TRIANGLES:
        return shape
    return shape.sample(SAMPLED_POINTS)


def goal_from_message(
    message: ReachShape.Goal, robot: Robot, frame: str, now: float, max_target_age: float
) -> ReachGoal:
    """Check a goal message for a robot with that frame at `now` (s since the epoch), and unpack it.

    Raises:
        GoalError: If the goal cannot be accepted, as when its target is older than `max_target_age`, s.
    """
    mode = one_of(Mode, message.mode, Code.INVALID_TARGET, "mode")
    options = message.options
    _check_limits(message)
    features = features_from_message(message.features, robot)
    target = None
    if features is not None:
        check_header(message.features.header, frame, now, max_target_age)
    if features is None or message.target.width * message.target.height > 0:
        target = target_from_message(message, robot, frame, now, max_target_age)
    goal = ReachGoal(
        target,
        mode,
        message.fix_pose,
        given_values(options.seed, robot, Code.INVALID_SEED, "Seed values"),
        options.tolerance,
        options.max_time,
        message.max_rounds,
        options.without_sim_to_real,
        features,
        message.partial,
        options.starts,
        given_values(options.preferred, robot, Code.INVALID_SEED, "Preferred values"),
        options.preference,
        options.accept_unreachable,
    )
    if goal.fix_pose and not goal.accept_unreachable:
        check_upright(target, robot)
    if not (goal.partial or goal.accept_unreachable):
        check_whole(target, robot)
    return _check_wanted(goal)


def _check_limits(message: ReachShape.Goal) -> None:
    """Reject limits that are negative or not finite, and too many rounds or starts."""
    options = message.options
    for name, count, most in (("starts", options.starts, MAX_STARTS), ("max_rounds", message.max_rounds, MAX_ROUNDS)):
        if not 0 <= count <= most:
            raise GoalError(Code.INVALID_TARGET, f"{name} is {count}.", f"Give at most {most}, or 0 for the default.")
    for name, unit in (("tolerance", "m"), ("max_time", "s"), ("preference", "mm^2")):
        value = getattr(options, name)
        if not (np.isfinite(value) and value >= 0.0):
            raise GoalError(
                Code.INVALID_TARGET, f"{name} is {value} {unit}.", "Give a positive number, or 0 for the default."
            )


def _check_wanted(goal: ReachGoal) -> ReachGoal:
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


def points_from_message(
    cloud: PointCloud2, frame: str, now: float, max_age: float, what: str = "target"
) -> NDArray[np.float64]:
    """Check a cloud and unpack its points, (N, 3) m; arguments as of `check_header`.

    Raises:
        GoalError: If it is in another frame, too old, too small or too large, or cannot be read.
    """
    check_header(cloud.header, frame, now, max_age, what)
    with in_code(Code.INVALID_TARGET):
        check_count(cloud.width * cloud.height, what)  # before they are copied
        return points_from_cloud(cloud)


def target_from_message(
    message: ReachShape.Goal | CaptureShape.Goal, robot: Robot, frame: str, now: float, max_age: float
) -> TargetShape:
    """Check the target of a goal and unpack it; arguments as of `goal_from_message`.

    Raises:
        GoalError: If it is in another frame, too old, or unusable.
    """
    points = points_from_message(message.target, frame, now, max_age)
    shape = check_shape(points, faces_from_message(message.triangles), robot)
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
    if not (len(message.u) or len(message.position) or len(message.weight)):
        return None
    uv = np.stack([message.u, message.v], axis=1).astype(np.float64)
    positions = np.array([(point.x, point.y, point.z) for point in message.position], dtype=np.float64).reshape(-1, 3)
    with in_code(Code.INVALID_TARGET):
        features = FeaturePoints.of(uv, positions, message.weight if len(message.weight) else None)
        robot.patches.split(features.uv)
        check_scale(features.positions, "Feature point", robot.name, float(np.linalg.norm(robot.extent)))
    return features


def faces_from_message(triangles: Sequence[MeshTriangle]) -> NDArray[np.int64]:
    """Unpack triangles, (F, 3)."""
    return np.array([triangle.vertex_indices for triangle in triangles], dtype=np.int64).reshape(-1, 3)


def triangles_to_message(shape: TargetShape) -> list[MeshTriangle]:
    """Pack the triangles of a mesh; none of a cloud."""
    return [] if shape.faces is None else [MeshTriangle(vertex_indices=face) for face in shape.faces.astype(np.uint32)]


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
    return cloud_from_points(light.points, frame, stamp, fields), triangles_to_message(light)


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
