"""The feedback and the result of `plan_to_shape` as messages."""

from softform_client.actuator_values import values_to_message
from softform_core.planning.motion_plan import Progress
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.plan.plan import PlanOutcome
from softform_interfaces.action import PlanToShape
from softform_interfaces.msg import SolveReport


def feedback_to_message(progress: Progress) -> PlanToShape.Feedback:
    """Pack the progress of a goal."""
    return PlanToShape.Feedback(stage=progress.stage, elapsed=progress.seconds, states_checked=progress.states_checked)


def result_to_message(outcome: PlanOutcome, robot: Robot) -> PlanToShape.Result:
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
        result.actuators = values_to_message(robot.actuators_of(plan.actuations), robot)
        result.times = plan.times.tolist()
        result.clearances = plan.clearances.tolist()
        result.margins = plan.margins.tolist()
        result.solve.mean_error = plan.goal.mean_error_mm / MM_PER_M
        result.solve.max_error = plan.goal.max_error_mm / MM_PER_M
    return result
