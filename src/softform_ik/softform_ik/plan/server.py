"""The action `plan_to_shape`; the work is done in `plan`."""

from collections.abc import Callable

from softform_client.plan_goal import PlanGoal
from softform_client.plan_messages import goal_from_message
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.goals.goal_server import GoalServer
from softform_ik.plan.messages import feedback_to_message, result_to_message
from softform_ik.plan.plan import Plan, PlanOutcome
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import PlanToShape
from softform_ros.action_goals import GoalLedger
from softform_ros.lifecycle import SoftformLifecycleNode


class PlanServer(GoalServer[PlanGoal, PlanOutcome]):
    """Serves `plan_to_shape`; it moves nothing.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot whose motions are planned.
        plan: Carries out goals.
        ledger: Outcomes of the node's goals.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, plan: Plan, ledger: GoalLedger) -> None:
        self._plan = plan
        super().__init__(node, robot, PlanToShape, "plan_to_shape", ledger)

    def read(self, message: PlanToShape.Goal) -> PlanGoal:
        """Check and unpack."""
        return self.unpacked(message, goal_from_message)

    def run(
        self, goal: PlanGoal, stop: StopRequest, send_feedback: Callable[[PlanToShape.Feedback], None]
    ) -> PlanOutcome:
        """Plan."""
        tell = self.throttled(lambda progress: send_feedback(feedback_to_message(progress)))
        return self._plan.run(goal, stop, tell)

    def result(self, outcome: PlanOutcome) -> PlanToShape.Result:
        """Pack."""
        return result_to_message(outcome, self.robot)

    def summary(self, outcome: PlanOutcome) -> str:
        """Waypoints, least clearance and time."""
        plan = outcome.plan
        if plan is None:
            return ""
        return (
            f"{len(plan.actuations)} waypoints over {plan.times[-1]:.1f} s, least clearance "
            f"{plan.clearances.min() * MM_PER_M:.2f} mm, planned in {outcome.seconds:.2f} s with "
            f"{outcome.states_checked} surfaces checked"
        )
