"""One solve of a servo under way: the targets of a moment, approached an iteration at a time.

Millimetres; actuations in the robot's unit.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.ik_problem import Problem
from softform_core.inverse.levenberg_marquardt import LevenbergMarquardt
from softform_core.inverse.servo_target import ServoTargets


class ServoErrors(NamedTuple):
    """Distances of the predicted shape to the targets, those that count: their mean and the largest."""

    mean_mm: float
    max_mm: float


class ServoSolve:
    """Approaches targets, whose pose is fixed, from where the solve before ended.

    A target with holes, or one that ends before the robot does, is first fitted as it is; then points without a
    counterpart are left out, and from then on in the solves that follow, until there are none.

    Args:
        model: Forward kinematics.
        targets: Targets to approach, at least one.
        options: Bounds, start and costs.
        before: The solve before, if there was one.

    Raises:
        SoftformError: If the model cannot be asked for these targets.

    Attributes:
        model: Forward kinematics.
        targets: Targets to approach.
        iterations: Number of iterations so far.
        is_finished: Whether nothing nearby is better.
    """

    def __init__(
        self, model: ForwardModel, targets: ServoTargets, options: IkOptions, before: "ServoSolve | None" = None
    ) -> None:
        self.model, self.targets = model, targets
        self.iterations, self.is_finished = 0, False
        self._features = None
        if targets.features is not None and targets.features.features is not None:
            wanted = targets.features.features
            known = None if before is None or before.model is not model else before._features
            if known is not None and np.array_equal(known.features.uv, wanted.uv):
                self._features = known.moved_to(wanted)
            else:
                self._features = FeatureTerm.of(model, wanted)
        shape = None if targets.shape is None else targets.shape.shape
        self._problem = Problem(model, shape, options, self._features)
        self._problem.ignore_uncovered = before is not None and before.leaves_points_out
        if before is not None and before.model is model:
            self._problem.sized_as(before._problem)
        start = self._problem.evaluate(options.start(), RigidTransform())
        if not np.isfinite(start.merit):  # nothing of this target is near
            self._problem.ignore_uncovered = False
            start = self._problem.rated_anew(start)
        self._solver = LevenbergMarquardt(self._problem, start)

    @property
    def actuation(self) -> Array:
        """The best so far, (k,)."""
        return self._solver.best.actuation

    @property
    def points(self) -> Array:
        """Predicted shape at the best so far, (P, 3) mm; P is 0 without a shape to approach."""
        return self._solver.best.points

    @property
    def errors(self) -> ServoErrors:
        """Errors of the best iterate so far."""
        best = self._solver.best
        return ServoErrors(best.mean_error_mm, best.max_error_mm)

    @property
    def miss(self) -> Array:
        """Mean vector from the predicted points to where they are wanted, (3,) mm, at the best so far."""
        return self._solver.best.miss

    @property
    def leaves_points_out(self) -> bool:
        """Whether points of the robot have no counterpart on the target, and do not count."""
        best = self._solver.best
        return self._problem.ignore_uncovered and self._problem.lacks_parts(best)

    def iterate(self, is_time_up: Callable[[], bool]) -> None:
        """Make one iteration of Levenberg-Marquardt.

        Args:
            is_time_up: Asked before each trial of a step but the first: a late iteration is better than none.
        """
        trials = itertools.count()
        stop = self._solver.iterate(lambda: Termination.TIME_LIMIT if next(trials) and is_time_up() else None)
        self.iterations += 1
        best, problem = self._solver.best, self._problem
        self.is_finished = (stop is not None and stop.finished) or best.mean_error_mm <= problem.options.tolerance_mm
        if self.is_finished and not problem.ignore_uncovered and problem.lacks_parts(best):
            problem.ignore_uncovered = True
            covered_only = problem.rated_anew(best)
            if np.isfinite(covered_only.merit):
                self._solver = LevenbergMarquardt(problem, covered_only)
                self.is_finished = False
            else:
                problem.ignore_uncovered = False

    def errors_at(self, actuation: Array) -> ServoErrors:
        """Return errors at another actuation, (k,), against the same targets."""
        place = self._problem.evaluate(actuation, RigidTransform())
        return ServoErrors(place.mean_error_mm, place.max_error_mm)
