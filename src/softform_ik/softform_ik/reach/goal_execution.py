"""Execution of one goal: solve, move, settle, capture and compare, and in a closed loop correct and repeat.

The plans of the closed loop aim at what was measured instead of what was predicted. After each round the captured
surface is compared with the predicted one along the normals. A smooth field of what the prediction lacks
(`ResidualField`) is added to it, and the inverse kinematics is solved again from where the robot is; that is the same
as correcting the target by what is left. The field is kept and refined from round to round, so that a hole in one scan
is filled by another. The rounds end when the corrected prediction promises too little, and the robot ends at the best
round that was measured, which is never worse than the commands that the goal names, which are the first round, nor than
what the simulation alone plans, which is a round as well where it could be as good. Every round comes to its plan from
the side that the first came from, and so does the return to the best (`run_up`): where an actuator turns back, a body
that remembers does not follow.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from softform_client.actuator_values import values_to_message
from softform_client.driver_watch import MeasuredValues
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.arrays import Array
from softform_core.evaluation.measured_errors import MeasuredErrors, measure_errors, resting_surface
from softform_core.forward.corrected_pipeline import CorrectedPipeline
from softform_core.forward.forward_model import ForwardModel, SurfaceModel
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.counterpart import RestingSurface
from softform_core.inverse.ik_monitor import IkIteration
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.multi_start import solve_globally
from softform_core.inverse.residual_field import ResidualField, surface_residuals
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.goals.reach_limit import ReachSettings, check_reachable
from softform_ik.reach.capture_checks import check_capture
from softform_ik.reach.run_up import Approach
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import ReachShape
from softform_ros.goal_error import GoalCode, GoalError, in_code

_PROMISE_POINTS = 10_000
"""Surface points of a promise: about as close as those of a scan, so that both are compared by area. A solve's own
points lie further apart, and an eighth of them on the clamped rim, where nothing can be wrong."""

_RIVAL = 1.1
"""Largest error promised to the simulation's own plan, over the best that was measured, at which it is tried, too."""

_HELD_PART = 1e-9
"""Share of the range by which a plan may leave a given actuation: its pose and its errors are solved for."""

_RELAXATION = 0.5
"""A round that is worse than the best was led astray: the model's response differs from the robot's. The gain
is lowered by this factor."""


@dataclass(frozen=True)
class Round:
    """Round of the loop: the plan, the commands (m,) for it, the cloud (N, 3) m captured there, and its errors."""

    solution: IkResult
    commanded: Array
    captured: Array
    measured: MeasuredErrors


def best_of(rounds: list[Round]) -> Round:
    """Return the round with the least measured mean error."""
    return min(rounds, key=lambda one: one.measured.mean)


@dataclass
class GoalExecution:
    """One goal under way; what was found so far can be read after any end.

    Attributes:
        pipeline: Forward kinematics of the robot; a newer model does not change a running goal.
        simulated: The same without sim-to-real.
        plan: The open-loop plan, once there is one.
        rounds: Measured rounds, in order.
        promised: Mean error that the closed loop's last plan promises, m, of the same kind as the measured ones.
    """

    robot: Robot
    pipeline: ForwardModel
    simulated: ForwardModel
    hardware: Hardware
    goal: ReachGoal
    stop: StopRequest
    tell: Callable[[ReachShape.Feedback], None]
    settings: ReachSettings
    plan: IkResult | None = None
    rounds: list[Round] = field(default_factory=list)
    promised: float = float("nan")
    _moved_to: tuple[IkResult, Array] | None = None
    _approach: Approach = field(init=False)

    def __post_init__(self) -> None:
        """Begin without a side from which the robot comes."""
        self._approach = Approach(self.robot)

    @property
    def _surface(self) -> SurfaceModel:
        """The model of a robot that can be compared with a captured shape; goals of a tip do not verify."""
        assert isinstance(self.pipeline, SurfaceModel)
        return self.hardware.given(self.pipeline)

    @cached_property
    def _rest(self) -> RestingSurface:
        assert isinstance(self.simulated, SurfaceModel)
        return resting_surface(self.simulated, self.robot)

    @property
    def commands(self) -> Array | None:
        """Values (k,) that bring the actuators from where they are to the best plan, or have brought them there."""
        if self.best is None:
            return None
        if self._moved_to is not None and self._moved_to[0] is self.best:
            return self.robot.actuators_of(self._moved_to[1])
        return self._commands_for(self.best.actuation)

    @property
    def best(self) -> IkResult | None:
        """The plan that was measured best, or the only one."""
        return best_of(self.rounds).solution if self.rounds else self.plan

    @property
    def was_cut_short(self) -> bool:
        """Whether a stop request ended the goal early; valid after `run`."""
        if not self.stop():
            return False
        return self.goal.mode.moves or self.plan is None or self.plan.termination is Termination.CANCELLED

    def run(self) -> None:
        """Carry out the goal in its mode, until a stop is requested.

        Raises:
            GoalError: If the target is out of reach, or driver or scanner fail.
            SoftformError: If the target cannot be solved for.
        """
        mode = self.goal.mode
        self.plan = self._solve(self.pipeline, self._actuation(self.goal.seed), RigidTransform(), 0)
        if self.stop():
            return
        if mode.moves:
            _check_improved(self.plan)
        if not self.goal.accept_unreachable:
            plan, most_mm = self.plan, self.settings.most_error_mm
            cut_short = plan.termination is Termination.TIME_LIMIT
            check_reachable(plan.mean_error_mm, plan.miss, most_mm, cut_short=cut_short)
        if mode is Mode.PLAN_ONLY:
            return
        if mode is Mode.PLAN_AND_MOVE:
            self._move(self.plan, 0)
        elif mode is Mode.PLAN_MOVE_AND_VERIFY:
            self._visit(self.plan, 0)
        else:
            self._close_loop(self.plan, self._actuation(self.goal.seed))

    def _close_loop(self, plan: IkResult, given: Array | None) -> None:
        """Visit a plan, or given commands (m,) in its place, then better ones, and end at the best.

        After a round that did not settle, or whose capture is missing or unusable, the robot is sent back to the best
        one, and the error raised.
        """
        model, settings, rounds = self._surface, self.settings, self.rounds
        most_rounds = self.goal.max_rounds or settings.max_rounds
        corrected: ForwardModel = model
        if given is not None:
            plan = self._held(given, plan.pose)
        self.promised = self._promise(model, plan)
        field, gain = ResidualField.zero(model.patches), settings.gain
        for number in range(most_rounds + 1):
            visited = self._visit_or_return(plan, number, given if number == 0 else None)
            if visited is None:
                return
            tolerance = self.goal.tolerance or self.settings.tolerance
            if visited.measured.mean <= tolerance or number == most_rounds:
                break
            if visited is not best_of(rounds):
                gain *= _RELAXATION
            predicted = model.points(plan.actuation)
            field = field.towards(surface_residuals(predicted, visited.captured * MM_PER_M, model.patches), gain)
            model = self._surface
            corrected = CorrectedPipeline(model, _along_normals(field, plan.actuation))
            better = self._solve(corrected, plan.actuation, plan.pose, number + 1)
            if self.stop():
                return
            self.promised = self._promise(corrected, better)
            if self.promised > (1.0 - settings.least_improvement) * self._promise(corrected, plan):
                break
            plan = better
        if self.pipeline is not self.simulated and self.goal.seed is None and rounds[-1].measured.mean > tolerance:
            rival = self._solve(self.simulated, None, RigidTransform(), len(rounds))
            is_rival = self._promise(corrected, rival) <= _RIVAL * best_of(rounds).measured.mean
            if self.stop() or (is_rival and self._visit_or_return(rival, len(rounds)) is None):
                return
        if best_of(rounds) is not rounds[-1]:
            self._return(len(rounds) - 1)

    def _held(self, commanded: Array, pose: RigidTransform) -> IkResult:
        """Return as a plan what the body feels at commands (m,), whatever it is worth."""
        memory = self.pipeline.memory
        felt = memory.effective(self.hardware.commands(memory).state, commanded)
        limits = self.robot.actuation_min, self.robot.actuation_max
        return self._solve(self.pipeline, np.clip(felt, *limits), pose, 0, held=True)

    def _visit_or_return(self, solution: IkResult, number: int, commanded: Array | None = None) -> Round | None:
        """Visit like `_visit`; where that cannot be measured the robot goes back to the best round."""
        try:
            return self._visit(solution, number, commanded)
        except GoalError as error:
            if self.rounds and error.code is GoalCode.SETTLE_TIMEOUT:
                self._return_at_once(number)
            elif self.rounds and error.code in (GoalCode.CAPTURE_TIMEOUT, GoalCode.CAPTURE_INVALID):
                self._return(number)
            raise

    def _return(self, number: int) -> None:
        """Move to the commands of the best round; if the run-up to them does not settle, without it."""
        best = best_of(self.rounds)
        try:
            self._move(best.solution, number, best.commanded)
        except GoalError as error:
            if error.code is GoalCode.SETTLE_TIMEOUT and self._moved_to is None:
                self._return_at_once(number)
            raise

    def _return_at_once(self, number: int) -> None:
        """Move to the commands of the best round without a run-up, since an actuator does not settle."""
        best = best_of(self.rounds)
        self._moved_to = best.solution, best.commanded
        self._go(best.solution, number, best.commanded)

    def _visit(self, solution: IkResult, number: int, commanded: Array | None = None) -> Round | None:
        """Move, settle, capture and compare: one round more; None if stopped."""
        settled = self._move(solution, number, commanded)
        if settled is None:
            return None
        assert self._moved_to is not None
        commanded = self._moved_to[1]
        self._tell("verifying", solution.iterations, solution, self.robot.actuators_of(commanded), number)
        captured = self.hardware.look(settled, self.stop)
        if captured is None:
            return None
        if self.goal.mode is Mode.CLOSED_LOOP:
            try:
                captured = check_capture(captured, solution.shape, self.robot)
            except GoalError as error:
                next_step = f"{error.next_step} The robot holds the best shape that was measured."
                raise GoalError(error.code, error.message, next_step) from error
        self.rounds.append(Round(solution, commanded, captured, self._measure(captured, solution)))
        return self.rounds[-1]

    def _promise(self, model: ForwardModel, solution: IkResult) -> float:
        points = model.at(self.robot.patches.samples(_PROMISE_POINTS)).forward(solution.actuation[None]).points[0]
        return self._measure(points / MM_PER_M, solution).mean

    def _measure(self, points: Array, solution: IkResult) -> MeasuredErrors:
        # `goal_from_message` lets no goal verify that has no target.
        assert self.goal.target is not None
        with in_code(GoalCode.CAPTURE_INVALID):
            found = measure_errors(points, self.goal.target, solution.pose.scaled(1.0 / MM_PER_M), self._rest)
        return found

    def _move(self, solution: IkResult, number: int, commanded: Array | None = None) -> MeasuredValues | None:
        """Move to what brings a plan into effect, or to these commands (m,) for it; None if stopped."""
        self._moved_to = None
        if self.goal.mode is Mode.CLOSED_LOOP:
            first = self._commanded_for(solution.actuation) if commanded is None else commanded
            start = self._approach.begins_at(self.robot.nearest_actuation(self.hardware.here), first)
            if start is not None and self._go(solution, number, start) is None:
                return None
        if commanded is None:
            commanded = self._commanded_for(solution.actuation)  # from the state that the robot is in after a run-up
        self._moved_to = solution, commanded
        return self._go(solution, number, commanded)

    def _go(self, solution: IkResult, number: int, commanded: Array) -> MeasuredValues | None:
        commands = self.robot.actuators_of(commanded)

        def tell(stage: str) -> None:
            self._tell(stage, solution.iterations, solution, commands, number)

        tell("moving")
        return self.hardware.move(commands, self.stop, lambda: tell("settling"))

    def _commanded_for(self, actuation: Array) -> Array:
        return self.hardware.commands(self.pipeline.memory).command(actuation)

    def _commands_for(self, actuation: Array) -> Array:
        return self.robot.actuators_of(self._commanded_for(actuation))

    def _actuation(self, commands: Array | None) -> Array | None:
        return None if commands is None else self.robot.nearest_actuation(commands)

    def _solve(
        self, model: ForwardModel, start: Array | None, pose: RigidTransform, number: int, held: bool = False
    ) -> IkResult:
        model = self.hardware.given(model)  # from the state that the robot is in now

        def report(iteration: int, best: IkIteration | IkResult) -> None:
            self._tell("solving", iteration, best, self._commands_for(best.actuation), number)

        goal = self.goal
        options = IkOptions(
            actuation_min=self.robot.actuation_min,
            actuation_max=self.robot.actuation_max,
            initial_actuation=start,
            fix_pose=goal.fix_pose,
            initial_pose=pose,
            tolerance_mm=(goal.tolerance or self.settings.tolerance) * MM_PER_M,
            max_iterations=self.settings.max_iterations,
            max_seconds=goal.max_time or self.settings.max_time,
            partial=goal.partial,
            preferred_actuation=self._actuation(goal.preferred),
            preference_mm2=goal.preference or self.settings.preference,
            previous_actuation=start,
            most_change=_HELD_PART * (self.robot.actuation_max - self.robot.actuation_min) if held else None,
        )
        starts = goal.starts or self.settings.starts
        if starts > 1 and number == 0 and not held:
            return solve_globally(
                model, goal.target, options, goal.features, starts, on_start=report, should_stop=self.stop
            )
        return solve_inverse_kinematics(
            model,
            goal.target,
            options,
            on_iteration=lambda step: report(step.iteration, step),
            should_stop=self.stop,
            features=goal.features,
        )

    def _tell(self, stage: str, iteration: int, plan: IkIteration | IkResult, commands: Array, number: int) -> None:
        self.tell(
            ReachShape.Feedback(
                stage=stage,
                iteration=iteration,
                mean_error=plan.mean_error_mm / MM_PER_M,
                max_error=plan.max_error_mm / MM_PER_M,
                actuators=values_to_message(commands, self.robot),
                round=number,
            )
        )


def _along_normals(field: ResidualField, actuation: Array) -> Callable[[SurfaceModel], Array]:
    """Return the displacement of a pipeline's points by the field, along the normals at an actuation."""
    return lambda model: field.values(model.uv)[:, None] * model.normals(actuation)


def _check_improved(solution: IkResult) -> None:
    """Reject a solution that equals the solver's start: it has solved nothing."""
    if solution.iterations == 0 and solution.termination is Termination.TIME_LIMIT:
        raise GoalError(
            GoalCode.SOLVER_FAILED,
            f"The time for solving was up after {solution.seconds:.3f} s, before the first iteration.",
            "Allow a longer max_time; the robot was not moved.",
        )
