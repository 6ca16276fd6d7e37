"""The body as linear tetrahedra that turn with the material: a shape in milliseconds, held by grips alone.

The first equilibrium of a body costs a factorisation for each step of Newton's method; where the grips then move a
little at a time, the last factor serves for the next shape, too (paper 003's simulation takes 1.9 s a step).

Per element of rest volume V, with F = dx/dX (3, 3), its rotation R and stretch S = R^T F of the polar decomposition,
Lame's mu and lambda, and g_a = dN_a/dX:

    energy      V [mu |F - R|^2 + lambda / 2 (tr S - 3)^2]
    gradient    V P g_a,   P = 2 mu (F - R) + lambda (tr S - 3) R
    Hessian     V [2 mu (g_a . g_b) delta_ij + lambda (R g_a)_i (R g_b)_j
                   - (2 mu - lambda (tr S - 3)) b_ai . G^-1 b_bj]

with b_ai = g_a x r_i, r_i row i of R, and G = (tr S) 1 - S: as F moves by dF, R turns by G^-1 axl(R^T dF - dF^T R). At
small strain it is linear elasticity; unlike that, it takes any rotation. The Cauchy stress, turned back, is
2 mu (S - 1) + lambda (tr S - 3) 1, of which von Mises' is sqrt(3/2) times the norm of the deviator (paper 003, Eq. 9).
"""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.bodies.freeform.description import MeshedBody
from softform_core.bodies.loads.grip import Grip
from softform_core.bodies.loads.load import Gravity, Load, Loads
from softform_core.bodies.loads.on_mesh import loads_on_mesh
from softform_core.bodies.nodal import NodalProblem, hessian_pattern, nested_dissection
from softform_core.errors import SoftformError
from softform_core.simulation.hessian import Hessian, SparseHessian
from softform_core.simulation.materials import shear_modulus

_TOLERANCE = 1e-7  # of the forces of the loads
_ROUNDING = 1e-13  # of the shear modulus times length squared
_MAX_STEP = 0.27  # of the length, a node's in one Newton step
_SIDES = np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)])
"""Corners of a tetrahedron's sides, outwards."""


class CorotationalBody(NodalProblem):
    """`SimulatedBody` of a body that grips hold; its unknowns are the places of its nodes, m.

    Args:
        body: The description; it has grips, and neither chambers nor cables.
        points: (N, 3) m, nodes of its mesh; those that are no corner of a tetrahedron are left out.
        elements: (E, 4 or more) tetrahedra over them, corners first.
        is_rigid: (E,) which of them are rigid.

    Attributes:
        rest_nodes: (V, 3) m.
        tetrahedra: (E, 4) its elements.
        volumes: (E,) m^3.
        volume_at_nodes: (V,) m^3 that each node stands for.
        modulus: Shear modulus, Pa.
        poisson_ratio: At small strain.
        weight: (3,) N/m^3.
        held: Nodes that each grip holds.
        centres: What each grip turns about, (3,) m.
        faces: (F, 3) of its skin, over the points.
        skin: (P,) nodes that are its points.

    Raises:
        SoftformError: If it cannot be meshed, or a grip holds nothing.
    """

    def __init__(
        self, body: MeshedBody, points: Array, elements: NDArray[np.integer], is_rigid: NDArray[np.bool_]
    ) -> None:
        used, corners = np.unique(elements[:, :4], return_inverse=True)
        nodes, elements = points[used], corners.reshape(-1, 4).astype(np.int64)
        pattern = hessian_pattern([elements], np.zeros(len(nodes), dtype=bool), nested_dissection)
        super().__init__(nodes, pattern, float(np.ptp(nodes, axis=0).max()))
        self.rest_nodes, self.tetrahedra, self._pattern = nodes, elements, pattern
        self._slots = pattern.slots(elements)
        edges = nodes[elements[:, 1:]] - nodes[elements[:, :1]]
        self.volumes = np.linalg.det(edges) / 6.0
        if not (self.volumes > 0.0).all():
            raise SoftformError("The mesh has elements without volume.", "Choose another mesh_size.")
        slopes = np.linalg.inv(edges)  # (E, axis, node)
        self._slopes = np.concatenate([-slopes.sum(axis=2, keepdims=True), slopes], axis=2).swapaxes(1, 2).copy()
        modulus, nu = shear_modulus(body.material), body.poisson_ratio
        share = np.where(is_rigid, body.rigid_stiffness, 1.0)
        self.modulus, self.poisson_ratio = modulus, nu
        self._mu, self._lambda = modulus * share, modulus * share * 2.0 * nu / (1.0 - 2.0 * nu)
        self.weight = body.density * np.asarray(body.gravity, dtype=np.float64)
        self.volume_at_nodes = np.zeros(len(nodes))
        np.add.at(self.volume_at_nodes, elements, self.volumes[:, None] / 4.0)
        grips = loads_on_mesh(body.loads, nodes, elements, modulus, float(self.volumes.sum()))
        self.held = [grip.held for grip in grips if isinstance(grip, Grip)]
        self.centres = [grip.centre for grip in grips if isinstance(grip, Grip)]
        self._grips, self._loads = grips, self._loads_with(grips)
        self.unloaded = np.zeros(self._loads.inputs)
        self.largest_step = _MAX_STEP * self._extent
        self.rounding = _ROUNDING * modulus * self._extent**3
        sides = elements[:, _SIDES].reshape(-1, 3)
        _, first, times = np.unique(np.sort(sides, axis=1), axis=0, return_index=True, return_counts=True)
        self.skin, over = np.unique(sides[first[times == 1]], return_inverse=True)
        self.faces = over.reshape(-1, 3).astype(np.int32)

    def _on_surface(self, values: Array) -> Array:
        return values[:, self.skin]

    def tolerance(self, actuators: Array) -> Array:
        """Forces (1,) N below which the body is in balance."""
        forces = _TOLERANCE * self._loads.size(actuators[0])
        return np.array([max(forces, _ROUNDING * self.modulus * self._extent**2)])

    def start(self, actuators: Array) -> Array:
        """A shape that the grips lead."""
        return self.unknowns(self._loads.start(self.rest_nodes, actuators[0], np.zeros(len(self.rest_nodes))))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J; infinite where an element is inside out."""
        nodes = self.nodes(unknowns[0])
        own = _energy(nodes, self.tetrahedra, self._slopes, self.volumes, self._mu, self._lambda)
        return np.array([own + self._loads.energy(nodes, actuators[0])])

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """Gradient (1, m) N alone, in a fifth of the time of both derivatives; NaN where an element is inside out."""
        nodes = self.nodes(unknowns[0])
        found = np.zeros_like(nodes)
        _add_gradient(nodes, self.tetrahedra, self._slopes, self.volumes, self._mu, self._lambda, found)
        self._loads.add_gradient(nodes, actuators[0], found)
        return found.reshape(-1)[self._order][None]

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, Hessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        nodes = self.nodes(unknowns[0])
        stored = self._loads.constant.copy()
        _add_hessian(nodes, self.tetrahedra, self._slopes, self.volumes, self._mu, self._lambda, self._slots, stored)
        return self.gradient(unknowns, actuators), SparseHessian(self._pattern.matrix(stored), None)

    def _loads_with(self, grips: Sequence[Load]) -> Loads:
        return Loads([*grips, Gravity(self.volume_at_nodes[:, None] * self.weight, self.rest_nodes)], self._pattern)

    def of_material(self, share: Array, poisson_ratio: float, weight: Array) -> Self:
        """The same mesh and grips with another material and weight.

        Args:
            share: (E,) of each element, its modulus over that of this body.
            poisson_ratio: Of all.
            weight: (3,) N/m^3.
        """
        changed = copy(self)
        changed.poisson_ratio, changed.weight = poisson_ratio, np.asarray(weight, dtype=np.float64)
        changed._mu = self._mu * share
        changed._lambda = changed._mu * (2.0 * poisson_ratio / (1.0 - 2.0 * poisson_ratio))
        changed._loads = changed._loads_with(self._grips)
        return changed

    def element_forces(self, unknowns: Array) -> tuple[Array, Array]:
        """What each element adds to the gradient at its corners, (E, 4, 3) N: by mu, and by lambda.

        Both are as large as its moduli, so that they say how the gradient changes with these.
        """
        nodes, none = self.nodes(unknowns), np.zeros(len(self.volumes))
        found = np.empty((2, *self.tetrahedra.shape, 3))
        for forces, mu, la in ((found[0], self._mu, none), (found[1], none, self._lambda)):
            _element_forces(nodes, self.tetrahedra, self._slopes, self.volumes, mu, la, forces)
        return found[0], found[1]

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the actuator values, (1, m, k)."""
        by_values = self._loads.by_values(self.nodes(unknowns[0]), actuators[0])
        return by_values.reshape(len(by_values), -1)[:, self._order].T[None]

    def weights_of(self, points: Array) -> csr_matrix:
        """Weights (P, V) in points (P, 3) m of the material at rest: each is the node next to it."""
        nearest = cKDTree(self.rest_nodes).query(points)[1]
        entries = np.ones(len(points)), (np.arange(len(points)), nearest)
        return csr_matrix(entries, (len(points), len(self.rest_nodes)))

    def wrenches(self, unknowns: Array, values: Array) -> list[Array]:
        """Force, N, and torque, N m, of each gripper on the body at unknowns (m,), (6,)."""
        return self._loads.wrenches(self.nodes(unknowns), values)

    def stresses(self, unknowns: Array) -> Array:
        """Von Mises stress (E,) Pa of each element at unknowns (m,) (paper 003, Eq. 9)."""
        found = np.empty(len(self.tetrahedra))
        _stresses(self.nodes(unknowns), self.tetrahedra, self._slopes, self._mu, self._lambda, found)
        return found

    @cached_property
    def mean_at_nodes(self) -> csr_matrix:
        """Takes values of the elements (E,) to the nodes (V,), weighted by volume."""
        rows, columns = self.tetrahedra.ravel(), np.repeat(np.arange(len(self.tetrahedra)), 4)
        weights = csr_matrix((self.volumes[columns], (rows, columns)), shape=(len(self.rest_nodes), len(self.volumes)))
        total = np.asarray(weights.sum(axis=1)).ravel()
        return csr_matrix(weights.multiply(1.0 / total[:, None]))


@njit(cache=True, nogil=True)
def _deformation(nodes, tetrahedra, slopes, e, f):  # type: ignore[no-untyped-def]  # numba infers the types
    for i in range(3):
        for j in range(3):
            total = 0.0
            for a in range(4):
                total += nodes[tetrahedra[e, a], i] * slopes[e, a, j]
            f[i, j] = total


@njit(cache=True, nogil=True)
def _cofactors(m, c):  # type: ignore[no-untyped-def]
    """Put the cofactors of m into c, and return its determinant."""
    for i in range(3):
        p, q = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            r, s = (j + 1) % 3, (j + 2) % 3
            c[i, j] = m[p, r] * m[q, s] - m[p, s] * m[q, r]
    return m[0, 0] * c[0, 0] + m[0, 1] * c[0, 1] + m[0, 2] * c[0, 2]


@njit(cache=True, nogil=True)
def _polar(f, r, c):  # type: ignore[no-untyped-def]
    """Put the rotation of f into r by Newton's method, r <- (r + r^-T) / 2; return false if f is inside out."""
    r[:, :] = f
    if not _cofactors(f, c) > 0.0:
        return False
    for _ in range(60):
        determinant = _cofactors(r, c)
        scale = determinant ** (-1.0 / 3.0)  # brings all stretches about 1, from where it converges at once
        change = 0.0
        for i in range(3):
            for j in range(3):
                value = 0.5 * (scale * r[i, j] + c[i, j] / (determinant * scale))
                change = max(change, abs(value - r[i, j]))
                r[i, j] = value
        if change < 1e-14:
            return True
    return change < 1e-9


@njit(cache=True, nogil=True)
def _trace(f, r):  # type: ignore[no-untyped-def]
    """Of S = R^T F."""
    total = 0.0
    for i in range(3):
        for j in range(3):
            total += r[i, j] * f[i, j]
    return total


@njit(cache=True, nogil=True)
def _energy(nodes, tetrahedra, slopes, volumes, mu, la):  # type: ignore[no-untyped-def]
    f, r, c, total = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), 0.0
    for e in range(len(tetrahedra)):
        _deformation(nodes, tetrahedra, slopes, e, f)
        if not _polar(f, r, c):
            return np.inf
        apart = 0.0
        for i in range(3):
            for j in range(3):
                apart += (f[i, j] - r[i, j]) ** 2
        total += volumes[e] * (mu[e] * apart + 0.5 * la[e] * (_trace(f, r) - 3.0) ** 2)
    return total


@njit(cache=True, nogil=True)
def _element_forces(nodes, tetrahedra, slopes, volumes, mu, la, forces):  # type: ignore[no-untyped-def]
    f, r, c = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for e in range(len(tetrahedra)):
        _deformation(nodes, tetrahedra, slopes, e, f)
        if not _polar(f, r, c):
            forces[:] = np.nan
            return
        bulk = la[e] * (_trace(f, r) - 3.0)
        for a in range(4):
            for i in range(3):
                total = 0.0
                for j in range(3):
                    total += (2.0 * mu[e] * (f[i, j] - r[i, j]) + bulk * r[i, j]) * slopes[e, a, j]
                forces[e, a, i] = volumes[e] * total


@njit(cache=True, nogil=True)
def _add_gradient(nodes, tetrahedra, slopes, volumes, mu, la, gradient):  # type: ignore[no-untyped-def]
    forces = np.empty((len(tetrahedra), 4, 3))
    _element_forces(nodes, tetrahedra, slopes, volumes, mu, la, forces)
    for e in range(len(tetrahedra)):
        for a in range(4):
            for i in range(3):
                gradient[tetrahedra[e, a], i] += forces[e, a, i]


@njit(cache=True, nogil=True)
def _add_hessian(nodes, tetrahedra, slopes, volumes, mu, la, slots, stored):  # type: ignore[no-untyped-def]
    f, r, c = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    s, inverse, turned, b, solved = np.empty((3, 3)), np.empty((3, 3)), np.empty(12), np.empty((12, 3)), np.empty(3)
    for e in range(len(tetrahedra)):
        _deformation(nodes, tetrahedra, slopes, e, f)
        if not _polar(f, r, c):
            stored[:] = np.nan
            return
        trace = _trace(f, r)
        for i in range(3):
            for j in range(3):
                s[i, j] = -(r[0, i] * f[0, j] + r[1, i] * f[1, j] + r[2, i] * f[2, j])
            s[i, i] += trace
        determinant = _cofactors(s, c)
        for i in range(3):
            for j in range(3):
                inverse[i, j] = c[j, i] / determinant
        turning = 2.0 * mu[e] - la[e] * (trace - 3.0)
        for a in range(4):
            for i in range(3):
                k = 3 * a + i
                turned[k] = r[i, 0] * slopes[e, a, 0] + r[i, 1] * slopes[e, a, 1] + r[i, 2] * slopes[e, a, 2]
                b[k, 0] = slopes[e, a, 1] * r[i, 2] - slopes[e, a, 2] * r[i, 1]
                b[k, 1] = slopes[e, a, 2] * r[i, 0] - slopes[e, a, 0] * r[i, 2]
                b[k, 2] = slopes[e, a, 0] * r[i, 1] - slopes[e, a, 1] * r[i, 0]
        for k in range(12):
            for j in range(3):
                solved[j] = turning * (b[k, 0] * inverse[0, j] + b[k, 1] * inverse[1, j] + b[k, 2] * inverse[2, j])
            for m in range(12):
                value = la[e] * turned[k] * turned[m]
                value -= solved[0] * b[m, 0] + solved[1] * b[m, 1] + solved[2] * b[m, 2]
                if k % 3 == m % 3:
                    one, other = k // 3, m // 3
                    for j in range(3):
                        value += 2.0 * mu[e] * slopes[e, one, j] * slopes[e, other, j]
                stored[slots[e, k, m]] += volumes[e] * value


@njit(cache=True, nogil=True)
def _stresses(nodes, tetrahedra, slopes, mu, la, found):  # type: ignore[no-untyped-def]
    f, r, c, s = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for e in range(len(tetrahedra)):
        _deformation(nodes, tetrahedra, slopes, e, f)
        if not _polar(f, r, c):
            found[e] = np.inf
            continue
        mean = _trace(f, r) / 3.0
        total = 0.0
        for i in range(3):
            for j in range(3):
                s[i, j] = r[0, i] * f[0, j] + r[1, i] * f[1, j] + r[2, i] * f[2, j]
        for i in range(3):
            for j in range(3):
                deviator = 0.5 * (s[i, j] + s[j, i]) - (mean if i == j else 0.0)
                total += deviator * deviator
        found[e] = 2.0 * mu[e] * np.sqrt(1.5 * total)
