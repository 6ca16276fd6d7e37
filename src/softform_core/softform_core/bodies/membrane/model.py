"""The membrane: mesh, chambers, thickness, material, wall tethers and clamp, ready for the energy kernels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from skfem import Basis, ElementQuad1, ElementTriP1, Mesh, MeshQuad

from softform_core.arrays import Array
from softform_core.bodies.nodal import HessianPattern, hessian_pattern, minimum_degree
from softform_core.errors import SoftformError
from softform_core.robots.description import Material
from softform_core.simulation.materials import law_and_coefficients


@dataclass(frozen=True, eq=False)
class Membrane:
    """A meshed membrane over k chambers; SI units.

    Attributes:
        rest_vertices: (V, 3) m, in z = 0.
        faces: (F, 3) triangles over the vertices, normals towards +z at rest.
        elements: (E, n) vertices of each finite element (n = 3 or 4).
        chamber_of_element: (E,) index of the chamber below each element.
        chambers: Number k of chambers.
        shapes: (n, q) shape functions at the quadrature points.
        gradients: (E, q, n, 2) their derivatives by the rest coordinates, 1/m.
        areas: (E, q) rest area of each quadrature point, m^2.
        thickness: (E,) m.
        law: Number of the material law.
        coefficients: Coefficients of the material.
        springs: (V, V) N/m, elastic tethers of the chamber walls and of an elastic clamp (each axis alike).
        weight: (V, 3) N, dead load (gravity).
        fixed: (V,) whether a vertex is held by the rim.
    """

    rest_vertices: Array
    faces: NDArray[np.int32]
    elements: NDArray[np.int32]
    chamber_of_element: NDArray[np.int32]
    chambers: int
    shapes: Array
    gradients: Array
    areas: Array
    thickness: Array
    law: int
    coefficients: Array
    springs: csr_matrix
    weight: Array
    fixed: NDArray[np.bool_]
    material: Material = field(repr=False)

    @cached_property
    def pattern(self) -> HessianPattern:
        """Sparsity of the Hessian, ordered once for this mesh."""
        return hessian_pattern([self.elements], self.fixed, minimum_degree)

    @cached_property
    def slots(self) -> NDArray[np.int32]:
        """Place of each entry of the elements' Hessians in the sparse one, (E, 3n, 3n); -1 where a vertex is fixed."""
        return self.pattern.slots(self.elements)

    @cached_property
    def constant(self) -> Array:
        """What never changes of the sparse Hessian's stored entries, N/m: the springs of walls and clamp."""
        return self.pattern.alike(self.springs)

    @cached_property
    def laplacian(self) -> csr_matrix:
        """Stiffness matrix of the scalar Laplacian on the rest mesh, (V, V)."""
        blocks = np.einsum("eq,eqai,eqbi->eab", self.areas, self.gradients, self.gradients)
        count = self.elements.shape[1]
        rows, columns = np.repeat(self.elements, count, axis=1).ravel(), np.tile(self.elements, (1, count)).ravel()
        size = len(self.rest_vertices)
        return csr_matrix((blocks.ravel(), (rows, columns)), shape=(size, size))

    @property
    def extent(self) -> float:
        """Longest side of the membrane at rest, m."""
        return float(np.ptp(self.rest_vertices, axis=0).max())

    def pressure_of_element(self, pressures_pa: ArrayLike) -> Array:
        """Pressure under each element, (E,) Pa.

        Raises:
            SoftformError: If `pressures_pa` is not (k,) finite numbers.
        """
        return np.ascontiguousarray(self.checked_pressures(pressures_pa)[self.chamber_of_element])

    def checked_pressures(self, pressures_pa: ArrayLike) -> Array:
        """The pressures (k,) Pa as an array.

        Raises:
            SoftformError: If they are not (k,) finite numbers.
        """
        pressures = np.asarray(pressures_pa, dtype=np.float64)
        if pressures.shape != (self.chambers,):
            raise SoftformError(
                f"The body has {self.chambers} chambers, got pressures of shape {pressures.shape}.",
                "Give one pressure in Pa for each chamber.",
            )
        if not np.isfinite(pressures).all():
            raise SoftformError(
                f"Pressure of chamber {int(np.flatnonzero(~np.isfinite(pressures))[0]) + 1} is not a finite number.",
                "Give pressures in Pa.",
            )
        return pressures


def membrane_on_mesh(
    mesh: Mesh,
    chamber_of_element: NDArray[np.integer],
    thickness: float | Array,
    material: Material,
    *,
    springs: csr_matrix | None = None,
    fixed: NDArray[np.bool_] | None = None,
    prestretch: float = 1.0,
    density: float = 0.0,
    gravity: Sequence[float] = (0.0, 0.0, 0.0),
) -> Membrane:
    """A membrane on any planar scikit-fem mesh of triangles or quadrilaterals.

    Args:
        mesh: Rest shape in the plane, m.
        chamber_of_element: (E,) chamber below each element, 0 … k - 1.
        thickness: m, positive; one number, or (E,) numbers.
        material: Hyperelastic law.
        springs: (V, V) N/m, tethers to the rest position; none by default.
        fixed: (V,) vertices held in place; the mesh boundary by default.
        prestretch: Stretch, alike in x and y, at which the flat sheet is mounted; 1 is slack.
        density: kg/m^3, for gravity.
        gravity: (3,) m/s^2.

    Raises:
        SoftformError: If an argument does not fit the mesh or is not positive where it must be.
    """
    law, coefficients = law_and_coefficients(material)
    quadrilateral = isinstance(mesh, MeshQuad)
    order = 3 if quadrilateral else 2  # exact for volumes; all weights of these rules are positive
    basis = Basis(mesh, ElementQuad1() if quadrilateral else ElementTriP1(), intorder=order)
    elements = _upwards(mesh.p, basis.element_dofs.T)
    if not np.array_equal(elements, basis.element_dofs.T):
        mesh = type(mesh)(mesh.p, np.ascontiguousarray(elements.T), sort_t=False)
        basis = Basis(mesh, basis.elem, intorder=order)
    vertices = mesh.p.shape[1]
    per_element = np.array(np.broadcast_to(thickness, len(elements)))  # writable: kernels are compiled for either
    # The mesh is the mounted sheet; derivatives and areas are those of the sheet before it was stretched.
    areas = np.ascontiguousarray(basis.dx) / prestretch**2
    shapes = np.stack([np.broadcast_to(np.asarray(shape[0]), areas.shape)[0] for shape in basis.basis])
    gradients = np.stack([np.broadcast_to(s[0].grad, (2, *areas.shape)) for s in basis.basis]).transpose(2, 3, 0, 1)
    gradients = prestretch * gradients
    weight = np.zeros((vertices, 3))
    mass = density * np.einsum("eq,nq,e->en", areas, shapes, per_element)
    np.add.at(weight, elements, mass[:, :, None] * np.asarray(gravity, dtype=np.float64))
    if fixed is None:
        fixed = np.zeros(vertices, dtype=bool)
        fixed[mesh.boundary_nodes()] = True
    return Membrane(
        rest_vertices=np.ascontiguousarray(np.column_stack([mesh.p.T, np.zeros(vertices)])),
        faces=triangles_of(elements),
        elements=np.ascontiguousarray(elements, dtype=np.int32),
        chamber_of_element=np.ascontiguousarray(chamber_of_element, dtype=np.int32),
        chambers=int(np.max(chamber_of_element)) + 1,
        shapes=np.ascontiguousarray(shapes),
        gradients=np.ascontiguousarray(gradients),
        areas=areas,
        thickness=per_element,
        law=law,
        coefficients=coefficients,
        springs=csr_matrix((vertices, vertices)) if springs is None else csr_matrix(springs),
        weight=weight,
        fixed=fixed,
        material=material,
    )


def _upwards(points: Array, elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """Elements with their vertices counter-clockwise, so that normals point to +z (scikit-fem does not orient)."""
    corner, left, right = points[:, elements[:, 0]], points[:, elements[:, 1]], points[:, elements[:, -1]]
    turn = (left - corner)[0] * (right - corner)[1] - (left - corner)[1] * (right - corner)[0]
    oriented = elements.copy()
    oriented[turn < 0.0] = np.roll(elements[turn < 0.0][:, ::-1], 1, axis=1)
    return oriented


def triangles_of(elements: NDArray[np.integer]) -> NDArray[np.int32]:
    """Triangles (F, 3) of elements (E, 3), or of quadrilaterals (E, 4) cut in halves."""
    if elements.shape[1] == 3:
        return np.ascontiguousarray(elements, dtype=np.int32)
    return np.concatenate([elements[:, [0, 1, 2]], elements[:, [0, 2, 3]]]).astype(np.int32)
