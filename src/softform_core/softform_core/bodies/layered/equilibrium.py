"""Layers as an equilibrium problem.

Pi(x) = sum of W(I1) t dA of all sheets  +  sum of 1/2 K A min(g, 0)^2 of their contacts  -  sum p_i V_i(x)
"""

from functools import cached_property

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.layered.contact import add_contacts, contact_gaps
from softform_core.bodies.layered.grid import faces_of_grid, finer_lines
from softform_core.bodies.layered.model import Layers
from softform_core.bodies.membrane.energy import chamber_volumes
from softform_core.bodies.membrane.equilibrium import RESIDUAL_TOLERANCE, MembraneProblem
from softform_core.bodies.membrane.potential import gradient_and_values, load_size, potential_gradient, total_potential
from softform_core.simulation.hessian import SparseHessian
from softform_core.simulation.pardiso import sparse_factoriser
from softform_core.simulation.simulated_body import Surface, equilibrium_unknowns

_MAX_STEP = 0.05  # largest move of a vertex in one Newton step, of the body's size
_PRESSED = 1e-5  # m by which each sheet presses on the next at the start
_HIGH = 2e4  # Pa with which sheets press on each other in no equilibrium, but for the chambers' pressure
_NONE = np.zeros(0)


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
        self._prestress = float(np.linalg.norm(potential_gradient(layers, layers.rest_vertices, self.unloaded)))

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

    def gaps(self, unknowns: Array) -> Array:
        """Gap (C,) m of each contact; below 0 by how much sheets press into each other."""
        return np.asarray(contact_gaps(self.nodes(unknowns), self.layers.contacts))

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

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """Gradient (1, m) N without the Hessian."""
        return self._gradient(unknowns, actuators, _NONE)[None]

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, SparseHessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        values = self.layers.constant.copy()
        gradient = self._gradient(unknowns, actuators, values)
        return gradient[None], SparseHessian(self.layers.pattern.matrix(values), self._factoriser)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """-dV/dx, (1, m, k) m^2."""
        by_vertices = self.volumes(self.nodes(unknowns[0]))[1]
        return -by_vertices.reshape(self.layers.chambers, -1)[:, self._order].T[None]

    def volumes(self, vertices: Array) -> tuple[Array, Array]:
        """Volume (k,) m^3 of each chamber above that at rest, and its gradient (k, V, 3) m^2."""
        found = self._volumes(vertices)
        return found[0] - self._rest_volumes, found[1]

    @cached_property
    def _rest_volumes(self) -> Array:
        return self._volumes(self.layers.rest_vertices)[0]

    def _volumes(self, vertices: Array) -> tuple[Array, Array]:
        layers = self.layers
        volumes, gradients = np.zeros(layers.chambers), np.zeros((layers.chambers, *vertices.shape))
        for sign, chamber in ((1.0, layers.chamber_of_element), (-1.0, layers.chamber_above)):
            ours = chamber < layers.chambers
            chamber_volumes(
                vertices, layers.elements[ours], layers.shapes, layers.gradients[ours], sign * layers.areas[ours],
                chamber[ours], volumes, gradients,
            )  # fmt: skip
        return volumes, gradients

    def _gradient(self, unknowns: Array, actuators: Array, values: Array) -> Array:
        """Gradient (m,) N, and the Hessian added to `values`."""
        layers, vertices = self.layers, self.nodes(unknowns[0])
        gradient, _ = gradient_and_values(layers, vertices, actuators[0], values)
        contact = np.zeros_like(vertices)
        add_contacts(
            vertices, layers.contacts, layers.contact_areas, layers.contact_stiffness,
            _HIGH + 2.0 * float(np.abs(actuators[0]).max()), layers.contact_slots, contact, values,
        )  # fmt: skip
        return gradient + contact.ravel()[self._order]
