"""The action `plan_to_shape`; the work is done in `plan`."""

from collections.abc import Callable
from operator import attrgetter

from softform_client.goal_frames import bring_into
from softform_client.plan_goal import PlanGoal
from softform_client.plan_messages import goal_from_message
from softform_core.planning.motion_plan import Progress
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.goals.feedback_throttle import FeedbackThrottle
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
        ledger: What became of the node's goals.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, plan: Plan, ledger: GoalLedger) -> None:
        self._robot, self._plan = robot, plan
        super().__init__(node, PlanToShape, "plan_to_shape", ledger)

    def read(self, message: PlanToShape.Goal) -> PlanGoal:
        """Check and unpack."""
        parameters = self.node.parameters
        now = self.node.get_clock().now().nanoseconds * 1e-9
        bring_into(self._robot.base_frame, message, self.node.frames)
        return goal_from_message(message, self._robot, self._robot.base_frame, now, parameters["max_target_age"])

    def run(
        self, goal: PlanGoal, stop: StopRequest, send_feedback: Callable[[PlanToShape.Feedback], None]
    ) -> PlanOutcome:
        """Plan."""
        throttle: FeedbackThrottle[Progress] = FeedbackThrottle(
            lambda progress: send_feedback(feedback_to_message(progress)),
            self.node.parameters["feedback_rate"],
            phase_of=attrgetter("stage"),
        )
        return self._plan.run(goal, stop, throttle)

    def result(self, outcome: PlanOutcome) -> PlanToShape.Result:
        """Pack."""
        return result_to_message(outcome, self._robot)

    def summary(self, outcome: PlanOutcome) -> str:
        """Waypoints, least clearance and time."""
        plan = outcome.plan
        if plan is None:
            return ""
        return (
            f"{len(plan.pressures)} waypoints over {plan.times[-1]:.1f} s, least clearance "
            f"{plan.clearances.min() * MM_PER_M:.2f} mm, planned in {outcome.seconds:.2f} s with "
            f"{outcome.states_checked} surfaces checked"
        )
