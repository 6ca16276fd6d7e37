"""The action `follow_waypoints`; the work is done in `follow`."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_client.driver_watch import DriverWatch
from softform_client.follow_goal import FollowGoal
from softform_client.follow_messages import goal_from_message
from softform_client.shared_codes import in_codes_of_following
from softform_core.robots import Robot
from softform_ik.follow.follow import Follow, FollowOutcome
from softform_ik.follow.messages import feedback_to_message, result_to_message
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import FollowWaypoints
from softform_ros.action_goals import GoalLedger
from softform_ros.lifecycle import SoftformLifecycleNode


class FollowServer(MovingGoalServer[FollowGoal, FollowOutcome]):
    """Serves `follow_waypoints`.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot that follows the path.
        follow: Carries out goals.
        driver: State of the driver.
        commander: Owner of the held command.
        ledger: Outcomes of the node's goals.
    """

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        follow: Follow,
        driver: DriverWatch,
        commander: Commander,
        ledger: GoalLedger,
    ) -> None:
        self._follow, self._driver = follow, driver
        super().__init__(node, robot, FollowWaypoints, "follow_waypoints", commander, ledger)

    def read(self, message: FollowWaypoints.Goal) -> FollowGoal:
        """Check and unpack."""
        goal = self.unpacked(message, goal_from_message)
        if self.moves(goal):
            with in_codes_of_following():
                self._driver.check_ready()
        return goal

    def moves(self, goal: FollowGoal) -> bool:
        """Whether the goal moves the robot: not if it is only planned."""
        return not goal.plan_only

    def run(
        self, goal: FollowGoal, stop: StopRequest, send_feedback: Callable[[FollowWaypoints.Feedback], None]
    ) -> FollowOutcome:
        """Solve, time, move, measure."""
        tell = self.throttled(lambda progress: send_feedback(feedback_to_message(progress, self.robot)))
        return self._follow.run(goal, stop, tell)

    def result(self, outcome: FollowOutcome) -> FollowWaypoints.Result:
        """Pack."""
        return result_to_message(outcome, self.robot)

    def summary(self, outcome: FollowOutcome) -> str:
        """Number of waypoints, time and errors."""
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
