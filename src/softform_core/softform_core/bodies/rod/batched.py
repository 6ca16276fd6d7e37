"""Rods in data sets, many at once on a device; what is given up there the single solver does."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.rod.equilibrium import RodEquilibria, RodProblem, solve_equilibria
from softform_core.bodies.rod.sampled import SampledRod
from softform_core.bodies.rod.warp_rods import WarpRods


class BatchedRods(SampledRod):
    """`SampledBody` of a rod; arguments as `SampledRod`, errors as `WarpRods`."""

    def __init__(self, problem: RodProblem, dimensions: int, device: str) -> None:
        super().__init__(problem, dimensions)
        self._batched = WarpRods(problem, device)

    def _equilibria(self, actuators: Array) -> tuple[RodEquilibria, NDArray[np.bool_] | None]:
        unknowns, converged, iterations = self._batched.solve(actuators)
        strains, tips = self._problem.strains(unknowns), self._problem.points(unknowns)[:, 0]
        failures, left = np.full(len(actuators), "", dtype=object), ~converged
        if left.any():
            one = solve_equilibria(self._problem, actuators[left])
            strains[left], tips[left], iterations[left] = one.strains, one.tips, one.iterations
            failures[left] = one.failures
        return RodEquilibria(strains, tips, iterations, failures.tolist()), left
