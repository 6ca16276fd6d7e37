"""The rod in data sets: its tip and the tip's Jacobian."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.rod.equilibrium import RodProblem, solve_equilibria, tip_sensitivities
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE
from softform_core.simulation.sampled_body import Solved


class SampledRod:
    """`SampledBody` of a rod whose tip moves in `dimensions` coordinates."""

    block = 512

    def __init__(self, problem: RodProblem, dimensions: int) -> None:
        self._problem, self._dimensions = problem, dimensions
        self.constants: dict[str, NDArray] = {}

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """`tip` (d,) m and `jacobian` (d, m), m by the actuators' unit."""
        return {"tip": (self._dimensions,), "jacobian": (self._dimensions, degrees_of_freedom)}

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Tips under values (b, k) of the actuators, and their Jacobians by the implicit function theorem."""
        found = solve_equilibria(self._problem, actuators)
        jacobians = np.full((len(actuators), self._dimensions, by_actuation.shape[2]), np.nan)
        done = np.flatnonzero([not reason for reason in found.failures])
        moves = tip_sensitivities(self._problem, found.strains[done], actuators[done])
        jacobians[done] = moves[:, : self._dimensions] @ by_actuation[done]
        finite = np.isfinite(jacobians).all(axis=(1, 2))
        failures = [
            f"{reason or 'The equilibrium has no stiffness.'} {NO_EQUILIBRIUM_ADVICE}" if reason or not firm else ""
            for reason, firm in zip(found.failures, finite, strict=True)
        ]
        outputs = {"tip": found.tips[:, : self._dimensions], "jacobian": jacobians}
        return Solved(outputs, found.iterations, failures)
