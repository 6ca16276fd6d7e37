"""Equilibria that tests compare with: one membrane at a time with its sensitivity, and the tips of rods."""

from typing import NamedTuple

import numpy as np

from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.rod.equilibrium import solve_equilibria
from softform_core.simulation.newton import NoEquilibriumError, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities


class Equilibrium(NamedTuple):
    """A membrane at rest: vertices (V, 3) m, energy J, forces out of balance N, Newton iterations."""

    vertices: np.ndarray
    pressures: np.ndarray
    energy: float
    residual: float
    iterations: int


class HeldMembrane(MembraneProblem):
    """A membrane whose fixed vertices stay where a shape (V, 3) m has them."""

    def __init__(self, membrane, shape) -> None:
        super().__init__(membrane)
        self._shape = shape

    def nodes(self, unknowns: np.ndarray) -> np.ndarray:
        nodes = self._shape.copy()
        nodes.reshape(-1)[self._order] = unknowns
        return nodes


def solve_equilibrium(membrane, pressures, start=None) -> Equilibrium:
    """Under pressures (k,) Pa, from `start` (V, 3) m, where its fixed vertices stay, or from a dome."""
    pressures = np.array(pressures, dtype=np.float64)
    problem = MembraneProblem(membrane) if start is None else HeldMembrane(membrane, start)
    found = find_equilibria(problem, pressures[None], None if start is None else problem.unknowns(start))
    if found.failures[0]:
        raise NoEquilibriumError(found.failures[0], "")
    vertices = problem.nodes(found.unknowns[0])
    return Equilibrium(vertices, pressures, found.energy[0], found.residual[0], found.iterations[0])


def equilibrium_sensitivity(membrane, equilibrium: Equilibrium) -> np.ndarray:
    """Derivative of the vertices by the pressures, (V, 3, k) m/Pa; NaN without stiffness."""
    problem = HeldMembrane(membrane, equilibrium.vertices)
    unknowns = problem.unknowns(equilibrium.vertices)
    return problem.moved_points(unknowns, equilibrium_sensitivities(problem, unknowns, equilibrium.pressures[None]))[0]


def simulate_tips(problem, robot, actuations) -> np.ndarray:
    """Tips (n, d) m at actuations (n, m); NaN where the rod has no equilibrium."""
    return solve_equilibria(problem, robot.actuators_of(actuations)).tips[:, : robot.tip_dimensions]
