"""Layers as an equilibrium problem, with frictionless contact of a sheet with what lies under it.

Pi(x) = sum of W(I1) t dA of all sheets  +  sum of 1/2 K A min(g, 0)^2 of their contacts  -  sum p_i V_i(x)

A vertex x of the upper sheet meets the tangent plane of the lower surface at the vertex y that lay under it at rest:

    gap g = n . (x - y),   n = N / |N|,   N = a x b

with a and b the differences of the lower surface's neighbouring vertices along both mesh lines, so that the plane turns
and moves with that surface. Sheets may slide along it freely; sliding by s misses the surface by about s^2 / (2 R),
R its radius of curvature. Where g < 0 the sheets press on each other with K A g, A the vertex's share of the area.
Derivatives by d = x - y, a and b, with w = (d - g n) / |N| and P = (1 - n n^T) / |N|:

    g_d = n,   g_a = b x w,   g_b = w x a
    g_dN = P,   g_NN = -(g P + n w^T + w n^T) / |N|,   and a . (b x w) gives g_ab one more term, -[w]x

A vertex that a Newton step took far below its plane is pushed with a force that no equilibrium has; times the curvature
of g it would make the Hessian indefinite, and the next step useless. There the curvature is left out.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.layered.grid import faces_of_grid, finer_lines
from softform_core.bodies.layered.model import Layers
from softform_core.bodies.membrane.energy import chamber_volumes
from softform_core.bodies.membrane.equilibrium import (
    RESIDUAL_TOLERANCE,
    MembraneProblem,
    gradient_and_values,
    load_size,
    total_potential,
)
from softform_core.geometry.rigid import hat
from softform_core.simulation.hessian import SparseHessian
from softform_core.simulation.pardiso import sparse_factoriser
from softform_core.simulation.simulated_body import Surface, equilibrium_unknowns

_OF_NODES = np.kron(np.eye(3), np.kron([[1.0, -1.0]], np.eye(3)))
"""(9, 18): d, a and b, each a node less the next one."""


def contact_gaps(positions: Array, contacts: NDArray[np.int32]) -> Array:
    """Gap (C,) m of each contact; below 0 by how much sheets press into each other.

    Args:
        positions: (V, 3) m.
        contacts: (C, 6) upper vertex, lower vertex, and the lower one's neighbours: after and before it along each of
            two lines, whose cross product points outwards.
    """
    d, a, b = _differences(positions, contacts)
    normal = np.cross(a, b)
    return np.asarray((normal * d).sum(axis=1) / np.linalg.norm(normal, axis=1))


def add_contacts(
    positions: Array,
    contacts: NDArray[np.int32],
    areas: Array,
    stiffness: float,
    highest: float,
    slots: NDArray[np.int32],
    gradient: Array,
    hessian: Array,
) -> None:
    """Add the derivatives of the contacts' energy to `gradient` (V, 3) and `hessian`.

    Args:
        positions: (V, 3) m.
        contacts: As `contact_gaps`.
        areas: (C,) A, m^2.
        stiffness: K, Pa/m.
        highest: Pressure above which g'' is left out of the Hessian, Pa.
        slots: (C, 18, 18) place of each entry in `hessian`, -1 for a fixed one.
        gradient: (V, 3) N.
        hessian: Values of the sparse Hessian, N/m.
    """
    pressing = np.flatnonzero(contact_gaps(positions, contacts) < 0.0)
    contacts, modulus = contacts[pressing], stiffness * areas[pressing]
    d, a, b = _differences(positions, contacts)
    normal = np.cross(a, b)
    size = np.linalg.norm(normal, axis=1)[:, None]
    normal /= size
    gap = (normal * d).sum(axis=1)
    aside = (d - gap[:, None] * normal) / size
    first = np.concatenate([normal, np.cross(b, aside), np.cross(aside, a)], axis=1)  # (C, 9) by d, a, b
    force = modulus * gap
    np.add.at(gradient, contacts, ((force[:, None] * first) @ _OF_NODES).reshape(-1, 6, 3))
    share = np.where(-stiffness * gap < highest, force, 0.0)
    second = modulus[:, None, None] * first[:, :, None] * first[:, None]
    second += share[:, None, None] * _second_derivatives(normal, size, gap, aside, a, b)
    slots = slots[pressing]
    free = slots >= 0
    hessian += np.bincount(slots[free], (_OF_NODES.T @ second @ _OF_NODES)[free], minlength=hessian.size)


def _differences(positions: Array, contacts: NDArray[np.int32]) -> list[Array]:
    """d, a, b (C, 3)."""
    return [positions[contacts[:, i]] - positions[contacts[:, i + 1]] for i in (0, 2, 4)]


def _second_derivatives(normal: Array, size: Array, gap: Array, aside: Array, a: Array, b: Array) -> Array:
    """Of the gap by the coordinates of d, a and b, (C, 9, 9)."""
    size, gap = size[:, :, None], gap[:, None, None]
    across = (np.eye(3) - normal[:, :, None] * normal[:, None]) / size
    turned = normal[:, :, None] * aside[:, None]
    turned = -(gap * across + turned + turned.swapaxes(1, 2)) / size
    by_a, by_b = -hat(b), hat(a)  # of N
    upper = np.zeros((len(a), 9, 9))  # without half of the blocks on the diagonal
    upper[:, :3, 3:6], upper[:, :3, 6:] = across @ by_a, across @ by_b
    upper[:, 3:6, 3:6] = 0.5 * by_a.swapaxes(1, 2) @ turned @ by_a
    upper[:, 3:6, 6:] = by_a.swapaxes(1, 2) @ turned @ by_b - hat(aside)
    upper[:, 6:, 6:] = 0.5 * by_b.swapaxes(1, 2) @ turned @ by_b
    return upper + upper.swapaxes(1, 2)


_MAX_STEP = 0.05  # largest move of a vertex in one Newton step, of the body's size
_PRESSED = 1e-5  # m by which each sheet presses on the next at the start
_HIGH = 2e4  # Pa with which sheets press on each other in no equilibrium, but for the chambers' pressure


class LayeredProblem(MembraneProblem):
    """`SimulatedBody` of layers; the unknowns are the places of all free vertices, m, its points lie on the skin.

    Args:
        layers: Result of `build_layers`.
        parts: Into which each cell of the skin is divided along both directions, with points on splines through its
            vertices. With 1 the points are the vertices themselves.
    """

    def __init__(self, layers: Layers, parts: int = 1) -> None:
        super().__init__(layers)
        self.layers = layers
        resting = layers.rest_vertices[layers.skin].reshape(*layers.lines, 3)
        self._lines = finer_lines(resting, layers.is_closed, parts)
        around, upwards = self._lines
        self.faces = faces_of_grid((len(around), len(upwards)), layers.is_closed)
        self.is_slack = False
        self.largest_step = _MAX_STEP * layers.extent
        self._factoriser = sparse_factoriser(layers.pattern.indices, layers.pattern.indptr)
        self._prestress = float(np.linalg.norm(gradient_and_values(layers, layers.rest_vertices, self.unloaded)[0]))

    @cached_property
    def rest(self) -> Array:
        """Unknowns (m,) without pressure: the stretched sheets lie on the core, or span its hollows."""
        return equilibrium_unknowns(self, self.unloaded[None])[0]

    def _on_surface(self, values: Array) -> Array:
        skin = values[:, self.layers.skin]
        around, upwards = self._lines
        grid = skin.reshape(len(skin), *self.layers.lines, -1)
        finer = np.einsum("au,nuvk,bv->nabk", around, grid, upwards, optimize=True)
        return np.asarray(finer.reshape(len(skin), -1, *skin.shape[2:]))

    def surfaces(self, unknowns: Array) -> list[Surface]:
        """Core and layers for unknowns (m,), as `BodyOfSurfaces`; glued layers coincide."""
        vertices = self.nodes(unknowns)
        return [
            Surface(name, vertices[nodes], self.layers.skin_faces) for name, nodes in self.layers.nodes_of_layer.items()
        ]

    def tolerance(self, actuators: Array) -> Array:
        """Forces (1,) N below which the sheets are in balance."""
        forces = self._prestress + load_size(self.layers, actuators[0])
        return np.maximum(super().tolerance(actuators), RESIDUAL_TOLERANCE * forces)

    def start(self, actuators: Array) -> Array:
        """A dome over each chamber, those of the middle layer on top of those under them, the cover upon them.

        All sheets press on each other a little: what should lift off does so in the next steps, while a cover that
        barely touched would first shrink deep into the core.
        """
        rise = self.layers.rise * np.cbrt(np.maximum(self.layers.checked_pressures(actuators[0]), 0.0))
        height = self.layers.domes @ rise - _PRESSED * self.layers.level
        return self.unknowns(self.layers.rest_vertices + height[:, None] * self.layers.normals)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        vertices = self.nodes(unknowns[0])
        pressed = np.minimum(contact_gaps(vertices, self.layers.contacts), 0.0)
        contact = 0.5 * self.layers.contact_stiffness * float(self.layers.contact_areas @ pressed**2)
        return np.array([total_potential(self.layers, vertices, actuators[0]) + contact])

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, SparseHessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        layers, vertices = self.layers, self.nodes(unknowns[0])
        gradient, values = gradient_and_values(layers, vertices, actuators[0])
        contact = np.zeros_like(vertices)
        add_contacts(
            vertices, layers.contacts, layers.contact_areas, layers.contact_stiffness,
            _HIGH + 2.0 * float(np.abs(actuators[0]).max()), layers.contact_slots, contact, values,
        )  # fmt: skip
        gradient += contact.ravel()[self._order]
        return gradient[None], SparseHessian(layers.pattern.matrix(values), self._factoriser)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """-dV/dx, (1, m, k) m^2."""
        by_vertices = self.volumes(self.nodes(unknowns[0]))[1]
        return -by_vertices.reshape(self.layers.chambers, -1)[:, self._order].T[None]

    def volumes(self, vertices: Array) -> tuple[Array, Array]:
        """Volume (k,) m^3 of each chamber, but for a constant, and its gradient (k, V, 3) m^2."""
        layers = self.layers
        volumes, gradients = np.zeros(layers.chambers), np.zeros((layers.chambers, *vertices.shape))
        for sign, chamber in ((1.0, layers.chamber_of_element), (-1.0, layers.chamber_above)):
            ours = chamber < layers.chambers
            chamber_volumes(
                vertices, layers.elements[ours], layers.shapes, layers.gradients[ours], sign * layers.areas[ours],
                chamber[ours], volumes, gradients,
            )  # fmt: skip
        return volumes, gradients
