"""The action `follow_waypoints`; the work is done in `follow`."""

import numpy as np
from numpy.typing import NDArray

from softform_client.actuator_values import values_to_message
from softform_client.follow_messages import FollowGoal, goal_from_message
from softform_client.shared_codes import CODE_OF_FOLLOWING
from softform_core.units import MM_PER_M
from softform_ik.follow.follow import FollowOutcome, FollowProgress
from softform_ik.goals.goal_server import MovingGoalServer
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import SolveReport


class FollowServer(MovingGoalServer[FollowGoal, FollowOutcome]):
    """Serves `follow_waypoints`."""

    action, name, unpack, codes = FollowWaypoints, "follow_waypoints", goal_from_message, CODE_OF_FOLLOWING

    def moves(self, goal: FollowGoal) -> bool:
        """Return whether the goal moves the robot; one that is only planned does not."""
        return not goal.plan_only

    def feedback(self, progress: FollowProgress) -> FollowWaypoints.Feedback:
        """Pack the progress of a goal."""
        return FollowWaypoints.Feedback(
            stage=progress.stage,
            waypoint=progress.waypoint,
            error=progress.error_mm / MM_PER_M,
            actuators=values_to_message(progress.values, self.robot),
        )

    def result(self, outcome: FollowOutcome) -> FollowWaypoints.Result:
        """Pack the outcome of a goal."""
        errors = outcome.errors_mm[np.isfinite(outcome.errors_mm)] / MM_PER_M
        return FollowWaypoints.Result(
            actuators=values_to_message(outcome.values, self.robot),
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

    def summary(self, outcome: FollowOutcome) -> str:
        """Return the number of waypoints, time and errors."""
        count = len(outcome.values)
        if count == 0:
            return ""
        summary = f"{count} waypoints solved in {outcome.solve_seconds * 1e3:.0f} ms"
        if np.isfinite(outcome.errors_mm).any():
            summary += f", predicted errors of {_mean_and_largest(outcome.errors_mm)}"
        if np.isfinite(outcome.measured_errors_mm).any():
            summary += f", measured errors of {_mean_and_largest(outcome.measured_errors_mm)}"
        return f"{summary}; {len(outcome.measured_errors_mm)} were reached"


def _mean_and_largest(errors_mm: NDArray[np.float64]) -> str:
    return f"{np.nanmean(errors_mm):.3f} mm on average and {np.nanmax(errors_mm):.3f} mm at most"
