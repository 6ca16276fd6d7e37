"""The action `reach_shape`; the work is done in `reach`."""

from softform_client.reach_goal import ReachGoal
from softform_client.reach_messages import goal_from_message
from softform_core.units import MM_PER_M
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.reach.course import Progress
from softform_ik.reach.messages import feedback_to_message, result_to_message
from softform_ik.reach.reach import ReachOutcome
from softform_interfaces.action import ReachShape


class ReachServer(MovingGoalServer[ReachGoal, ReachOutcome]):
    """Serves `reach_shape`."""

    action, name = ReachShape, "reach_shape"

    def read(self, message: ReachShape.Goal) -> ReachGoal:
        """Check and unpack."""
        goal = self.unpacked(message, goal_from_message)
        if self.moves(goal):
            self._driver.check_ready()
        return goal

    def moves(self, goal: ReachGoal) -> bool:
        """Whether the goal's mode moves the robot."""
        return goal.mode.moves

    def feedback(self, progress: Progress) -> ReachShape.Feedback:
        """Pack the progress of a goal."""
        return feedback_to_message(progress, self.robot)

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
