"""The feedback and the result of `plan_to_shape` as messages."""

from softform_core.planning.motion_plan import Progress
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.plan.plan import PlanOutcome
from softform_interfaces.action import PlanToShape


def feedback_to_message(progress: Progress) -> PlanToShape.Feedback:
    """Pack the progress of a goal."""
    return PlanToShape.Feedback(stage=progress.stage, elapsed=progress.seconds, states_checked=progress.states_checked)


def result_to_message(outcome: PlanOutcome, robot: Robot) -> PlanToShape.Result:
    """Pack the outcome of a goal."""
    result = PlanToShape.Result(
        goal_mean_error=float("nan"),
        goal_max_error=float("nan"),
        solve_time=outcome.seconds,
        states_checked=outcome.states_checked,
        used_sim_to_real=outcome.used_sim_to_real,
        error_code=outcome.code,
        error_msg=outcome.message,
    )
    plan = outcome.plan
    if plan is not None:
        result.pressures = robot.actuators_of(plan.pressures).ravel().tolist()
        result.times = plan.times.tolist()
        result.clearances = plan.clearances.tolist()
        result.margins = plan.margins.tolist()
        result.goal_mean_error = plan.goal.mean_error_mm / MM_PER_M
        result.goal_max_error = plan.goal.max_error_mm / MM_PER_M
    return result
