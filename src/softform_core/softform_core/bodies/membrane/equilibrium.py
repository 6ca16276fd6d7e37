"""The membrane as an equilibrium problem: its unknowns, its potential, and how its forces change with the pressures."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.membrane.model import Membrane
from softform_core.bodies.membrane.potential import (
    dome,
    gradient_and_hessian,
    load_size,
    potential_gradient,
    stiffness_of_sheet,
    total_potential,
    volumes_and_gradients,
)
from softform_core.bodies.nodal import NodalProblem
from softform_core.simulation.hessian import SparseHessian

RESIDUAL_TOLERANCE = 1e-8  # of the pressure and weight forces
ROUNDING = 1e-14  # of Young's modulus times thickness: what 64-bit sums over the mesh resolve
MAX_STEP = 0.25  # largest move of a vertex in one Newton step, of the membrane's side


class MembraneProblem(NodalProblem):
    """`SimulatedBody` of a membrane; the unknowns are the places of its free vertices, m, in the pattern's order.

    Args:
        membrane: Result of `build_membrane`.
        held: (V, 3) m; fixed vertices stay where it puts them. The rest shape by default.
    """

    def __init__(self, membrane: Membrane, held: Array | None = None) -> None:
        super().__init__(membrane.rest_vertices, membrane.pattern, membrane.extent, held)
        self.membrane = membrane
        self._stiffness = stiffness_of_sheet(membrane)
        self.unloaded = np.zeros(membrane.chambers)
        self.largest_step = MAX_STEP * membrane.extent
        self.rounding = ROUNDING * self._stiffness * membrane.extent**2
        self.faces = membrane.faces
        self.is_slack = not membrane.weight.any()

    def tolerance(self, actuators: Array) -> Array:
        """Forces (1,) N below which the sheet is in balance."""
        forces = RESIDUAL_TOLERANCE * load_size(self.membrane, actuators[0])
        return np.array([max(forces, ROUNDING * self._stiffness * self.membrane.extent)])

    def start(self, actuators: Array) -> Array:
        """A dome."""
        return self.unknowns(dome(self.membrane, actuators[0]))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        return np.array([total_potential(self.membrane, self.nodes(unknowns[0]), actuators[0])])

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """Gradient (1, m) N without the Hessian."""
        return potential_gradient(self.membrane, self.nodes(unknowns[0]), actuators[0])[None]

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, SparseHessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        gradient, hessian = gradient_and_hessian(self.membrane, self.nodes(unknowns[0]), actuators[0])
        return gradient[None], SparseHessian(hessian)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """-dV/dx, (1, m, k) m^2."""
        _, gradients = volumes_and_gradients(self.membrane, self.nodes(unknowns[0]))
        return -gradients.reshape(self.membrane.chambers, -1)[:, self._order].T[None]
