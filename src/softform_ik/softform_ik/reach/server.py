"""The action `reach_shape`, its feedback and its result as messages; the work is done in `reach`."""

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3

from softform_client.actuator_values import values_to_message
from softform_client.reach_goal import ReachGoal
from softform_client.reach_messages import goal_from_message, pose_to_message
from softform_core.evaluation.measured_errors import MeasuredErrors
from softform_core.inverse.ik_result import IkResult
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.reach.goal_execution import Progress
from softform_ik.reach.reach import ReachOutcome
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import MeasuredFit, SolveReport
from softform_ros.conversions import cloud_from_points


class ReachServer(MovingGoalServer[ReachGoal, ReachOutcome]):
    """Serves `reach_shape`."""

    action, name, unpack = ReachShape, "reach_shape", goal_from_message

    def moves(self, goal: ReachGoal) -> bool:
        """Return whether the goal's mode moves the robot."""
        return goal.mode.moves

    def feedback(self, progress: Progress) -> ReachShape.Feedback:
        """Pack the progress of a goal."""
        return ReachShape.Feedback(
            stage=progress.stage,
            iteration=progress.iteration,
            mean_error=progress.mean_error,
            max_error=progress.max_error,
            actuators=values_to_message(progress.commands, self.robot),
            round=progress.round,
        )

    def result(self, outcome: ReachOutcome) -> ReachShape.Result:
        """Pack."""
        return result_to_message(outcome, self.robot, self.robot.base_frame, self.node.get_clock().now().to_msg())

    def summary(self, outcome: ReachOutcome) -> str:
        """Return iterations, time and errors."""
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


def result_to_message(outcome: ReachOutcome, robot: Robot, frame: str, stamp: Time) -> ReachShape.Result:
    """Pack the outcome of a goal that ended at `stamp`; shapes are in `frame`."""
    result = ReachShape.Result(
        error_code=outcome.code,
        error_msg=outcome.message,
        round_mean_errors=[one.measured.mean for one in outcome.rounds],
        round_max_errors=[one.measured.maximum for one in outcome.rounds],
        promised_mean_error=outcome.promised,
    )
    if outcome.solution is not None:
        result.solve = report_to_message(outcome.solution, frame, stamp)
    if outcome.commands is not None:
        result.actuators = values_to_message(outcome.commands, robot)
    result.solve.used_sim_to_real, result.solve.reachable = outcome.used_sim_to_real, outcome.reachable
    if outcome.measured is not None:
        result.measured = fit_to_message(outcome.measured, frame, stamp)
    return result


def report_to_message(solution: IkResult, frame: str, stamp: Time) -> SolveReport:
    """Pack a solution but for what the solver does not know: which model was used, and how good it is."""
    x, y, z = (float(part) / MM_PER_M for part in solution.miss)
    return SolveReport(
        mean_error=solution.mean_error_mm / MM_PER_M,
        max_error=solution.max_error_mm / MM_PER_M,
        shape=cloud_from_points(solution.shape / MM_PER_M, frame, stamp),
        target_pose=pose_to_message(solution.pose.scaled(1.0 / MM_PER_M)),
        solve_time=solution.seconds,
        iterations=solution.iterations,
        error_history=[step.mean_error_mm / MM_PER_M for step in solution.history],
        termination=solution.termination.value,
        miss=Vector3(x=x, y=y, z=z),
        active_bounds=solution.reachability.active_bounds.tolist(),
        unreachable_error=solution.reachability.unreachable_mm / MM_PER_M,
        weak_directions=solution.reachability.weak_directions.ravel().tolist(),
    )


def fit_to_message(measured: MeasuredErrors, frame: str, stamp: Time) -> MeasuredFit:
    """Pack measured errors and the capture that they were measured on."""
    return MeasuredFit(
        valid=True,
        mean_error=measured.mean,
        max_error=measured.maximum,
        shape=cloud_from_points(measured.points, frame, stamp),
    )
