"""The feedback and the result of `follow_waypoints` as messages."""

import numpy as np

from softform_client.actuator_values import values_to_message
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.follow.follow import FollowOutcome, FollowProgress
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import SolveReport


def feedback_to_message(progress: FollowProgress, robot: Robot) -> FollowWaypoints.Feedback:
    """Pack the progress of a goal."""
    return FollowWaypoints.Feedback(
        stage=progress.stage,
        waypoint=progress.waypoint,
        error=progress.error_mm / MM_PER_M,
        actuators=values_to_message(progress.values, robot),
    )


def result_to_message(outcome: FollowOutcome, robot: Robot) -> FollowWaypoints.Result:
    """Pack the outcome of a goal."""
    errors = outcome.errors_mm[np.isfinite(outcome.errors_mm)] / MM_PER_M
    return FollowWaypoints.Result(
        actuators=values_to_message(outcome.values, robot),
        times=outcome.due.tolist(),
        errors=(outcome.errors_mm / MM_PER_M).tolist(),
        measured_errors=(outcome.measured_errors_mm / MM_PER_M).tolist(),
        solve=SolveReport(
            mean_error=float(errors.mean()) if len(errors) else float("nan"),
            max_error=float(errors.max()) if len(errors) else float("nan"),
            solve_time=outcome.solve_seconds,
            used_sim_to_real=outcome.used_sim_to_real,
        ),
        error_code=outcome.code,
        error_msg=outcome.message,
    )
