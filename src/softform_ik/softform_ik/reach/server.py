"""The action `reach_shape`; the work is done in `reach`."""

from collections.abc import Callable

from softform_client.driver_watch import DriverWatch
from softform_client.reach_goal import ReachGoal
from softform_client.reach_messages import goal_from_message
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.reach.messages import feedback_to_message, result_to_message
from softform_ik.reach.reach import Reach, ReachOutcome
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import ReachShape
from softform_ros.action_goals import GoalLedger
from softform_ros.lifecycle import SoftformLifecycleNode


class ReachServer(MovingGoalServer[ReachGoal, ReachOutcome]):
    """Serves `reach_shape`.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot that takes the shapes.
        reach: Carries out goals.
        driver: State of the driver.
        commander: Owner of the held command.
        ledger: Outcomes of the node's goals.
    """

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        reach: Reach,
        driver: DriverWatch,
        commander: Commander,
        ledger: GoalLedger,
    ) -> None:
        self._reach, self._driver = reach, driver
        super().__init__(node, robot, ReachShape, "reach_shape", commander, ledger)

    def read(self, message: ReachShape.Goal) -> ReachGoal:
        """Check and unpack."""
        goal = self.unpacked(message, goal_from_message)
        if self.moves(goal):
            self._driver.check_ready()
        return goal

    def moves(self, goal: ReachGoal) -> bool:
        """Whether the goal's mode moves the robot."""
        return goal.mode.moves

    def run(
        self, goal: ReachGoal, stop: StopRequest, send_feedback: Callable[[ReachShape.Feedback], None]
    ) -> ReachOutcome:
        """Plan, move, verify."""
        tell = self.throttled(lambda progress: send_feedback(feedback_to_message(progress, self.robot)))
        return self._reach.run(goal, stop, tell)

    def result(self, outcome: ReachOutcome) -> ReachShape.Result:
        """Pack."""
        return result_to_message(outcome, self.robot, self.robot.base_frame, self.node.get_clock().now().to_msg())

    def summary(self, outcome: ReachOutcome) -> str:
        """Iterations, time and errors."""
        solution = outcome.solution
        if solution is None:
            return ""
        summary = (
            f"{solution.iterations} iterations in {solution.seconds * 1e3:.0f} ms, predicted mean error "
            f"{solution.mean_error_mm:.3f} mm: {solution.termination.value}"
        )
        if outcome.rounds:
            means = ", ".join(f"{one.measured.mean * MM_PER_M:.3f}" for one in outcome.rounds)
            summary += f"; measured mean error of each round: {means} mm"
        return summary
