"""One goal from target to verified shape: solve, move, settle, compare with a capture. Runs in a worker thread."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.kinematics.ik_problem import IkIteration, IkOptions, Termination
from softform_core.kinematics.inverse import IkResult, solve_inverse_kinematics
from softform_core.kinematics.pipeline import ForwardPipeline
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.capture_watch import CaptureWatch
from softform_ik.driver_watch import DriverWatch
from softform_ik.goal_checks import Code, GoalError, Mode, ReachGoal
from softform_ik.held_command import HeldCommand
from softform_ik.measured_errors import MeasuredErrors, measure_errors

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReachSettings:
    """Defaults and limits; SI units.

    Attributes:
        tolerance: Mean error at which a solve may stop, m.
        max_time: For solving, s.
        max_iterations: Of a solve.
        settle_tolerance: Of settled pressures to their command, Pa.
        settle_timeout: s.
        capture_timeout: s.
    """

    tolerance: float = 1e-4
    max_time: float = 5.0
    max_iterations: int = 200
    settle_tolerance: float = 250.0
    settle_timeout: float = 30.0
    capture_timeout: float = 20.0


@dataclass(frozen=True)
class Progress:
    """Where a goal stands.

    Attributes:
        stage: `solving`, `moving`, `settling` or `verifying`.
        iteration: Of the solver.
        mean_error: m, of the best so far.
        max_error: m.
        pressures: (k,) Pa, the best so far.
    """

    stage: str
    iteration: int
    mean_error: float
    max_error: float
    pressures: Array


@dataclass(frozen=True)
class ReachOutcome:
    """What became of a goal.

    Attributes:
        code: One of the action's error codes; `NONE` is success.
        message: What went wrong and what to do; empty on success.
        solution: The best found, or None if nothing was solved.
        measured: Captured errors, if the goal got so far.
    """

    code: int
    message: str = ""
    solution: IkResult | None = None
    measured: MeasuredErrors | None = None


class StopRequest:
    """A wish to end a goal, with its reason; the first one counts."""

    def __init__(self) -> None:
        """No wish yet."""
        self._lock = threading.Lock()
        self._code = Code.NONE

    def request(self, code: int) -> None:
        """Ask to stop for the reason `code`: CANCELLED, PREEMPTED or NODE_DEACTIVATED."""
        with self._lock:
            if self._code == Code.NONE:
                self._code = code

    @property
    def code(self) -> int:
        """The reason, or NONE."""
        with self._lock:
            return int(self._code)

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.code != Code.NONE


_STOP_MESSAGES = {
    Code.CANCELLED: "The goal was cancelled; the pressures are the best found until then.",
    Code.PREEMPTED: "A newer goal took its place; the pressures are the best found until then.",
    Code.NODE_DEACTIVATED: "The node was deactivated. Activate it and send the goal again.",
}


class Reach:
    """Carries out goals for one robot, one at a time.

    Args:
        robot: The robot.
        pipeline: Its forward kinematics.
        settings: Defaults and limits.
        driver: What the driver says.
        captures: Captured clouds.
        command: What the robot holds.
        read_points: (N, 3) m of a captured cloud.
        wall_clock: s since the epoch, the clock of stamps.
    """

    def __init__(
        self,
        robot: Robot,
        pipeline: ForwardPipeline,
        settings: ReachSettings,
        driver: DriverWatch,
        captures: CaptureWatch,
        command: HeldCommand,
        read_points: Callable[[object], Array],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is solved or moved yet."""
        self._robot, self._pipeline, self._settings = robot, pipeline, settings
        self._driver, self._captures, self._command = driver, captures, command
        self._read_points, self._wall_clock = read_points, wall_clock

    def run(self, goal: ReachGoal, stop: StopRequest, on_progress: Callable[[Progress], None]) -> ReachOutcome:
        """Carry out a goal; returns an outcome whatever happens.

        A goal that is cancelled while the robot moves leaves it where it is: the pressures measured then are held.
        """
        solution: IkResult | None = None
        measured: MeasuredErrors | None = None
        try:
            solution = self._solve(goal, stop, on_progress)
            if goal.mode.moves and not stop():
                _check_improved(solution)
                settled_at = self._move(solution, stop, on_progress)
                if settled_at is not None and goal.mode is Mode.PLAN_MOVE_AND_VERIFY:
                    measured = self._verify(goal, solution, settled_at, stop, on_progress)
            # A goal that ended before it was asked to has done what it was sent for.
            complete = solution.termination is not Termination.CANCELLED and not (goal.mode.moves and stop())
            if stop() and not complete:
                return ReachOutcome(stop.code, _STOP_MESSAGES[stop.code], solution, measured)
            return ReachOutcome(Code.NONE, "", solution, measured)
        except GoalError as error:
            return ReachOutcome(error.code, str(error), solution, measured)
        except SoftformError as error:
            return ReachOutcome(Code.SOLVER_FAILED, str(error), solution, measured)
        except Exception as error:  # the worker must live on for the next goal
            return ReachOutcome(Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}", solution, measured)

    def _solve(self, goal: ReachGoal, stop: StopRequest, on_progress: Callable[[Progress], None]) -> IkResult:
        def report(iteration: IkIteration) -> None:
            on_progress(
                Progress(
                    "solving",
                    iteration.iteration,
                    iteration.mean_error_mm / MM_PER_M,
                    iteration.max_error_mm / MM_PER_M,
                    iteration.pressures,
                )
            )

        options = IkOptions(
            pressure_min=self._robot.pressure_min,
            pressure_max=self._robot.pressure_max,
            initial_pressures=goal.seed_pressures,
            fix_pose=goal.fix_pose,
            tolerance_mm=(goal.tolerance or self._settings.tolerance) * MM_PER_M,
            max_iterations=self._settings.max_iterations,
            max_seconds=goal.max_time or self._settings.max_time,
        )
        return solve_inverse_kinematics(self._pipeline, goal.target, options, on_iteration=report, should_stop=stop)

    def _move(self, solution: IkResult, stop: StopRequest, on_progress: Callable[[Progress], None]) -> float | None:
        """Command the pressures and wait; returns when the robot had settled (s since the epoch), None if stopped."""
        on_progress(_progress("moving", solution))
        self._driver.refuse_unless_ready()
        commanded_at = self._wall_clock()
        self._command.hold(solution.pressures)
        on_progress(_progress("settling", solution))
        settled = self._driver.wait_until_settled(
            solution.pressures,
            self._settings.settle_tolerance,
            self._settings.settle_timeout,
            commanded_at,
            stop,
        )
        if settled is not None:
            return settled.stamp
        if stop.code == Code.CANCELLED:
            here = self._driver.pressures
            if here is not None:
                self._command.hold(np.clip(here, self._robot.pressure_min, self._robot.pressure_max))
        return None

    def _verify(
        self,
        goal: ReachGoal,
        solution: IkResult,
        settled_at: float,
        stop: StopRequest,
        on_progress: Callable[[Progress], None],
    ) -> MeasuredErrors | None:
        on_progress(_progress("verifying", solution))
        capture = self._captures.wait_for_one_after(settled_at, self._settings.capture_timeout, stop)
        if capture is None:
            if stop():
                return None
            raise GoalError(
                Code.CAPTURE_TIMEOUT,
                f"No cloud captured after the robot settled came within {self._settings.capture_timeout:g} s.",
                "Check the scanner; the robot holds the shape.",
            )
        try:
            points = self._read_points(capture.cloud)
            return measure_errors(points, goal.target, solution.pose.scaled(1.0 / MM_PER_M))
        except SoftformError as error:
            raise GoalError(Code.CAPTURE_INVALID, error.message, error.next_step) from error


def _check_improved(solution: IkResult) -> None:
    """Refuse to move to where the solver started: that is nobody's target."""
    if solution.iterations == 0 and solution.termination is Termination.TIME_LIMIT:
        raise GoalError(
            Code.SOLVER_FAILED,
            f"The time for solving was up after {solution.seconds:.3f} s, before the first iteration.",
            "Allow a longer max_time; the robot was not moved.",
        )


def _progress(stage: str, solution: IkResult) -> Progress:
    return Progress(
        stage,
        solution.iterations,
        solution.mean_error_mm / MM_PER_M,
        solution.max_error_mm / MM_PER_M,
        solution.pressures,
    )
