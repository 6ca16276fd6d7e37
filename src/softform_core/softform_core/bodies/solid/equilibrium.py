"""The solid as an equilibrium problem: its total potential, its derivatives, and how its forces change with its loads.

Pi(x) = strain energy (see `energy`)  +  potentials of the loads (see `bodies.loads`): pressure in the cavities, and
what else acts under an actuator; springs of the support; the weight.
"""

import numpy as np
from scipy.sparse import csr_matrix, diags

from softform_core.arrays import Array
from softform_core.bodies.elements import IN_FOUR, rectangle, triangle
from softform_core.bodies.loads.cable import Cable
from softform_core.bodies.loads.cavity import Pressure
from softform_core.bodies.loads.load import Gravity, Loads, Support, nearness
from softform_core.bodies.loads.on_mesh import weights_of
from softform_core.bodies.nodal import NodalProblem
from softform_core.bodies.solid.energy import forces_and_stiffness, strain_energies
from softform_core.bodies.solid.model import Solid
from softform_core.simulation.hessian import Hessian, SparseHessian, UpdatedHessian
from softform_core.simulation.pardiso import sparse_factoriser
from softform_core.simulation.simulated_body import Surface, TendonLoads

_TOLERANCE = 1e-7  # of the forces of the loads
_ROUNDING = 1e-13  # of the shear modulus times length squared: what 64-bit sums over the mesh resolve
_SMALLEST_VOLUME = 0.2  # to which a Newton step may crush a point, of its volume
_MAX_STEP = 0.27  # of the length, a node's in one Newton step: of 48 loads one needs more, most that fail come to it
_OVER_RECTANGLE = np.array(
    [[at, at + 1, at + 4] for at in (0, 1, 3, 4)] + [[at, at + 4, at + 3] for at in (0, 1, 3, 4)]
)
"""Flat triangles over a face of 9 nodes."""


class SolidProblem(NodalProblem):
    """`SimulatedBody`, `MixedProblem` and `ShapeProblem` of a solid; the unknowns are the places of its free nodes, m.

    Its actuator values are the pressures in its cavities, then those of its other loads in their order.

    Args:
        solid: Result of `build_solid`.
        pardiso: Whether MKL PARDISO factorises the Hessian where it is installed, and not SuperLU.

    Attributes:
        pressure: Pressure in the cavities, the first of the loads.
    """

    def __init__(self, solid: Solid, pardiso: bool = True) -> None:
        pattern = solid.pattern
        super().__init__(solid.nodes, pattern, solid.extent)
        self.solid = solid
        self.largest_step = _MAX_STEP * solid.extent
        self.rounding = _ROUNDING * solid.modulus * solid.extent**3
        self.faces, self.frames = solid.faces, dict(solid.frames)
        self._entries = pattern.entries(solid.elements)
        self._factoriser = sparse_factoriser(pattern.indices, pattern.indptr) if pardiso else None
        walls = (
            (solid.rectangles, solid.cavity_of_rectangle, rectangle()),
            (solid.caps, solid.cavity_of_cap, triangle(6)),
        )
        self.pressure = Pressure(walls, solid.cavities, solid.nodes)
        steady = Support(diags(solid.springs).tocsr(), solid.nodes), Gravity(solid.weight, solid.nodes)
        self._loads = Loads([self.pressure, *solid.loads, *steady], pattern)
        self._still = nearness(solid.nodes, np.flatnonzero(solid.is_fixed))
        self.unloaded = np.zeros(self._loads.inputs)

    def _on_surface(self, values: Array) -> Array:
        flat = values.reshape(len(values), len(self.solid.nodes), -1)
        return np.stack([self.solid.surface @ one for one in flat]).reshape(len(values), -1, *values.shape[2:])

    def surfaces(self, unknowns: Array) -> list[Surface]:
        """As `BodyOfSurfaces`: the outside, then the walls of each cavity."""
        solid, nodes = self.solid, self.nodes(unknowns)
        walls = np.concatenate(
            [solid.caps[:, IN_FOUR].reshape(-1, 3), solid.rectangles[:, _OVER_RECTANGLE].reshape(-1, 3)]
        )
        cavity = np.concatenate(
            [solid.cavity_of_cap.repeat(len(IN_FOUR)), solid.cavity_of_rectangle.repeat(len(_OVER_RECTANGLE))]
        )
        outside = Surface("outside", self.points(unknowns[None])[0], self.faces)
        return [outside, *(Surface(f"c{one + 1}", nodes, walls[cavity == one]) for one in range(solid.cavities))]

    def tolerance(self, actuators: Array) -> Array:
        """Forces (1,) N below which the solid is in balance."""
        forces = _TOLERANCE * self._loads.size(actuators[0])
        return np.array([max(forces, _ROUNDING * self.solid.modulus * self.solid.extent**2)])

    def start(self, actuators: Array) -> Array:
        """The rest shape; between grips a shape that is led by them."""
        return self.unknowns(self._loads.start(self.solid.nodes, actuators[0], self._still))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        nodes = self.nodes(unknowns[0])
        return np.array([strain_energies(self.solid, nodes)[0] + self._loads.energy(nodes, actuators[0])])

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, Hessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        return self.derivatives_after(unknowns, unknowns, actuators)

    def derivatives_after(
        self, unknowns: Array, before: Array, actuators: Array, balanced: Array | None = None
    ) -> tuple[Array, Hessian]:
        """As `MixedProblem`."""
        solid, pattern = self.solid, self.solid.pattern
        nodes, nodes_before = self.nodes(unknowns[0]), self.nodes(before[0])
        forces, stiffness = forces_and_stiffness(solid, nodes, nodes_before)
        gradient = np.zeros_like(nodes)
        np.add.at(gradient, solid.elements, forces)
        self._loads.add_gradient(nodes, actuators[0], gradient)
        stored = self._loads.constant + pattern.sums(self._entries, stiffness)
        acting = actuators[0] if balanced is None else balanced[0]
        self._loads.add_blocks(nodes, nodes_before, acting, stored)
        products = self._loads.products(nodes, actuators[0])
        hessian = SparseHessian(pattern.matrix(stored), self._factoriser)
        free = gradient.reshape(-1)[self._order][None]
        if not products:
            return free, hessian
        columns = np.stack([column.reshape(-1)[self._order] for column, _ in products], axis=1)
        return free, UpdatedHessian(hessian, columns, np.array([weight for _, weight in products]))

    def step_share(self, unknowns: Array, step: Array) -> Array:
        """As `MixedProblem`, (1,)."""
        share = 1.0
        while share > 0.01 and not self._least(unknowns + share * step) > _SMALLEST_VOLUME:
            share *= 0.5
        return np.array([share])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the actuator values, (1, m, k)."""
        by_values = self._loads.by_values(self.nodes(unknowns[0]), actuators[0])
        return by_values.reshape(len(by_values), -1)[:, self._order].T[None]

    def weights_of(self, points: Array) -> csr_matrix:
        """Weights (P, V) of the nodes in points (P, 3) m of the material at rest."""
        return weights_of(points, self.solid.nodes, self.solid.elements)

    def wrenches(self, unknowns: Array, values: Array) -> list[Array]:
        """Force, N, and torque, N m, of each gripper on the body at unknowns (m,), (6,)."""
        return self._loads.wrenches(self.nodes(unknowns), values)

    def impossible(self, unknowns: Array) -> list[str]:
        """As `ShapeProblem`."""
        return [self._loads.impossible(self.nodes(one)) for one in unknowns]

    def _least(self, unknowns: Array) -> float:
        """Least volume of a point over that at rest."""
        return strain_energies(self.solid, self.nodes(unknowns[0]))[1]


class CabledSolid(SolidProblem):
    """A solid, some of whose inputs are the pulls of cables."""

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`; inputs that are no cables' have no tension, stretch or stiffness."""
        nodes, values = self.nodes(unknowns[0]), actuators[0]
        tension, stretch, stiffness = np.zeros((3, len(values)))
        place = self.solid.cavities
        for load in self.solid.loads:
            if isinstance(load, Cable) and load.stiffness is not None:
                tension[place] = load.tension(nodes, values[place : place + 1])
                stretch[place], stiffness[place] = load.stretch(nodes, values[place]), load.stiffness
            place += load.inputs
        return TendonLoads(tension, stretch, stiffness, values)


def problem_of(solid: Solid) -> SolidProblem:
    """The equilibrium problem of a solid, with what motors feel if it has cables that motors pull."""
    is_pulled = any(isinstance(load, Cable) and load.stiffness is not None for load in solid.loads)
    return CabledSolid(solid) if is_pulled else SolidProblem(solid)
