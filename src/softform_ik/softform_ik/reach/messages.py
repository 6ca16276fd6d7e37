"""The feedback and the result of `reach_shape` as messages."""

from builtin_interfaces.msg import Time

from softform_client.reach_messages import pose_to_message
from softform_core.inverse.ik_result import IkResult
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.reach.course import Progress
from softform_ik.reach.reach import ReachOutcome
from softform_interfaces.action import ReachShape
from softform_ros.conversions import cloud_from_points


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


def result_to_message(outcome: ReachOutcome, robot: Robot, frame: str, stamp: Time) -> ReachShape.Result:
    """Pack the outcome of a goal.

    Args:
        outcome: What became of it.
        robot: Robot whose actuators take the commands.
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
        result.pressures = robot.actuators_of(outcome.solution.pressures).tolist()
    if outcome.measured is not None:
        result.verified = True
        result.measured_mean_error = outcome.measured.mean
        result.measured_max_error = outcome.measured.maximum
        result.measured_shape = cloud_from_points(outcome.measured.points, frame, stamp)
    return result


def _pack_solution(result: ReachShape.Result, solution: IkResult, frame: str, stamp: Time) -> None:
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
