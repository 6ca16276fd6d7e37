"""Result of inverse kinematics, and why it comes no nearer. Millimetres; actuations in the robot's unit."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.inverse.ik_monitor import IkIteration
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.ik_problem import Evaluation, Problem
from softform_core.inverse.levenberg_marquardt import weighted_rows

WEAK_PART = 0.01
"""Largest motion of the shape by a weak change of the actuation, over that by the strongest change."""

_AT_BOUND = 1e-6
_NO_MOTION = 1e-6


@dataclass(frozen=True)
class Reachability:
    """First-order analysis of the error that is left at a solution.

    Attributes:
        residual_mm: Root of the merit's part of target and feature points; for a target alone, the root mean square of
            the distances.
        unreachable_mm: Part of it orthogonal to the effect of free actuators and pose: no small motion reduces it.
        active_bounds: (k,) -1 where an actuator is at its lowest, 1 at its highest, else 0.
        weak_directions: (n, k) unit vectors of the actuation as parts of its range: changes that hardly move the shape
            along the target's normals, or the feature points. What they could improve, they cannot. Inputs that the
            solve holds do not change.
    """

    residual_mm: float
    unreachable_mm: float
    active_bounds: NDArray[np.int8]
    weak_directions: Array


def reachability(problem: Problem, at: Evaluation) -> Reachability:
    """Analyse a solution by the singular vectors of its Jacobian; one Jacobian is computed."""
    rows, residuals, _ = weighted_rows(problem, at)
    k = len(at.actuation)
    at_low = at.actuation <= problem.low + _AT_BOUND * problem.range
    at_high = at.actuation >= problem.high - _AT_BOUND * problem.range
    slope = rows.T @ residuals
    held = np.zeros(rows.shape[1], dtype=bool)
    held[:k] = (at_low & (slope[:k] > 0.0)) | (at_high & (slope[:k] < 0.0))
    motions, strengths, _ = np.linalg.svd(rows[:, ~held], full_matrices=False)
    motions = motions[:, strengths > _NO_MOTION * strengths.max(initial=0.0)]
    left = residuals - motions @ (motions.T @ residuals)
    # Right singular vectors of the free actuation's columns, from their small Gram matrix.
    free = np.flatnonzero(problem.range)
    squares, changes = np.linalg.eigh(rows[:, free].T @ rows[:, free])
    weak = squares < WEAK_PART**2 * max(float(squares.max(initial=0.0)), 1e-300)
    weak_directions = np.zeros((np.count_nonzero(weak), k))
    weak_directions[:, free] = changes[:, weak].T
    return Reachability(
        float(np.linalg.norm(residuals)),
        float(np.linalg.norm(left)),
        at_high.astype(np.int8) - at_low.astype(np.int8),
        weak_directions,
    )


@dataclass(frozen=True)
class IkResult(Evaluation):
    """Outcome of `solve_inverse_kinematics`: the best evaluation of the solve, and how it came about.

    Attributes:
        history: One entry an iteration, the start first.
        coarse_iterations: Made before, at few points; they are one entry of the history together.
        seconds: Wall-clock time of the solve, without building the search tree of the target.
        prepare_seconds: Time to build that tree.
        termination: Reason why it stopped.
        problem: The solved problem.
    """

    history: list[IkIteration]
    coarse_iterations: int
    seconds: float
    prepare_seconds: float
    termination: Termination
    problem: Problem = field(repr=False)

    @cached_property
    def shape(self) -> Array:
        """(P, 3) mm, the predicted shape, without a target, too."""
        if self.problem.target is not None:
            return self.points
        return np.asarray(self.problem.pipeline.forward(self.actuation[None]).points[0])

    @property
    def iterations(self) -> int:
        """Iterations made."""
        return len(self.history) - 1

    @cached_property
    def reachability(self) -> Reachability:
        """Distance that is left to the target, and why; computed on first use."""
        return reachability(self.problem, self)
