"""The action `reach_shape`: goals are carried out from target to verified shape; their outcome as a message."""

from collections.abc import Callable
from dataclasses import dataclass

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3

from softform_client.actuator_values import values_to_message
from softform_client.reach_goal import ReachGoal
from softform_client.reach_messages import goal_from_message, pose_to_message
from softform_core.arrays import Array
from softform_core.evaluation.measured_errors import MeasuredErrors
from softform_core.forward.robot_models import RobotModels
from softform_core.inverse.ik_result import IkResult
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.goals.reach_limit import ReachSettings
from softform_ik.reach.goal_execution import GoalExecution, Round, best_of
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import MeasuredFit, SolveReport
from softform_ros.conversions import cloud_from_points
from softform_ros.goal_error import GoalCode, Outcome, failure

_FOUND = "; the result is the best found until then"


@dataclass(frozen=True)
class ReachOutcome(Outcome):
    """Outcome of a goal.

    Attributes:
        solution: The best found, or None if nothing was solved: of the plans that were measured, the best of these.
        rounds: Measured rounds, in order; the first is the open loop's.
        used_sim_to_real: Whether the plans saw the learned reality.
        promised: Mean error that the closed loop's last plan promises, m; NaN without one.
        reachable: Whether the solution is within the tolerance, or the model's own error, of what is wanted.
        commands: (k,) actuator values that have brought the robot to the solution, or would from where it is.
    """

    solution: IkResult | None = None
    rounds: tuple[Round, ...] = ()
    used_sim_to_real: bool = False
    promised: float = float("nan")
    reachable: bool = False
    commands: Array | None = None

    @property
    def measured(self) -> MeasuredErrors | None:
        """Captured errors of `solution`, if the goal got so far."""
        return best_of(list(self.rounds)).measured if self.rounds else None


class Reach:
    """Carries out goals for one robot, one at a time."""

    def __init__(self, robot: Robot, models: RobotModels, settings: ReachSettings, hardware: Hardware) -> None:
        self._robot, self._models, self._settings, self._hardware = robot, models, settings, hardware

    def run(self, goal: ReachGoal, stop: StopRequest, tell: Callable[[ReachShape.Feedback], None]) -> ReachOutcome:
        """Carry out a goal; returns an outcome whatever happens.

        A goal that is cancelled while the robot moves leaves it where it is: the values measured then are held.
        """
        try:
            models = self._models.of(goal.model)
        except Exception as error:  # a model of another package may raise anything
            return ReachOutcome(*failure(error, GoalCode.INVALID_GOAL))
        simulated = models.simulated
        pipeline = simulated if goal.without_sim_to_real else models.current
        settings = self._settings
        execution = GoalExecution(self._robot, pipeline, simulated, self._hardware, goal, stop, tell, settings)
        near_mm = max((goal.tolerance or settings.tolerance) * MM_PER_M, models.mean_error_mm(pipeline))

        def outcome(code: GoalCode, message: str) -> ReachOutcome:
            best = execution.best
            reachable = best is not None and best.mean_error_mm <= near_mm
            return ReachOutcome(
                code,
                message,
                best,
                tuple(execution.rounds),
                pipeline is not simulated,
                execution.promised,
                reachable,
                execution.commands,
            )

        try:
            execution.run()
        except Exception as error:
            return outcome(*failure(error, GoalCode.SOLVER_FAILED))
        # A goal that ended before it was asked to has done what it was sent for.
        return outcome(*stop.ending(_FOUND)) if execution.was_cut_short else outcome(GoalCode.NONE, "")


class ReachServer(MovingGoalServer[ReachGoal, ReachOutcome]):
    """Serves `reach_shape`."""

    action, name, unpack = ReachShape, "reach_shape", goal_from_message
    parts = dict.fromkeys(("target", "features"), GoalCode.INVALID_TARGET)

    def moves(self, goal: ReachGoal) -> bool:
        """Return whether the goal's mode moves the robot."""
        return goal.mode.moves

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
