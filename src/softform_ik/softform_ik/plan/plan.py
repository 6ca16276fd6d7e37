"""The action `plan_to_shape`: motions are planned, and nothing is moved; the outcome as a message."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from softform_client.actuator_values import values_to_message
from softform_client.driver_watch import DriverWatch
from softform_client.plan_messages import PlanGoal, goal_from_message
from softform_core.arrays import Array
from softform_core.forward.history import History
from softform_core.forward.memory import Commands, Memory
from softform_core.forward.robot_models import SurfaceModels
from softform_core.inverse.timing import slew_durations
from softform_core.planning.motion import plan_motion
from softform_core.planning.motion_plan import (
    MotionPlan,
    MotionRequest,
    MotionSettings,
    NoMotionError,
    Progress,
    Rejection,
)
from softform_core.planning.obstacles import obstacle_of
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_ik.goals.goal_server import GoalServer
from softform_ik.goals.reach_limit import OVERRIDE
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import PlanToShape
from softform_interfaces.msg import SolveReport
from softform_ros.goal_error import GoalCode, GoalError, Outcome, failure

CODE_OF = {
    Rejection.OBSTACLE_ENCLOSES: GoalCode.INVALID_OBSTACLES,
    Rejection.START_IN_COLLISION: GoalCode.START_IN_COLLISION,
    Rejection.GOAL_IN_COLLISION: GoalCode.GOAL_IN_COLLISION,
    Rejection.UNREACHABLE: GoalCode.UNREACHABLE,
    Rejection.NO_PATH: GoalCode.NO_PATH,
}


@dataclass(frozen=True)
class PlanOutcome(Outcome):
    """Outcome of a goal.

    Attributes:
        plan: The motion, or None if there is none; its actuations are what the body is to feel.
        commands: (n, k) values of the actuators at which it does, one for each waypoint; None without a plan.
        seconds: Duration, s.
        states_checked: Surfaces that were measured against the obstacle.
        used_sim_to_real: Whether the plan saw the learned reality.
    """

    plan: MotionPlan | None
    commands: Array | None
    seconds: float
    states_checked: int
    used_sim_to_real: bool


class Plan:
    """Plans motions of one robot, one at a time, from where its driver says that it is."""

    def __init__(self, robot: Robot, models: SurfaceModels, settings: MotionSettings, driver: DriverWatch) -> None:
        self._robot, self._models, self._settings, self._driver = robot, models, settings, driver

    def run(self, goal: PlanGoal, stop: StopRequest, tell: Callable[[PlanToShape.Feedback], None]) -> PlanOutcome:
        """Carry out a goal; returns an outcome whatever happens. Models that come meanwhile do not change it."""
        try:
            kind = self._models.of(goal.model)
        except Exception as error:  # a model of another package may raise anything
            return PlanOutcome(*failure(error, GoalCode.INVALID_GOAL), None, None, 0.0, 0, False)
        models = kind.models
        used = models.uncertainty is not None and not goal.without_sim_to_real
        latest = Progress("goal", 0.0, 0)

        def note(progress: Progress) -> None:
            nonlocal latest
            latest = progress
            tell(
                PlanToShape.Feedback(
                    stage=progress.stage, elapsed=progress.seconds, states_checked=progress.states_checked
                )
            )

        plan, commands, code, message = None, None, GoalCode.NONE, ""
        try:
            model, uncertainty = (models.pipeline, models.uncertainty) if used else (kind.simulated, None)
            start, found = self._start(goal, model.memory)
            surface = MarginedSurface(model.given(found.state), uncertainty)
            plan = self._plan(surface, goal, start, stop, note)
            plan, commands = self._commanded(plan, found)
        except NoMotionError as error:
            stopped = error.rejection is Rejection.STOPPED
            code, message = stop.ending() if stopped else (CODE_OF[error.rejection], str(error))
            if error.rejection is Rejection.UNREACHABLE:
                message = f"{message} {OVERRIDE}"
        except Exception as error:
            code, message = failure(error, GoalCode.SOLVER_FAILED)
        seconds, states = (
            (latest.seconds, latest.states_checked) if plan is None else (plan.seconds, plan.states_checked)
        )
        return PlanOutcome(code, message, plan, commands, seconds, states, used)

    def _plan(
        self,
        surface: MarginedSurface,
        goal: PlanGoal,
        start: Array,
        stop: StopRequest,
        on_progress: Callable[[Progress], None],
    ) -> MotionPlan:
        target = goal.target if isinstance(goal.target, Shape) else self._robot.nearest_actuation(goal.target)
        settings = self._settings
        if goal.accept_unreachable:
            settings = replace(settings, most_error_mm=float("inf"))
        if goal.max_time:
            settings = replace(settings, planner=replace(settings.planner, max_seconds=goal.max_time))
        request = MotionRequest(start, target, obstacle_of(goal.obstacle), goal.clearance)
        return plan_motion(surface, self._robot, request, settings, stop, on_progress)

    def _commanded(self, plan: MotionPlan, found: Commands) -> tuple[MotionPlan, Array]:
        """Return the motion in the time of its commands, and these (n, k): a turn takes a body with memory long."""
        each = zip(plan.actuations, np.diff(plan.times, prepend=0.0).tolist(), strict=True)
        commands = np.array([found.command(actuation, seconds) for actuation, seconds in each])
        legs = slew_durations(commands[0], commands[1:], self._robot.actuation_slew)
        times = np.concatenate([[0.0], np.cumsum(np.maximum(legs, np.diff(plan.times)))])
        return replace(plan, times=times), self._robot.actuators_of(commands)

    def _start(self, goal: PlanGoal, memory: Memory) -> tuple[Array, Commands]:
        """Return the effective actuation (m,) at the start of a goal, and what finds the commands from there.

        Raises:
            GoalError: If no start is given, and it is not known where the robot is.
        """
        if goal.start is not None:
            start = self._robot.nearest_actuation(goal.start)
            return start, Commands.of(self._robot, memory, History(), start)
        here = self._driver.values
        if here is None:
            raise GoalError(
                GoalCode.INVALID_START,
                f"No values of '{self._robot.name}' come on actuator_state: where the robot is, is not known.",
                "Start the driver and activate it, or give start.",
            )
        found = self._driver.commands(memory, here)
        return found.effective, found


class PlanServer(GoalServer[PlanGoal, PlanOutcome]):
    """Serves `plan_to_shape`; it moves nothing."""

    action, name, unpack = PlanToShape, "plan_to_shape", goal_from_message
    parts = {"target": GoalCode.INVALID_TARGET, "obstacles": GoalCode.INVALID_OBSTACLES}

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
