"""The solid as an equilibrium problem: its total potential, its derivatives, and how its forces change with pressure.

Pi(x) = strain energy (see `energy`)  +  sum of 1/2 k |x - X|^2 of the support  -  sum p_i V_i(x)  -  weight . (x - X)
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags

from softform_core.arrays import Array
from softform_core.bodies.solid.cavity import volume_gradients, volume_hessians, volumes_of_faces
from softform_core.bodies.solid.elements import rectangle, triangle
from softform_core.bodies.solid.energy import forces_and_stiffness, strain_energies
from softform_core.bodies.solid.model import Solid
from softform_core.simulation.hessian import SparseHessian
from softform_core.simulation.pardiso import sparse_factoriser
from softform_core.simulation.simulated_body import Surface

_TOLERANCE = 1e-7  # of the forces of pressure and weight
_ROUNDING = 1e-13  # of the shear modulus times length squared: what 64-bit sums over the mesh resolve
_SMALLEST_VOLUME = 0.2  # to which a Newton step may crush a point, of its volume
_MAX_STEP = 0.27  # of the length, a node's in one Newton step: of 48 loads one needs more, most that fail come to it
_OVER_CAP = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])
_OVER_RECTANGLE = np.array(
    [[at, at + 1, at + 4] for at in (0, 1, 3, 4)] + [[at, at + 4, at + 3] for at in (0, 1, 3, 4)]
)
"""Flat triangles over a face of 6 nodes, and of 9."""
_RUNAWAY = 3.0  # a node further away than this many lengths has run away


class SolidProblem:
    """`SimulatedBody`, `MixedProblem` and `ShapeProblem` of a solid; the unknowns are the places of its free nodes, m.

    Args:
        solid: Result of `build_solid`.
        pardiso: Whether MKL PARDISO factorises the Hessian where it is installed, and not SuperLU.
    """

    batch = 1
    frames: dict[str, int] = {}
    is_slack = False

    def __init__(self, solid: Solid, pardiso: bool = True) -> None:
        self.solid = solid
        self._order = solid.pattern.order
        self.unloaded = np.zeros(solid.cavities)
        self.largest_step = _MAX_STEP * solid.extent
        self.rounding = _ROUNDING * solid.modulus * solid.extent**3
        self.faces = solid.faces
        self.rest = self.unknowns(solid.nodes)[0]
        self._entries = solid.pattern.entries(solid.elements)
        self._constant = solid.pattern.alike(diags(solid.springs))
        self._factoriser = sparse_factoriser(solid.pattern.indices, solid.pattern.indptr) if pardiso else None
        self._cavity_faces = (
            (solid.rectangles, solid.cavity_of_rectangle, rectangle(), solid.pattern.entries(solid.rectangles)),
            (solid.caps, solid.cavity_of_cap, triangle(6), solid.pattern.entries(solid.caps)),
        )
        self._pushes = np.linalg.norm(self.volume_gradients(solid.nodes).reshape(solid.cavities, -1), axis=1)

    def nodes(self, unknowns: Array) -> Array:
        """Nodes (V, 3) m of unknowns (m,)."""
        nodes = self.solid.nodes.copy()
        nodes.reshape(-1)[self._order] = unknowns
        return nodes

    def unknowns(self, nodes: Array) -> Array:
        """Unknowns (1, m) of nodes (V, 3) m."""
        return np.asarray(nodes, dtype=np.float64).reshape(-1)[self._order][None]

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m of the surface for unknowns (n, m)."""
        return np.stack([self.solid.surface @ self.nodes(one) for one in unknowns])

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, P, 3, k) m; the base stays."""
        moved = np.zeros((len(moves), self.solid.nodes.size, moves.shape[2]))
        moved[:, self._order] = moves
        shape = (len(self.solid.nodes), 3 * moves.shape[2])
        points = np.stack([self.solid.surface @ one.reshape(shape) for one in moved])
        return points.reshape(len(moves), -1, 3, moves.shape[2])

    def surfaces(self, unknowns: Array) -> list[Surface]:
        """As `BodyOfSurfaces`: the outside, then the walls of each cavity."""
        solid, nodes = self.solid, self.nodes(unknowns)
        walls = np.concatenate(
            [solid.caps[:, _OVER_CAP].reshape(-1, 3), solid.rectangles[:, _OVER_RECTANGLE].reshape(-1, 3)]
        )
        cavity = np.concatenate(
            [solid.cavity_of_cap.repeat(len(_OVER_CAP)), solid.cavity_of_rectangle.repeat(len(_OVER_RECTANGLE))]
        )
        outside = Surface("outside", self.points(unknowns[None])[0], self.faces)
        return [outside, *(Surface(f"c{one + 1}", nodes, walls[cavity == one]) for one in range(solid.cavities))]

    def tolerance(self, actuators: Array) -> Array:
        """Forces (1,) N below which the solid is in balance."""
        load = float(np.abs(actuators[0]) @ self._pushes) + float(np.linalg.norm(self.solid.weight))
        return np.array([max(_TOLERANCE * load, _ROUNDING * self.solid.modulus * self.solid.extent**2)])

    def start(self, actuators: Array) -> Array:
        """The rest shape."""
        return self.rest[None]

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        nodes = self.nodes(unknowns[0])
        moved = nodes - self.solid.nodes
        support = 0.5 * float(self.solid.springs @ (moved**2).sum(axis=1))
        work = float(self.volumes(nodes) @ actuators[0]) + float(np.sum(self.solid.weight * moved))
        return np.array([strain_energies(self.solid, nodes)[0] + support - work])

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, SparseHessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        return self.derivatives_after(unknowns, unknowns, actuators)

    def derivatives_after(self, unknowns: Array, before: Array, actuators: Array) -> tuple[Array, SparseHessian]:
        """As `MixedProblem`."""
        solid, pattern = self.solid, self.solid.pattern
        nodes = self.nodes(unknowns[0])
        gradient = solid.springs[:, None] * (nodes - solid.nodes) - solid.weight
        forces, stiffness = forces_and_stiffness(solid, nodes, self.nodes(before[0]))
        np.add.at(gradient, solid.elements, forces)
        values = self._constant + pattern.sums(self._entries, stiffness)
        gradient -= np.tensordot(actuators[0], self.volume_gradients(nodes), axes=1)
        for faces, cavity, rule, entries in self._cavity_faces:
            pressures = actuators[0][cavity][:, None, None, None, None]
            values += pattern.sums(entries, -pressures * volume_hessians(nodes, faces, rule))
        hessian = SparseHessian(pattern.matrix(values), self._factoriser)
        return gradient.reshape(-1)[self._order][None], hessian

    def step_share(self, unknowns: Array, step: Array) -> Array:
        """As `MixedProblem`, (1,)."""
        share = 1.0
        while share > 0.01 and not self._least(unknowns + share * step) > _SMALLEST_VOLUME:
            share *= 0.5
        return np.array([share])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """-dV/dx, (1, m, k) m^2."""
        by_nodes = self.volume_gradients(self.nodes(unknowns[0]))
        return -by_nodes.reshape(self.solid.cavities, -1)[:, self._order].T[None]

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (1,) a node has moved by several lengths of the body."""
        return np.asarray(np.abs(unknowns - self.rest).max(axis=1) > _RUNAWAY * self.solid.extent)

    def impossible(self, unknowns: Array) -> list[str]:
        """As `ShapeProblem`: a cavity of negative volume, whose walls have passed through each other."""
        return [_inside_out(self.volumes(self.nodes(one))) for one in unknowns]

    def volumes(self, nodes: Array) -> Array:
        """Volumes (k,) m^3 of the cavities for nodes (V, 3) m."""
        volumes = np.zeros(self.solid.cavities)
        for faces, cavity, rule, _ in self._cavity_faces:
            np.add.at(volumes, cavity, volumes_of_faces(nodes, faces, rule))
        return volumes

    def volume_gradients(self, nodes: Array) -> Array:
        """Their gradients (k, V, 3) m^2."""
        gradients = np.zeros((self.solid.cavities, *nodes.shape))
        for faces, cavity, rule, _ in self._cavity_faces:
            np.add.at(gradients, (cavity[:, None], faces), volume_gradients(nodes, faces, rule))
        return gradients

    def _least(self, unknowns: Array) -> float:
        """Least volume of a point over that at rest."""
        return strain_energies(self.solid, self.nodes(unknowns[0]))[1]


def _inside_out(volumes: Array) -> str:
    names = [f"c{cavity + 1}" for cavity in np.flatnonzero(volumes < 0.0)]
    if len(names) < 2:
        return f"chamber {names[0]} turns inside out" if names else ""
    return f"chambers {', '.join(names)} turn inside out"
