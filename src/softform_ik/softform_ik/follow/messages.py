"""The feedback and the result of `follow_waypoints` as messages."""

from softform_core.units import MM_PER_M
from softform_ik.follow.follow import FollowOutcome, FollowProgress
from softform_interfaces.action import FollowWaypoints


def feedback_to_message(progress: FollowProgress) -> FollowWaypoints.Feedback:
    """Pack the progress of a goal."""
    return FollowWaypoints.Feedback(
        stage=progress.stage,
        waypoint=progress.waypoint,
        error=progress.error_mm / MM_PER_M,
        pressures=progress.pressures.tolist(),
    )


def result_to_message(outcome: FollowOutcome) -> FollowWaypoints.Result:
    """Pack the outcome of a goal."""
    return FollowWaypoints.Result(
        pressures=outcome.pressures.ravel().tolist(),
        times=outcome.due.tolist(),
        errors=(outcome.errors_mm / MM_PER_M).tolist(),
        measured_errors=(outcome.measured_errors_mm / MM_PER_M).tolist(),
        solve_time=outcome.solve_seconds,
        used_sim_to_real=outcome.used_sim_to_real,
        error_code=outcome.code,
        error_msg=outcome.message,
    )
