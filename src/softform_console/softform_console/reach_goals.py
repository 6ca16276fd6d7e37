"""Goals of pages to reach a shape, and how they go, as messages."""

import math
from collections.abc import Callable
from typing import Any

from softform_client.client import GoalFailedError, Mode, ShapeClient
from softform_console.goal_runner import GoalRunner
from softform_console.protocol import GoalProgress, GoalResult, Reach
from softform_core.shapes.shape import Shape
from softform_interfaces.action import ReachShape

_MODES = {
    "plan": Mode.PLAN_ONLY,
    "move": Mode.PLAN_AND_MOVE,
    "verify": Mode.PLAN_MOVE_AND_VERIFY,
    "closed_loop": Mode.CLOSED_LOOP,
}


def begin_reaching(goal: Reach, target: Callable[[], Shape], runner: GoalRunner) -> None:
    """Send a goal to `reach_shape`; returns at once. The goal's thread makes the target, which takes long.

    Raises:
        SoftformError: If a goal runs.
    """

    def reach(client: ShapeClient) -> None:
        try:
            result = client.reach(
                target(),
                _MODES[goal.mode],
                partial=goal.partial,
                fix_pose=goal.pose != "free",
                accept_unreachable=goal.accept_unreachable,
                epoch=int(goal.epoch),
                on_feedback=lambda feedback: runner.tell(_progress(goal, feedback)),
            )
            runner.tell(_result(goal, result, ""))
        except GoalFailedError as error:
            runner.tell(_result(goal, error.result, str(error)))

    runner.begin(reach, "reach", moves=goal.mode != "plan")


def _progress(goal: Reach, feedback: ReachShape.Feedback) -> GoalProgress:
    return GoalProgress(
        robot=goal.robot,
        target=goal.target,
        stage=feedback.stage,
        iteration=feedback.iteration,
        round=feedback.round,
        mean_error=_finite(feedback.mean_error),
        max_error=_finite(feedback.max_error),
    )


def _result(goal: Reach, result: Any, text: str) -> GoalResult:
    measured = result.measured if result.measured.valid else None
    return GoalResult(
        robot=goal.robot,
        target=goal.target,
        error_code=result.error_code,
        text=text,
        actuators=[float(value) for value in result.actuators.value],
        mean_error=_finite(result.solve.mean_error),
        max_error=_finite(result.solve.max_error),
        measured_mean_error=None if measured is None else _finite(measured.mean_error),
        measured_max_error=None if measured is None else _finite(measured.max_error),
        solve_time=float(result.solve.solve_time),
        iterations=int(result.solve.iterations),
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
