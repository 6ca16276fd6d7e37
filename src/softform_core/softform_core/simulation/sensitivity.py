"""How equilibria move with the actuators, by the implicit function theorem.

At equilibrium the gradient of Pi vanishes for every a; its derivative by a gives H dx/da = -d(grad Pi)/da. That is
exact; paper 001 takes central differences (Eq. 3).
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.simulation.problem import EquilibriumProblem

_SMALLEST_PIVOT = 1e-10  # of the largest; 1e-16 on a slack flat sheet, above 1e-4 elsewhere


def equilibrium_sensitivities(problem: EquilibriumProblem, unknowns: Array, actuators: Array) -> Array:
    """Derivative dx/da, (n, m, k), at equilibria (n, m) under (n, k); NaN of a singular Hessian (a slack sheet)."""
    parts = [np.empty((0, unknowns.shape[1], actuators.shape[1]))]
    for begin in range(0, len(unknowns), problem.batch):
        x, values = unknowns[begin : begin + problem.batch], actuators[begin : begin + problem.batch]
        factor = problem.derivatives(x, values)[1].factorised()
        solution = -factor.solve(problem.load_derivative(x, values))
        pivots = factor.pivots
        firm = pivots.min(axis=1) > _SMALLEST_PIVOT * pivots.max(axis=1)
        parts.append(np.where(firm[:, None, None], solution, np.nan))
    return np.concatenate(parts)
