"""Carries out goals, from target to verified shape, one at a time in a worker thread; raises nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from softform_client.reach_goal import Code, ReachGoal
from softform_core.arrays import Array
from softform_core.evaluation.measured_errors import MeasuredErrors
from softform_core.forward.robot_models import RobotModels
from softform_core.inverse.ik_result import IkResult
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.reach.goal_execution import ClosedLoopSettings, GoalExecution, Progress, Round, SolveSettings, best_of
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import Outcome, StopRequest, stop_messages
from softform_ros.goal_error import failure

_STOPPED = stop_messages(Code, "; the result is the best found until then")


@dataclass(frozen=True)
class ReachSettings:
    """Defaults for what goals do not say."""

    solving: SolveSettings = field(default_factory=SolveSettings)
    looping: ClosedLoopSettings = field(default_factory=ClosedLoopSettings)


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

    def run(self, goal: ReachGoal, stop: StopRequest, on_progress: Callable[[Progress], None]) -> ReachOutcome:
        """Carry out a goal; returns an outcome whatever happens.

        A goal that is cancelled while the robot moves leaves it where it is: the values measured then are held.
        """
        simulated = self._models.simulated
        pipeline = simulated if goal.without_sim_to_real else self._models.current
        looping = self._settings.looping
        if goal.max_rounds:
            looping = replace(looping, max_rounds=goal.max_rounds)
        solving = self._settings.solving
        execution = GoalExecution(
            self._robot, pipeline, simulated, self._hardware, goal, stop, on_progress, solving, looping
        )
        near_mm = max((goal.tolerance or solving.tolerance) * MM_PER_M, self._models.mean_error_mm(pipeline))

        def outcome(code: int, message: str) -> ReachOutcome:
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
            return outcome(*failure(error, Code.SOLVER_FAILED, Code.INTERNAL_ERROR))
        # A goal that ended before it was asked to has done what it was sent for.
        return outcome(stop.code, _STOPPED[stop.code]) if execution.was_cut_short else outcome(Code.NONE, "")
