"""Reach, scan, correct, repeat: plans that aim at what was measured instead of what was predicted.

After each round the captured surface is compared with the predicted one along the normals. A smooth field of what the
prediction lacks (`ResidualField`) is added to it, and the inverse kinematics is solved again from where the robot is;
that is the same as correcting the target by what is left. The field is kept and refined from round to round, so that
a hole in one scan is filled by another. The rounds end when the corrected prediction promises too little, and the robot
ends at the best round that was measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from softform_client.reach_goal import Code
from softform_core.arrays import Array
from softform_core.evaluation.measured_errors import MeasuredErrors
from softform_core.forward.corrected_pipeline import CorrectedPipeline
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.residual_field import ResidualField, surface_residuals
from softform_core.units import MM_PER_M
from softform_ros.goal_error import GoalError

_RELAXATION = 0.5
"""A round that is worse than the best was led astray: the model's response differs from the robot's. The gain
is lowered by this factor."""


@dataclass(frozen=True)
class ClosedLoopSettings:
    """How long, and how boldly.

    Attributes:
        max_rounds: Corrections after the open-loop round at most.
        gain: Share of each measured residual that is added, 0 … 1.
        least_improvement: Share by which the corrected prediction must promise to lower the mean error.
    """

    max_rounds: int = 5
    gain: float = 1.0
    least_improvement: float = 0.005


@dataclass(frozen=True)
class Round:
    """Where the robot was sent, what was captured there, (N, 3) m, and its errors to the target."""

    solution: IkResult
    captured: Array
    measured: MeasuredErrors


def best_of(rounds: list[Round]) -> Round:
    """The round with the least measured mean error."""
    return min(rounds, key=lambda one: one.measured.mean)


class SteeredRobot(Protocol):
    """What the closed loop asks of the robot and its solver; each call returns None if the goal was stopped."""

    def solve(self, model: ForwardModel, start: IkResult, number: int) -> IkResult | None:
        """Plan round `number` with a model, from where another plan ended."""

    def visit(self, solution: IkResult, number: int) -> Round | None:
        """Send the robot to a plan, wait until it has settled, capture it, and check and measure the capture."""

    def go_back(self, solution: IkResult, number: int) -> None:
        """Send the robot to a plan where it has been, and wait until it has settled."""


def close_loop(
    robot: SteeredRobot,
    model: ForwardPipeline,
    plan: IkResult,
    tolerance: float,
    settings: ClosedLoopSettings,
    rounds: list[Round],
) -> None:
    """Visit a plan, then better ones, and end at the best.

    Args:
        robot: Robot that moves and is captured.
        model: Forward kinematics over a grid of surface parameters.
        plan: The open-loop plan.
        tolerance: m, measured mean error at which to stop.
        settings: Rounds, gain, least improvement.
        rounds: Each measured round is appended, so that none is lost when a later one fails.

    Raises:
        GoalError: If driver or scanner fail. After a capture that is missing or unusable the robot is first sent back
            to the best round.
    """
    field, gain = ResidualField.zero(model.patches), settings.gain
    for number in range(settings.max_rounds + 1):
        visited = _visit(robot, plan, number, rounds)
        if visited is None:
            return
        rounds.append(visited)
        if visited.measured.mean <= tolerance or number == settings.max_rounds:
            break
        if visited is not best_of(rounds):
            gain *= _RELAXATION
        predicted = model.points(plan.actuation)
        field = field.towards(surface_residuals(predicted, visited.captured * MM_PER_M, model.patches), gain)
        better = robot.solve(CorrectedPipeline(model, _along_normals(field, plan.actuation)), plan, number + 1)
        if better is None:
            return
        if better.mean_error_mm > (1.0 - settings.least_improvement) * better.history[0].mean_error_mm:
            break
        plan = better
    if best_of(rounds) is not rounds[-1]:
        robot.go_back(best_of(rounds).solution, len(rounds) - 1)


def _along_normals(field: ResidualField, actuation: Array) -> Callable[[ForwardPipeline], Array]:
    """Displacement of a pipeline's points by the field, along the normals at an actuation."""
    return lambda model: field.values(model.uv)[:, None] * model.normals(actuation)


def _visit(robot: SteeredRobot, plan: IkResult, number: int, rounds: list[Round]) -> Round | None:
    try:
        return robot.visit(plan, number)
    except GoalError as error:
        if rounds and error.code in (Code.CAPTURE_TIMEOUT, Code.CAPTURE_INVALID):
            robot.go_back(best_of(rounds).solution, number)
        raise
