"""The arm as an equilibrium problem: material, cables and weight, with Hessians by layers.

Pi(x) = strain energy (see `kernels`) + sum k phi(l(x) - l(X) + u) of the cables (see `bodies.loads.cable`) - weight . x
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.cable_arm import kernels
from softform_core.bodies.cable_arm.mesh import ArmMesh, CablePoints
from softform_core.bodies.loads.cable import taut_energy, taut_slopes
from softform_core.robots import TIP
from softform_core.simulation.block_tridiagonal import BlockTridiagonalHessian
from softform_core.simulation.factor import Factor, UpdatedFactor
from softform_core.simulation.hessian import Hessian, UpdatedHessian
from softform_core.simulation.simulated_body import TendonLoads

_TOLERANCE = 1e-9
"""Of the force that would strain the arm by one: sensitivities agree with differences only in a close balance."""
_ROUNDING = 1e-13
_MAX_STEP = 0.055  # of the length: longer steps of Newton's method swing to and fro
_RUNAWAY = 1.5  # lengths that a node of a held arm may move: a straight line through its base and back is 2
_KEPT_TAUT = 0.4
"""Stretch of a cable that is led, over that which takes it up: where one goes slack a linear step pushes by it."""


@dataclass(frozen=True, eq=False)
class Arm:
    """A meshed arm with k cables; SI units.

    Attributes:
        mesh: Its mesh.
        cables: Their points.
        cable_stiffness: (k,) N/m.
        most_tension: Of a cable, N.
        take_up: Stretch over which a slack cable takes up its stiffness, m.
        slopes: (E, 4, 3) derivatives of the shape functions, 1/m.
        volumes: (E,) m^3.
        shear: (E,) mu of `kernels`, Pa.
        bulk: (E,) lambda of `kernels`, Pa.
        weight: (V, 3) N.
        stiff_force: Force that would strain the arm by one, N.
    """

    mesh: ArmMesh
    cables: CablePoints
    cable_stiffness: Array
    most_tension: float
    take_up: float
    slopes: Array
    volumes: Array
    shear: Array
    bulk: Array
    weight: Array
    stiff_force: float


def joined(blocks: BlockTridiagonalHessian, columns: Array, weights: Array, counts: NDArray[np.bool_]) -> Hessian:
    """Return the Hessian of layers with what cables join of them: products of columns (m, r), by weights (r,), N/m.

    Those count of which (r,) is true.
    """
    if not counts.any():
        return blocks
    return UpdatedHessian(blocks, np.ascontiguousarray(columns[:, counts]), weights[counts])


class ArmProblem:
    """`SimulatedBody`, `ShapeProblem`, `PulledBody` and `TrackedBody` of an arm.

    The unknowns are the places of its nodes but the held ones, layer by layer, m; the actuator values are the pulls of
    its cables, m. The points are the outer nodes and then the middle of the tip.
    """

    batch = 1
    is_slack = False

    def __init__(self, arm: Arm) -> None:
        self.arm, mesh = arm, arm.mesh
        self.unloaded = np.zeros(len(arm.cable_stiffness))
        self._length = float(np.ptp(mesh.nodes[:, 2]))
        self.largest_step = _MAX_STEP * self._length
        self.rounding = _ROUNDING * arm.stiff_force * self._length
        self.faces = mesh.faces
        self._shown = np.append(mesh.outside, len(mesh.nodes) - mesh.width)
        self.frames = {TIP: len(self._shown) - 1}
        self.rest = self._unknowns(mesh.nodes)
        self._elements = mesh.elements, arm.slopes, arm.volumes, arm.shear, arm.bulk
        self._pieces = arm.cables.nodes, arm.cables.weights, arm.cables.cable

    def tolerance(self, actuators: Array) -> Array:
        """Forces (1,) N below which the arm is in balance."""
        return np.array([_TOLERANCE * self.arm.stiff_force])

    def start(self, actuators: Array) -> Array:
        """The arm at rest."""
        return self.rest[None].copy()

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        nodes, arm = self._nodes(unknowns[0]), self.arm
        strained = kernels.strain_energy(nodes, *self._elements)[0]
        taut = taut_energy(self._stretch(nodes, actuators[0]), arm.take_up) @ arm.cable_stiffness
        return np.array([strained + taut - np.sum(arm.weight * (nodes - arm.mesh.nodes))])

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """Gradient (1, m) N alone."""
        nodes = self._nodes(unknowns[0])
        return self._gradient(nodes, self._cable_slopes(nodes), self._tensions(nodes, actuators[0])[0])[None]

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, Hessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        nodes = self._nodes(unknowns[0])
        slopes, (tension, rise) = self._cable_slopes(nodes), self._tensions(nodes, actuators[0])
        hessian = joined(self._blocks(nodes, tension), slopes, rise, rise > 0.0)
        return self._gradient(nodes, slopes, tension)[None], hessian

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pulls, (1, m, k): k phi'' dl/dx."""
        nodes = self._nodes(unknowns[0])
        return (self._cable_slopes(nodes) * self._tensions(nodes, actuators[0])[1])[None]

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) a node is farther from where it rests than it could be on any arm of about this length."""
        return np.asarray(np.abs(unknowns - self.rest).max(axis=1) > 2.0 * _RUNAWAY * self._length)

    def impossible(self, unknowns: Array) -> list[str]:
        """As `ShapeProblem`: elements that are inside out."""
        return ["" if self._least_volume(one) > 0.0 else "elements turn inside out" for one in unknowns]

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m of unknowns (n, m)."""
        return np.stack([self._nodes(one)[self._shown] for one in unknowns])

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, P, 3, k) m."""
        held = np.zeros((len(moves), 3 * self.arm.mesh.width, moves.shape[2]))
        every = np.concatenate([held, moves], axis=1)
        return every.reshape(len(moves), -1, 3, moves.shape[2])[:, self._shown]

    def moved(self, unknowns: Array, step: Array) -> Array:
        """As `TrackedBody`: unknowns (1, m) after a step (1, m), carried along the arm (`kernels.moved_by_layers`)."""
        mesh = self.arm.mesh
        steps = np.concatenate([np.zeros((mesh.width, 3)), step.reshape(-1, 3)])
        return self._unknowns(kernels.moved_by_layers(self._nodes(unknowns[0]), steps, mesh.width))[None]

    def followed(self, unknowns: Array, actuators: Array, factor: Factor) -> Array:
        """As `TrackedBody`: slack cables move nothing, and the others' loads are the products of the Hessian."""
        found = np.zeros((*unknowns.shape, len(self.unloaded)))
        if isinstance(factor, UpdatedFactor):
            taut = self._tensions(self._nodes(unknowns[0]), actuators[0])[1] > 0.0
            found[0, :, taut] = -factor.by_products[:, : taut.sum()].T
        return found

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`."""
        stretch = self._stretch(self._nodes(unknowns[0]), actuators[0])
        tension = self.arm.cable_stiffness * taut_slopes(stretch, self.arm.take_up)[0]
        return TendonLoads(tension, stretch, self.arm.cable_stiffness, actuators[0])

    def compliance(self, unknowns: Array, actuators: Array) -> Array:
        """As `YieldingBody`: dl/dx^T H^-1 dl/dx, with the Hessian of the arm between cables of constant tension."""
        nodes = self._nodes(unknowns[0])
        return self._yielding(nodes, self._cable_slopes(nodes), self._tensions(nodes, actuators[0])[0])

    def _yielding(self, nodes: Array, slopes: Array, tension: Array) -> Array:
        factor = self._blocks(nodes, tension).factorised()
        return np.asarray(slopes.T @ factor.solve(slopes[None])[0])

    def moved_stretch(self, unknowns: Array, moves: Array) -> Array:
        """As `TrackedBody`: derivative (k, c) of the cables' lengths as the unknowns (1, m) move by (1, m, c)."""
        return np.asarray(self._cable_slopes(self._nodes(unknowns[0])).T @ moves[0])

    def stretch_limits(self, stretch: Array) -> tuple[Array, Array]:
        """As `TrackedBody`: a cable stays taut, one that is being taken up is so first, and none is pulled too hard."""
        take_up, most = self.arm.take_up, self.arm.most_tension / self.arm.cable_stiffness
        return np.full(len(stretch), _KEPT_TAUT * take_up), np.where(stretch < take_up, take_up, most)

    def _nodes(self, unknowns: Array) -> Array:
        """Nodes (V, 3) m of unknowns (m,)."""
        nodes = self.arm.mesh.nodes.copy()
        nodes.reshape(-1)[3 * self.arm.mesh.width :] = unknowns
        return nodes

    def _unknowns(self, nodes: Array) -> Array:
        return nodes.reshape(-1)[3 * self.arm.mesh.width :].copy()

    def _least_volume(self, unknowns: Array) -> float:
        """Least volume of an element over that at rest."""
        return float(kernels.strain_energy(self._nodes(unknowns), *self._elements)[1])

    def _stretch(self, nodes: Array, pulls: Array) -> Array:
        """Stretch d (k,) m; below 0 by how much a cable is slack."""
        lengths = np.empty(len(pulls))
        kernels.cable_lengths(nodes, *self._pieces, lengths)
        return lengths - self.arm.cables.rest_length + pulls

    def _tensions(self, nodes: Array, pulls: Array) -> tuple[Array, Array]:
        """Tensions (k,) N, and their derivative by the stretch, N/m."""
        slope, curvature = taut_slopes(self._stretch(nodes, pulls), self.arm.take_up)
        return self.arm.cable_stiffness * slope, self.arm.cable_stiffness * curvature

    def _blocks(self, nodes: Array, tension: Array) -> BlockTridiagonalHessian:
        """Hessian of all but what joins the nodes of a cable, under tensions (k,) N."""
        width = self.arm.mesh.width
        layers = len(nodes) // width - 1
        diagonal, below = (np.zeros((count, 3 * width, 3 * width)) for count in (layers, layers - 1))
        kernels.add_strain_hessian(nodes, *self._elements, width, diagonal, below)
        kernels.add_cable_hessian(nodes, *self._pieces, tension, width, diagonal, below)
        return BlockTridiagonalHessian(diagonal, below)

    def _cable_slopes(self, nodes: Array) -> Array:
        """dl/dx (m, k) of the cables."""
        slopes = np.zeros((*nodes.shape, len(self.arm.cables.rest_length)))
        kernels.add_cable_slopes(nodes, *self._pieces, slopes)
        return slopes.reshape(nodes.size, -1)[3 * self.arm.mesh.width :]

    def _gradient(self, nodes: Array, slopes: Array, tension: Array) -> Array:
        gradient = -self.arm.weight
        kernels.add_strain_gradient(nodes, *self._elements, gradient)
        return self._unknowns(gradient) + slopes @ tension
