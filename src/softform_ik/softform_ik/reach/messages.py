"""Between the action's messages and what the solver works with."""

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from shape_msgs.msg import MeshTriangle
from std_msgs.msg import Header

from softform_core.errors import SoftformError
from softform_core.inverse.ik_result import IkResult
from softform_core.registration.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M
from softform_ik.light_mesh import as_light
from softform_ik.reach.course import Progress
from softform_ik.reach.feature_checks import check_features, check_wanted
from softform_ik.reach.goal import (
    Code,
    ReachGoal,
    check_header,
    check_limits,
    check_mode,
    check_seed,
    check_shape,
    check_size,
)
from softform_ik.reach.reach import ReachOutcome
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import TargetPoints
from softform_ros.conversions import cloud_from_points, points_from_cloud, seconds_from_stamp
from softform_ros.goal_error import GoalError


def goal_from_message(
    message: ReachShape.Goal, robot: Robot, frame: str, now: float, max_target_age: float
) -> ReachGoal:
    """Check a goal message and unpack it.

    Args:
        message: As it came.
        robot: Who is to take the shape.
        frame: The robot's frame.
        now: s since the epoch.
        max_target_age: s.

    Raises:
        GoalError: If the goal cannot be accepted.
    """
    mode = check_mode(message.mode)
    check_limits(message.tolerance, message.max_time, message.max_rounds, message.starts, message.preference)
    features = features_from_message(message.features, robot)
    target = None
    if features is not None:
        _check_header(message.features.header, frame, now, max_target_age)
    if features is None or message.target.width * message.target.height > 0:
        _check_header(message.target.header, frame, now, max_target_age)
        target = _target_from_message(message, robot)
    goal = ReachGoal(
        target,
        mode,
        message.fix_pose,
        check_seed(message.seed_pressures, robot),
        message.tolerance,
        message.max_time,
        message.max_rounds,
        message.without_sim_to_real,
        features,
        message.partial,
        message.starts,
        check_seed(message.preferred_pressures, robot, "Preferred"),
        message.preference,
    )
    return check_wanted(goal)


def _check_header(header: Header, frame: str, now: float, max_age: float) -> None:
    check_header(header.frame_id, seconds_from_stamp(header.stamp), frame, now, max_age)


def _target_from_message(message: ReachShape.Goal, robot: Robot) -> TargetShape:
    check_size(message.target.width * message.target.height)
    try:
        points = points_from_cloud(message.target)
    except SoftformError as error:
        raise GoalError(Code.INVALID_TARGET, error.message, error.next_step) from error
    triangles = np.array([triangle.vertex_indices for triangle in message.triangles], dtype=np.int64).reshape(-1, 3)
    return check_shape(points, triangles, robot)


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
    target = TargetShape(np.zeros((0, 3))) if goal.target is None else as_light(goal.target)
    faces = target.faces
    return ReachShape.Goal(
        target=cloud_from_points(target.points, frame, stamp),
        triangles=[] if faces is None else [MeshTriangle(vertex_indices=face) for face in faces.astype(np.uint32)],
        mode=int(goal.mode),
        fix_pose=goal.fix_pose,
        seed_pressures=_numbers(goal.seed_pressures),
        tolerance=float(goal.tolerance),
        max_time=float(goal.max_time),
        max_rounds=goal.max_rounds,
        without_sim_to_real=goal.without_sim_to_real,
        features=TargetPoints() if goal.features is None else features_to_message(goal.features, frame, stamp),
        partial=goal.partial,
        starts=goal.starts,
        preferred_pressures=_numbers(goal.preferred_pressures),
        preference=float(goal.preference),
    )


def features_to_message(features: FeaturePoints, frame: str, stamp: Time) -> TargetPoints:
    """Pack feature points."""
    return TargetPoints(
        header=Header(frame_id=frame, stamp=stamp),
        u=features.uv[:, 0].tolist(),
        v=features.uv[:, 1].tolist(),
        position=[Point(x=float(x), y=float(y), z=float(z)) for x, y, z in features.positions],
        weight=features.weights.tolist(),
    )


def _numbers(pressures: NDArray[np.float64] | None) -> list[float]:
    return [] if pressures is None else np.asarray(pressures, dtype=np.float64).tolist()


def pose_to_message(pose: RigidTransform) -> Pose:
    """Pack (R, t) in m."""
    x, y, z, w = (float(value) for value in pose.quaternion())
    tx, ty, tz = (float(value) for value in pose.translation)
    return Pose(position=Point(x=tx, y=ty, z=tz), orientation=Quaternion(x=x, y=y, z=z, w=w))


def pose_from_message(message: Pose) -> RigidTransform:
    """Unpack (R, t) in m."""
    p, q = message.position, message.orientation
    return RigidTransform(Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix(), np.array([p.x, p.y, p.z]))


def feedback_to_message(progress: Progress) -> ReachShape.Feedback:
    """Pack the progress of a goal."""
    return ReachShape.Feedback(
        stage=progress.stage,
        iteration=progress.iteration,
        mean_error=progress.mean_error,
        max_error=progress.max_error,
        pressures=progress.pressures.tolist(),
        round=progress.round,
    )


def result_to_message(outcome: ReachOutcome, frame: str, stamp: Time) -> ReachShape.Result:
    """Pack the outcome of a goal.

    Args:
        outcome: What became of it.
        frame: Of the predicted and measured shapes.
        stamp: When the goal ended.
    """
    result = ReachShape.Result(
        error_code=outcome.code,
        error_msg=outcome.message,
        used_sim_to_real=outcome.used_sim_to_real,
        reachable=outcome.reachable,
        round_mean_errors=[one.measured.mean for one in outcome.rounds],
        round_max_errors=[one.measured.maximum for one in outcome.rounds],
        promised_mean_error=outcome.promised,
    )
    result.target_pose.orientation.w = 1.0
    if outcome.solution is not None:
        _pack_solution(result, outcome.solution, frame, stamp)
    if outcome.measured is not None:
        result.verified = True
        result.measured_mean_error = outcome.measured.mean
        result.measured_max_error = outcome.measured.maximum
        result.measured_shape = cloud_from_points(outcome.measured.points, frame, stamp)
    return result


def _pack_solution(result: ReachShape.Result, solution: IkResult, frame: str, stamp: Time) -> None:
    result.pressures = solution.pressures.tolist()
    result.target_pose = pose_to_message(solution.pose.scaled(1.0 / MM_PER_M))
    result.predicted_mean_error = solution.mean_error_mm / MM_PER_M
    result.predicted_max_error = solution.max_error_mm / MM_PER_M
    result.predicted_shape = cloud_from_points(solution.points / MM_PER_M, frame, stamp)
    result.solve_time = solution.seconds
    result.iterations = solution.iterations
    result.error_history = [step.mean_error_mm / MM_PER_M for step in solution.history]
    result.termination = solution.termination.value
    result.active_bounds = solution.reachability.active_bounds.tolist()
    result.unreachable_error = solution.reachability.unreachable_mm / MM_PER_M
    result.weak_directions = solution.reachability.weak_directions.ravel().tolist()
