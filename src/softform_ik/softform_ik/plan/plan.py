"""Carries out goals of `plan_to_shape`, one at a time in a worker thread; moves nothing, raises nothing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from softform_client.plan_goal import Code, PlanGoal
from softform_core.arrays import Array
from softform_core.forward.live_pipeline import LiveModels
from softform_core.forward.pipeline import ForwardPipeline
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
from softform_core.shapes.target import TargetShape
from softform_ik.goals.reach_limit import OVERRIDE
from softform_ik.robot.stop_request import StopRequest, stop_messages
from softform_ros.goal_error import GoalError, failure

CODE_OF = {
    Rejection.OBSTACLE_ENCLOSES: Code.INVALID_OBSTACLES,
    Rejection.START_IN_COLLISION: Code.START_IN_COLLISION,
    Rejection.GOAL_IN_COLLISION: Code.GOAL_IN_COLLISION,
    Rejection.UNREACHABLE: Code.UNREACHABLE,
    Rejection.NO_PATH: Code.NO_PATH,
}

_STOPPED = stop_messages(Code)


class Models(Protocol):
    """The models of a robot; `LivePipeline` is the one that ships."""

    @property
    def models(self) -> LiveModels:
        """Models of the real robot that belong together."""

    @property
    def simulated(self) -> ForwardPipeline:
        """Forward kinematics of the simulated robot."""


@dataclass(frozen=True)
class PlanOutcome:
    """What became of a goal.

    Attributes:
        code: One of the action's error codes; `NONE` is success.
        message: Error and remedy; empty on success.
        plan: The motion, or None if there is none.
        seconds: Duration, s.
        states_checked: Surfaces that were measured against the obstacle.
        used_sim_to_real: Whether the plan saw the learned reality.
    """

    code: int
    message: str
    plan: MotionPlan | None
    seconds: float
    states_checked: int
    used_sim_to_real: bool


class Plan:
    """Plans motions of one robot, one at a time, from `here`: its measured actuator values (k,), if known."""

    def __init__(
        self, robot: Robot, models: Models, settings: MotionSettings, here: Callable[[], Array | None]
    ) -> None:
        self._robot, self._models, self._settings, self._here = robot, models, settings, here

    def run(self, goal: PlanGoal, stop: StopRequest, on_progress: Callable[[Progress], None]) -> PlanOutcome:
        """Carry out a goal; returns an outcome whatever happens. Models that come meanwhile do not change it."""
        models = self._models.models
        used = models.uncertainty is not None and not goal.without_sim_to_real
        latest = Progress("goal", 0.0, 0)

        def note(progress: Progress) -> None:
            nonlocal latest
            latest = progress
            on_progress(progress)

        plan, code, message = None, Code.NONE, ""
        try:
            surface = (
                MarginedSurface(models.pipeline, models.uncertainty)
                if used
                else MarginedSurface(self._models.simulated, None)
            )
            plan = self._plan(surface, goal, stop, note)
        except NoMotionError as error:
            stopped = error.rejection is Rejection.STOPPED
            code, message = (stop.code, _STOPPED[stop.code]) if stopped else (CODE_OF[error.rejection], str(error))
            if error.rejection is Rejection.UNREACHABLE:
                message = f"{message} {OVERRIDE}"
        except Exception as error:
            code, message = failure(error, Code.SOLVER_FAILED, Code.INTERNAL_ERROR)
        seconds, states = (
            (latest.seconds, latest.states_checked) if plan is None else (plan.seconds, plan.states_checked)
        )
        return PlanOutcome(code, message, plan, seconds, states, used)

    def _plan(
        self, surface: MarginedSurface, goal: PlanGoal, stop: StopRequest, on_progress: Callable[[Progress], None]
    ) -> MotionPlan:
        start = self._start() if goal.start is None else self._robot.nearest_actuation(goal.start)
        target = goal.target if isinstance(goal.target, TargetShape) else self._robot.nearest_actuation(goal.target)
        settings = self._settings
        if goal.accept_unreachable:
            settings = replace(settings, most_error_mm=float("inf"))
        if goal.max_time:
            settings = replace(settings, planner=replace(settings.planner, max_seconds=goal.max_time))
        request = MotionRequest(start, target, obstacle_of(goal.obstacle), goal.clearance)
        return plan_motion(surface, self._robot, request, settings, stop, on_progress)

    def _start(self) -> Array:
        """Where the robot is, (m,).

        Raises:
            GoalError: If that is not known.
        """
        here = self._here()
        if here is None:
            raise GoalError(
                Code.INVALID_START,
                f"No values of '{self._robot.name}' come on actuator_state: where the robot is, is not known.",
                "Start the driver and activate it, or give start.",
            )
        return self._robot.nearest_actuation(here)
