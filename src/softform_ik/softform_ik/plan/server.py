"""The action `plan_to_shape`; the work is done in `plan`."""

from softform_client.actuator_values import values_to_message
from softform_client.plan_messages import PlanGoal, goal_from_message
from softform_core.planning.motion_plan import Progress
from softform_core.units import MM_PER_M
from softform_ik.goals.goal_server import GoalServer
from softform_ik.plan.plan import PlanOutcome
from softform_interfaces.action import PlanToShape
from softform_interfaces.msg import SolveReport


class PlanServer(GoalServer[PlanGoal, PlanOutcome]):
    """Serves `plan_to_shape`; it moves nothing."""

    action, name, unpack = PlanToShape, "plan_to_shape", goal_from_message

    def feedback(self, progress: Progress) -> PlanToShape.Feedback:
        """Pack the progress of a goal."""
        return PlanToShape.Feedback(
            stage=progress.stage, elapsed=progress.seconds, states_checked=progress.states_checked
        )

    def result(self, outcome: PlanOutcome) -> PlanToShape.Result:
        """Pack the outcome of a goal."""
        result = PlanToShape.Result(
            solve=SolveReport(
                mean_error=float("nan"),
                max_error=float("nan"),
                solve_time=outcome.seconds,
                used_sim_to_real=outcome.used_sim_to_real,
            ),
            states_checked=outcome.states_checked,
            error_code=outcome.code,
            error_msg=outcome.message,
        )
        plan = outcome.plan
        if plan is not None:
            assert outcome.commands is not None
            result.actuators = values_to_message(outcome.commands, self.robot)
            result.times = plan.times.tolist()
            result.clearances = plan.clearances.tolist()
            result.margins = plan.margins.tolist()
            result.solve.mean_error = plan.goal.mean_error_mm / MM_PER_M
            result.solve.max_error = plan.goal.max_error_mm / MM_PER_M
        return result

    def summary(self, outcome: PlanOutcome) -> str:
        """Return waypoints, least clearance and time."""
        plan = outcome.plan
        if plan is None:
            return ""
        return (
            f"{len(plan.actuations)} waypoints over {plan.times[-1]:.1f} s, least clearance "
            f"{plan.clearances.min() * MM_PER_M:.2f} mm, planned in {outcome.seconds:.2f} s with "
            f"{outcome.states_checked} surfaces checked"
        )
