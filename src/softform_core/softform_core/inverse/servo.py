"""A servo: actuations that follow a stream of target shapes, Levenberg-Marquardt iteration by iteration.

Each solve starts where the one before ended (paper 001 takes each waypoint's solution as the start of the next), so
that one or two iterations follow a target that moves. What is commanded goes towards the solution no faster than the
robot's slew rate. There is no ROS and no thread here: one thread calls `refine` and `command`, another may call `aim`.
Millimetres; actuations in the robot's unit; seconds of a steady clock.
"""

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel, Tracker
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.out_of_reach import OutOfReachError, check_reach
from softform_core.inverse.servo_solve import ServoErrors, ServoSolve
from softform_core.inverse.servo_target import NewestTargets, ServoTarget, ServoTargets
from softform_core.inverse.tracked_solve import TrackedSolve

Solve = ServoSolve | TrackedSolve

_TOLERANCE_MM = 0.01
_RELATIVE_DECREASE = 1e-3
"""Relative decrease of the merit below which a solve ends: the next target is on its way."""

_LONGEST_SLEW = 0.1
"""Longest slewing that one command makes up for, s: after a pause the robot does not jump."""

_FORGETTING = 0.95
_MOST_OF_PERIOD = 0.5
"""Largest expected time of an iteration, in periods; else it is the longest of late. With a slow model the stream is
followed more coarsely instead of not at all."""

_UNKNOWN = ServoErrors(float("nan"), float("nan"))


class ServoState(enum.Enum):
    """State of a servo."""

    WAITING = "there is no target"
    TRACKING = "following the newest target"
    HOLDING = "holding the last command"


@dataclass(frozen=True)
class ServoSettings:
    """Limits of a servo.

    Attributes:
        actuation_min: (k,).
        actuation_max: (k,).
        slew_rate: Fastest change of each degree of freedom, (k,) per second.
        period: Longest time between two commands, s.
        stale_after: A target that came longer ago is not followed, s.
        most_error_mm: A solution with a larger mean error is not followed: the target is out of reach.
        smoothness_mm2: Squared error that an actuator's whole range away from the last solution is worth, mm^2.
    """

    actuation_min: Array
    actuation_max: Array
    slew_rate: NDArray[np.float64]
    period: float = 0.02
    stale_after: float = 0.5
    most_error_mm: float = 20.0
    smoothness_mm2: float = 0.0


@dataclass(frozen=True)
class ServoCommand:
    """Actuation that the robot is to hold, and how it was found.

    Attributes:
        state: State of the servo.
        actuation: (k,), within the bounds; None if nothing is to be commanded.
        answers: The newest target taken into account, if any.
        errors: Errors of the predicted shape to that target; NaN if unknown.
        converged: Whether this is the solution: no further decrease is possible nearby.
        reason: Reason why the target is not followed, and what to do; empty while all is well.
    """

    state: ServoState
    actuation: Array | None
    answers: ServoTarget | None = None
    errors: ServoErrors = _UNKNOWN
    converged: bool = False
    reason: str = ""


class Servo:
    """Follows the newest targets; see the module's description.

    Attributes:
        iterations: Iterations of the solver so far.
    """

    def __init__(self, settings: ServoSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without a command; `resume_from` gives the first one."""
        self._settings, self._clock = settings, clock
        self._targets = NewestTargets(settings.stale_after)
        self._iteration_seconds = 0.0
        self._solve: Solve | None = None
        self._solution: Array | None = None
        self._commanded: Array | None = None
        self._commanded_at = clock()
        self._answered: ServoTarget | None = None
        self._failed: ServoTarget | None = None
        self._failure = ""
        self.iterations = 0

    def aim(self, target: ServoTarget) -> None:
        """Follow a target instead of the one of its kind before; may be called from any thread.

        The target is looked up about the present shape here, so that what it fits when it is first asked is not the
        solving thread's work.
        """
        solve = self._solve
        if solve is not None and target.shape is not None:
            target.shape.query(solve.points)
        self._targets.note(target)

    @property
    def is_aimed(self) -> bool:
        """Whether there is a target, fresh or stale."""
        return bool(self._targets)

    @property
    def is_running(self) -> bool:
        """Whether `resume_from` said where to go on from."""
        return self._commanded is not None

    @property
    def tracker(self) -> Tracker | None:
        """What leads the shape, of a model that has one; None before it is asked for the first time."""
        return self._solve.tracker if isinstance(self._solve, TrackedSolve) else None

    def resume_from(self, actuation: Array) -> None:
        """Go on commanding from (k,), where something else has left the robot."""
        held = np.clip(actuation, self._settings.actuation_min, self._settings.actuation_max)
        self._reset(np.asarray(held, dtype=np.float64))

    def drop(self, is_past: Callable[[ServoTarget], bool]) -> None:
        """Forget the targets that are past, and if there are any command nothing until `resume_from`."""
        if self._targets.drop(is_past):
            self.pause()

    def pause(self) -> None:
        """Command nothing until `resume_from`: somebody else has the robot. Targets are kept."""
        self._reset(None)

    def refine(self, model: ForwardModel, deadline: float) -> bool:
        """Iterate on the newest targets until nothing nearby is better, or the next iteration would end too late.

        Between two iterations newer targets take the place of those before.

        Returns:
            Whether `command` has a finished answer to a target that it has not answered yet.
        """
        while self._solution is not None:
            started = self._clock()
            targets = self._targets.fresh(started)
            if not targets or self._failed is targets.newest:
                return False
            solve = self._solve
            is_new = solve is None or solve.targets != targets or solve.model is not model
            if solve is not None and not is_new and solve.is_finished:
                return targets.newest is not self._answered
            expected = min(self._iteration_seconds, _MOST_OF_PERIOD * self._settings.period)
            if started + expected > deadline:
                self._iteration_seconds *= _FORGETTING  # one slow iteration must not be the last
                return False
            try:
                if solve is None or is_new:
                    solve = self._solve = self._begun(model, targets, self._solution, solve)
                solve.iterate(lambda: self._clock() >= deadline)
                self.iterations += 1
                self._take(solve)
            except (SoftformError, ValueError) as error:  # numpy's and scipy's word for NaN and singular is ValueError
                # A shape that was led goes on from where it was in balance last, not from rest.
                is_led = isinstance(solve, TrackedSolve) and solve.tracker.go_back()
                self._solve, self._failed = solve if is_led else None, targets.newest
                self._failure = f"The target could not be solved for: {error}"
            self._iteration_seconds = max(_FORGETTING * self._iteration_seconds, self._clock() - started)
        return False

    def command(self) -> ServoCommand:
        """Return the next command: from the last one towards the solution, as far as the slew rate allows."""
        now = self._clock()
        seconds, self._commanded_at = min(now - self._commanded_at, _LONGEST_SLEW), now
        held, solve, targets = self._commanded, self._solve, self._targets.fresh(now)
        if held is None or not self._targets:
            return ServoCommand(ServoState.WAITING, held)
        if not targets:
            return self._holding(f"No target came for {self._settings.stale_after:g} s.", "See what publishes them.")
        if self._failed is targets.newest:
            return self._holding(self._failure, "")
        if solve is None or self._solution is None:
            return ServoCommand(ServoState.TRACKING, held)
        self._answered = solve.targets.newest
        try:
            most_error_mm = float("inf") if targets.accept_unreachable else self._settings.most_error_mm
            check_reach(solve.errors.mean_mm, solve.miss, most_error_mm)
        except OutOfReachError as error:
            if not solve.is_finished:
                return ServoCommand(ServoState.TRACKING, held, self._answered)
            return self._holding(error.message, error.next_step)
        most = self._settings.slew_rate * seconds
        is_there = bool((np.abs(self._solution - held) <= most).all())
        self._commanded = self._solution if is_there else held + np.clip(self._solution - held, -most, most)
        errors = solve.errors if is_there else solve.errors_at(self._commanded)
        return ServoCommand(
            ServoState.TRACKING, self._commanded, self._answered, errors, is_there and solve.is_finished
        )

    def _reset(self, held: Array | None) -> None:
        self._commanded = self._solution = held
        self._commanded_at = self._clock()
        self._solve = self._answered = self._failed = None

    def _begun(self, model: ForwardModel, targets: ServoTargets, start: Array, before: Solve | None) -> Solve:
        """Return a solve for targets: by the tracker of a model that has one, else anew from the last solution."""
        same = before if before is not None and before.model is model else None
        tracker = same.tracker if isinstance(same, TrackedSolve) else model.tracker(start)
        if tracker is None:
            return ServoSolve(model, targets, self._options(start), before if isinstance(before, ServoSolve) else None)
        most = self._settings.slew_rate * max(self._settings.period, min(self._iteration_seconds, _LONGEST_SLEW))
        options = replace(self._options(tracker.actuation), most_change=most)
        return TrackedSolve(model, tracker, targets, options, same if isinstance(same, TrackedSolve) else None)

    def _take(self, solve: Solve) -> None:
        """Take a solve's best for the solution, unless the model has given nonsense.

        Raises:
            SoftformError: If it has.
        """
        if not (np.isfinite(solve.actuation).all() and np.isfinite(solve.errors.mean_mm)):
            raise SoftformError("The model predicts a shape with NaN.", "Train it again, or take the one before.")
        self._solution = solve.actuation

    def _options(self, start: Array) -> IkOptions:
        settings = self._settings
        return IkOptions(
            settings.actuation_min,
            settings.actuation_max,
            initial_actuation=start,
            previous_actuation=start,
            smoothness_mm2=settings.smoothness_mm2,
            tolerance_mm=_TOLERANCE_MM,
            relative_decrease=_RELATIVE_DECREASE,
        )

    def _holding(self, what: str, next_step: str) -> ServoCommand:
        reason = str(SoftformError(what, next_step))
        return ServoCommand(ServoState.HOLDING, self._commanded, self._answered, reason=reason)
