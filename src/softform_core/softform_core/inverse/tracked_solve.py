"""A solve of a servo by joint steps: shape and actuation move together, each step by one factor.

Each iteration linearises the model about its shape as it is, poses Eq. 15 about where that is going to be in balance,
and takes one Levenberg-Marquardt step of the actuation, no farther than the robot can go in the time. A step that left
the shape far out of balance is halved, and one that did not lower the merit is taken back, so that a target out of
reach is approached, and rested at, as safely as any other. Nothing moves between iterations, so that a target that
stands is solved to the end by `settle`. Millimetres; actuations in the robot's unit.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel, Tracker
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.ik_problem import Evaluation, Problem
from softform_core.inverse.levenberg_marquardt import box_minimum, quadratic_model
from softform_core.inverse.servo_solve import ServoErrors
from softform_core.inverse.servo_target import ServoTargets
from softform_core.shapes.features import FeaturePoints
from softform_core.units import MM_PER_M

__all__ = ["TrackedSolve"]

_STEP_MM = 50.0
"""Residual, mm per unit of the robot (m), of a change of the actuation: where many actuations have one shape, what
would run at its rate limit without it stays."""
_PRESSED = 100.0
"""Residual of a margin that is lost, per mm of it."""
_LONGEST_OFF = 40
"""Iterations that lead back to balance before it is solved for."""
_LOST_MM = 30.0
"""Distance from balance beyond which the shape goes back to where it had one."""
_STILL_MM = 0.1
"""Distance from balance below which a shape that is not stable is in no balance that an arm can have."""
_MOST_FALLING = 3
"""Iterations in which a shape on its way may lack stability: where it lacks it for longer it moves away by itself."""
_SINGULAR = 1e-12
"""Least eigenvalue of a Hessian over the sum of all."""
_GROWTH, _BACK, _CAUTION = 4.0, 0.25, 0.5
_LEAST_GAIN, _GOOD_GAIN = 1e-3, 0.5
_RESOLVED_MM, _RELATIVE = 1e-3, 1e-4
"""A step that promises less than this distance squared and this part of the merit is the last."""
_TAKEN_UP_MM = 0.1
"""Slack, of all cables together, that is worth taking up."""
_AWAY = 0.01
"""Part by which a step that takes up slack, and promises nothing, may make it worse."""
_LEAST_RADIUS = 1e-2
"""Part of the step that the time allows below which it is no way on: where stability ends it falls to nothing."""
_NEAR_MM, _MOST_IDLE, _MOST_SLACK = 1.0, 3, 10
"""Farther from a target an arm rests after so many steps that promise nothing, more where cables are slack: to let go
of an obstacle, and to take up what is slack, moves nothing yet as far as a linear step knows."""
_STANDING_MM = 1e-3
"""Distance by which a target that stands may move."""
_RESTING_MM = 0.5
"""Distance from balance at which a shape may rest."""
_AT_REST_MM = 1e-3
"""Gap below which no whole solve is needed at rest."""


class _Pace(NamedTuple):
    """How a target is approached.

    Attributes:
        most_gap_mm: Gap of a step beyond which it is halved.
        halvings: At most.
        corrections: Steps towards balance by one factor: more than one diverge where the body is soft.
        ahead_mm: Distance at which a target farther away is aimed at: the tip moves on a curve, which a longer aim
            would overshoot.
    """

    most_gap_mm: float
    halvings: int
    corrections: int
    ahead_mm: float


_HURRIED, _FOLLOWING, _CAREFUL = _Pace(5.0, 4, 1, np.inf), _Pace(3.0, 5, 2, np.inf), _Pace(3.0, 5, 4, 80.0)
"""After a target that jumps, after one that moves, and towards one that stands."""
_FOLLOWED_MM = 30.0
"""Distance by which a target that moves goes on at most from one solve to the next."""


class TrackedSolve:
    """Approaches targets from where the solve before ended; as `servo_solve.ServoSolve` for a model with a tracker.

    Args:
        model: Forward kinematics.
        tracker: Its tracker, which this solve leads.
        targets: Targets to approach, at least one.
        options: Bounds and costs; its `most_change` is that of one iteration.
        before: The solve before, if it led the same tracker.

    Attributes:
        model: Forward kinematics.
        tracker: Leads the shape.
        targets: Targets to approach.
        iterations: Number of iterations so far.
        is_finished: Whether nothing nearby is better.
    """

    leaves_points_out = False

    def __init__(
        self,
        model: ForwardModel,
        tracker: Tracker,
        targets: ServoTargets,
        options: IkOptions,
        before: "TrackedSolve | None" = None,
    ) -> None:
        self.model, self.tracker, self.targets = model, tracker, targets
        self.iterations, self.is_finished = 0, False
        self._options = options
        # Of the step that the time allows, what the shape can be trusted to follow; all of it once the target moves on.
        self._radius, self._growth, self._rests = 1.0, _GROWTH, False
        self._least_slack_mm, self._idle = np.inf, 0
        self._lack_mm: float = np.inf if before is None else before._lack_mm  # when no other step was to be taken
        self._falling: int = 0 if before is None else before._falling
        self._pace = _HURRIED
        moved = np.inf if before is None else _moved_mm(before.targets, targets)
        if moved <= _FOLLOWED_MM:
            self._pace = _FOLLOWING
        if before is not None and moved <= _STANDING_MM:
            # Beyond the end of what is stable a target that stands is not tried again and again.
            self._pace, self._radius = _CAREFUL, before._radius
            self._growth, self._rests = before._growth, before.is_finished
            self._least_slack_mm, self._idle = before._least_slack_mm, before._idle
        # Iterations out of balance, which comes first.
        self._off: int = int(not tracker.gap_mm <= self._pace.most_gap_mm) if before is None else before._off
        self._rated_last: Evaluation | None = None
        self._points: Array = np.zeros((0, 3)) if before is None else before._points

    @property
    def _best(self) -> Evaluation:
        if self._rated_last is None:
            self._rated_last = self._rated(self.tracker.shape)[1]
        return self._rated_last

    @property
    def actuation(self) -> Array:
        """The present one, (k,)."""
        return self.tracker.actuation

    @property
    def points(self) -> Array:
        """Shape, (P, 3) mm, where the last iteration began; P is 0 without a shape to approach. For any thread."""
        return self._points

    @property
    def errors(self) -> ServoErrors:
        """Errors of the shape as it is."""
        return ServoErrors(self._best.mean_error_mm, self._best.max_error_mm)

    @property
    def miss(self) -> Array:
        """Mean vector from the points to where they are wanted, (3,) mm."""
        return self._best.miss

    def errors_at(self, actuation: Array) -> ServoErrors:
        """Return errors at another actuation, (k,), linearly from the last one."""
        place = self._rated(self.tracker.shape, actuation)[1]
        return ServoErrors(place.mean_error_mm, place.max_error_mm)

    def iterate(self, is_time_up: Callable[[], bool]) -> None:
        """Make one iteration; it ends by itself.

        Raises:
            SoftformError: If the shape has no balance near.
        """
        self.iterations += 1
        if self._rests:
            self.is_finished = True
            return
        tracker, start = self.tracker, self.tracker.actuation
        shape = tracker.linearised()
        problem, at = self._rated(shape)
        self._points, self._rated_last = at.points, None
        if self._off:
            self._come_back()
            return
        self._falling = 0 if tracker.is_stable else self._falling + 1
        falls = self._falling > _MOST_FALLING or (self._falling > 0 and tracker.lack_mm < _STILL_MM)
        if falls or tracker.lack_mm > _LOST_MM:
            self._radius *= _BACK
            self._growth **= _CAUTION if falls else 1.0
            if not tracker.go_back():
                self._come_back()
            return
        share = 1.0 if at.features is None else min(1.0, self._pace.ahead_mm / max(at.max_error_mm, 1e-9))
        aim = self._aim(at, share)
        if aim is not self._features:
            problem, at = self._rated(shape, aim=aim)
        first = quadratic_model(problem, at)
        # Far from a target less tension costs little of what is left, and an arm that is not pulled hard stands.
        efforts = tracker.efforts()
        rows, residuals = efforts.rows * problem.range / share, efforts.residuals / share
        gradient = first.gradient + 2.0 * rows.T @ residuals
        hessian = first.hessian + 2.0 * rows.T @ rows
        merit = at.merit + float(residuals @ residuals)
        lower, upper = (problem.parts(bound - start) for bound in self._bounds(problem))
        hessian += np.diag(2.0 * (_STEP_MM * problem.range) ** 2)
        step = _step(hessian, gradient, (lower, upper), efforts.margins, efforts.slopes * problem.range)
        promised = -float(gradient @ step + 0.5 * step @ hessian @ step)
        if efforts.slack_mm < self._least_slack_mm - _TAKEN_UP_MM:
            self._least_slack_mm, self._idle = efforts.slack_mm, 0
        ends = self._growth < _GROWTH and self._radius < _LEAST_RADIUS
        promises = promised > _RELATIVE / share * merit + _RESOLVED_MM**2 and not ends
        is_slack = efforts.slack_mm > _TAKEN_UP_MM
        most_idle = _MOST_SLACK if is_slack else _MOST_IDLE if at.max_error_mm > _NEAR_MM else 0
        of_targets = -float(first.gradient @ step + 0.5 * step @ first.hessian @ step)
        # Far from a target what takes up slack may move the arm a little away: later steps make more than good for it.
        takes_up = is_slack and not promises and at.max_error_mm > _NEAR_MM
        if takes_up and tracker.lack_mm > _RESTING_MM:
            self._balance(start)
            return
        self._idle += not promises
        if not promises and self._idle > most_idle:
            self._rest(start)
        else:
            step = problem.clip(start + step * problem.range) - start
            most = max((1.0 - _LEAST_GAIN) * abs(of_targets), _AWAY * at.merit if takes_up else 0.0)
            self._take(aim, at, step, of_targets, most)

    def _take(self, aim: FeaturePoints | None, at: Evaluation, step: Array, promised: float, most: float) -> None:
        """Take a step, or part of it; none that leaves the shape far out of balance, or that breaks what it promised.

        Args:
            aim: Where feature points are led.
            at: Eq. 15 for that, where the shape was going to be in balance.
            step: (k,) of the actuation.
            promised: How much lower the step makes it; below 0 where less tension is worth more.
            most: How much of that may be missing.
        """
        tracker, start = self.tracker, at.actuation
        for halving in range(self._pace.halvings):
            tracker.advance(start + 0.5**halving * step, self._pace.corrections)
            if tracker.gap_mm <= self._pace.most_gap_mm:
                missing = promised - (at.merit - self._rated(tracker.shape, aim=aim)[1].merit) - _RESOLVED_MM**2
                if missing > most:
                    break
                if missing < _GOOD_GAIN * abs(promised):
                    self._radius = min(self._growth * self._radius, 1.0)
                return
        self._radius *= _BACK
        self._balance(start)  # a step towards that, at least
        if not tracker.gap_mm <= self._pace.most_gap_mm:
            tracker.rebalance()

    def _balance(self, actuation: Array) -> None:
        """Make a step towards balance where the iteration began, at an actuation (k,)."""
        tracker = self.tracker
        if tracker.lack_mm < self._lack_mm:
            tracker.advance(actuation)
        else:
            tracker.rebalance()  # where cables are taut and slack by turns, other steps swing to and fro
        self._lack_mm = tracker.lack_mm

    def _come_back(self) -> None:
        """Go towards balance; where that takes too long it is solved for, or is told not to be there."""
        self.tracker.rebalance()
        if self._off >= _LONGEST_OFF:
            self.tracker.settle()
        self._off = 0 if self.tracker.gap_mm <= self._pace.most_gap_mm else self._off + 1

    def _rest(self, actuation: Array) -> None:
        """End: nothing nearby is better. Where the shape is not in balance yet it is led there, then solved for."""
        self._balance(actuation)
        if not self.tracker.is_stable or self.tracker.lack_mm > _RESTING_MM:
            return
        if not self.tracker.gap_mm <= _AT_REST_MM:
            self.tracker.settle()
        self.is_finished = True

    def _aim(self, at: Evaluation, share: float) -> FeaturePoints | None:
        """Where feature points are led: a share of the way to where they are wanted."""
        features = self._features
        if features is None or at.features is None or share >= 1.0:
            return features
        ahead = at.features.points + share * (at.features.wanted - at.features.points)
        return replace(features, positions=ahead / MM_PER_M)

    def _bounds(self, problem: Problem) -> tuple[Array, Array]:
        """Where an actuation may be after one iteration, (k,) each."""
        start, most = self.tracker.actuation, self._radius * self._most_change
        return np.clip(start - most, problem.low, start), np.clip(start + most, start, problem.high)

    @property
    def _most_change(self) -> Array:
        """Of the actuation in the time of one iteration, (k,)."""
        options = self._options
        most = options.actuation_max - options.actuation_min if options.most_change is None else options.most_change
        return np.asarray(most)

    @property
    def _features(self) -> FeaturePoints | None:
        return None if self.targets.features is None else self.targets.features.features

    def _rated(
        self, shape: ForwardModel, actuation: Array | None = None, aim: FeaturePoints | None = None
    ) -> tuple[Problem, Evaluation]:
        """Eq. 15 of a linear shape, and its value at an actuation, (k,); at the present one by default.

        Feature points are led to `aim`, by default to where they are wanted.
        """
        features, target = self._features if aim is None else aim, self.targets.shape
        term = None if features is None else FeatureTerm.of(shape, features)
        surface = None if target is None else target.shape
        problem = Problem(shape, surface, replace(self._options, most_change=None), term)
        place = self.tracker.actuation if actuation is None else actuation
        return problem, problem.evaluate(place, RigidTransform())


def _moved_mm(one: ServoTargets, other: ServoTargets) -> float:
    """By how much, mm, targets moved; infinite if they are others."""
    if one.accept_unreachable != other.accept_unreachable:
        return np.inf
    before, after = (None if each.shape is None else each.shape.shape for each in (one, other))
    here, there = (None if each.features is None else each.features.features for each in (one, other))
    if before is not after or (here is None) != (there is None):
        return np.inf
    if here is None or there is None:
        return 0.0
    are_same = (
        np.array_equal(here.uv, there.uv)
        and np.array_equal(here.weights, there.weights)
        and (here.anchors is None) == (there.anchors is None)
        and (here.anchors is None or there.anchors is None or here.anchors.are_as(there.anchors))
    )
    return MM_PER_M * float(np.abs(here.positions - there.positions).max()) if are_same else np.inf


def _step(hessian: Array, gradient: Array, bounds: tuple[Array, Array], margins: Array, slopes: Array) -> Array:
    """Least of g.s + s.H s / 2 within bounds that keeps margins + slopes s above 0, as far as a penalty does."""
    # Where stability ends the shape moves without bounds, and the Hessian is singular as far as numbers go.
    hessian, gradient = hessian + _SINGULAR * np.trace(hessian) * np.eye(len(hessian)), gradient.copy()
    pressed = np.zeros(len(margins), dtype=bool)
    while True:
        step = box_minimum(hessian, gradient, *bounds)
        lost = (margins + slopes @ step < 0.0) & ~pressed
        if not lost.any():
            return step
        pressed |= lost
        hessian += 2.0 * _PRESSED**2 * slopes[lost].T @ slopes[lost]
        gradient += 2.0 * _PRESSED**2 * slopes[lost].T @ margins[lost]
