"""What a solve of inverse kinematics found. Millimetres; actuations in the robot's unit."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.inverse.ik_monitor import IkIteration
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.ik_problem import Evaluation, Problem
from softform_core.inverse.reachability import Reachability, reachability
from softform_core.registration.rigid import RigidTransform


@dataclass(frozen=True)
class IkResult:
    """Outcome of `solve_inverse_kinematics`.

    Attributes:
        history: One entry an iteration, the start first.
        coarse_iterations: Made before, at few points; they are one entry of the history together.
        seconds: Wall-clock time of the solve, without building the search tree of the target.
        prepare_seconds: Time to build that tree.
        termination: Why it stopped.
        problem: The solved problem.
        found: Best evaluation of the solve.
    """

    history: list[IkIteration]
    coarse_iterations: int
    seconds: float
    prepare_seconds: float
    termination: Termination
    problem: Problem = field(repr=False)
    found: Evaluation = field(repr=False)

    @cached_property
    def points(self) -> Array:
        """(P, 3) mm, the predicted shape."""
        if self.problem.target is not None:
            return self.found.points
        return np.asarray(self.problem.pipeline.forward(self.found.actuation[None]).points[0])

    @property
    def actuation(self) -> Array:
        """(k,), within the bounds."""
        return self.found.actuation

    @property
    def pose(self) -> RigidTransform:
        """(R, t) in mm, applied to the target."""
        return self.found.pose

    @property
    def distances(self) -> Array:
        """(P,) mm to the posed target; none without a target."""
        return self.found.matches.distances

    @property
    def covered(self) -> NDArray[np.bool_]:
        """(P,) points that have a counterpart on the target; errors are taken over these and over feature points."""
        return self.found.covered

    @property
    def mean_error_mm(self) -> float:
        """Mean of the distances that count."""
        return self.found.mean_error_mm

    @property
    def max_error_mm(self) -> float:
        """Largest of the errors."""
        return self.found.max_error_mm

    @property
    def miss(self) -> Array:
        """(3,) mm, mean vector from the predicted points to where they are wanted."""
        return self.found.miss

    @property
    def objective(self) -> float:
        """D of Eq. 15 over covered points, mm^2."""
        return self.found.objective

    @property
    def merit(self) -> float:
        """What was minimised, mm^2."""
        return self.found.merit

    @property
    def iterations(self) -> int:
        """Iterations made."""
        return len(self.history) - 1

    @cached_property
    def reachability(self) -> Reachability:
        """How far from the target this is, and why; computed when it is first asked for."""
        return reachability(self.problem, self.found)
