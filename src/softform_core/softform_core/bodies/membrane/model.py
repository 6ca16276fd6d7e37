"""The membrane: mesh, chambers, thickness, material, wall tethers and clamp, ready for the energy kernels.

`build_membrane(robot.body)` makes the robot's own model. Every keyword changes one thing, so that a virtual rig can
build another reality of the same robot:

    build_membrane(description, cells=36, element="triangle", material=Material(law="gent", coefficients=[1e5, 30.0]),
                   thickness=lambda x, y: 0.002 + 0.001 * x, wall_stiffness=np.linspace(1e4, 3e4, 9),
                   column_walls=[-0.05, 0.055], row_walls=[-0.053, 0.053], clamp_stiffness=5e4,
                   gravity=(0.0, 0.0, -9.81))

Chambers are numbered row by row: c1 at the least x and the least y, then along x. The membrane lies in z = 0 at rest,
centred on the origin, and bulges towards +z.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from skfem import (
    Basis,
    BilinearForm,
    ElementQuad1,
    ElementTriP1,
    FacetBasis,
    InteriorFacetBasis,
    Mesh,
    MeshQuad,
    MeshTri,
)

from softform_core.arrays import Array
from softform_core.bodies.membrane.description import MembraneBody
from softform_core.bodies.pattern import HessianPattern, hessian_pattern, minimum_degree
from softform_core.errors import SoftformError
from softform_core.robots.description import Material
from softform_core.simulation.materials import law_and_coefficients

Thickness = float | NDArray[np.float64] | Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


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
    thickness: Thickness,
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
        thickness: m; one number, (E,) numbers, or a function of x and y (arrays) at the element centres.
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
    per_element = _thickness_of_element(thickness, mesh)
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
        faces=_triangles(elements),
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


def build_membrane(
    description: MembraneBody,
    *,
    cells: int | None = None,
    element: Literal["quadrilateral", "triangle"] = "quadrilateral",
    material: Material | None = None,
    thickness: Thickness | None = None,
    prestretch: float | None = None,
    wall_stiffness: float | ArrayLike | None = None,
    column_walls: Sequence[float] | None = None,
    row_walls: Sequence[float] | None = None,
    clamp_stiffness: float | None = None,
    gravity: Sequence[float] = (0.0, 0.0, 0.0),
) -> Membrane:
    """The membrane of a description, or another reality of it.

    Args:
        description: `load_robot(...).membrane`.
        cells: Mesh cells a side in place of the description's; they are shared among the chambers so that walls
            always lie on mesh lines.
        element: Bilinear quadrilaterals, or linear triangles (each cell cut in two, diagonals alternating).
        material: Law in place of the description's.
        thickness: m, before the sheet is stretched; a number, (E,) numbers, or a function of x and y arrays (m).
        prestretch: Stretch at which the sheet is mounted, in place of the description's.
        wall_stiffness: N/m^2, tether per metre of inner wall; one number, or (k,) one for each chamber (a wall takes
            the mean of the two chambers that it parts).
        column_walls: (columns - 1,) x of the inner walls between columns, m; evenly spaced by default.
        row_walls: (rows - 1,) y of the inner walls between rows, m.
        clamp_stiffness: N/m^2, tether per metre of outer rim, in place of a fixed rim.
        gravity: (3,) m/s^2; the description's density turns it into a load.

    Raises:
        SoftformError: If an argument does not fit the description.
    """
    cells = description.cells if cells is None else cells
    lines_x, column_of_cell = _mesh_lines(description.width, description.columns, cells, column_walls, "column_walls")
    lines_y, row_of_cell = _mesh_lines(description.length, description.rows, cells, row_walls, "row_walls")
    mesh: Mesh = MeshQuad.init_tensor(lines_x, lines_y)
    if element == "triangle":
        mesh = _cut_cells(mesh, len(lines_x) - 1)
    centre = mesh.p[:, mesh.t].mean(axis=1)
    column = column_of_cell[np.searchsorted(lines_x, centre[0]) - 1]
    row = row_of_cell[np.searchsorted(lines_y, centre[1]) - 1]
    chamber_of_element = row * description.columns + column

    stiffness = description.wall_stiffness if wall_stiffness is None else wall_stiffness
    count = description.rows * description.columns
    per_chamber = np.asarray(stiffness, dtype=np.float64)
    if per_chamber.shape not in ((), (count,)) or not np.isfinite(per_chamber).all() or (per_chamber < 0.0).any():
        raise SoftformError(
            f"wall_stiffness must be one number or {count} numbers >= 0 N/m^2, got {stiffness}.",
            "Give one stiffness for each chamber.",
        )
    springs = _wall_springs(mesh, chamber_of_element, np.broadcast_to(per_chamber, (count,)))
    fixed = None
    if clamp_stiffness is not None:
        if not (np.isfinite(clamp_stiffness) and clamp_stiffness > 0.0):
            raise SoftformError(
                f"clamp_stiffness must be positive, got {clamp_stiffness} N/m^2.", "None fixes the rim."
            )
        rim = mesh.boundary_facets()
        springs = springs + _line_tethers(mesh, rim, np.full(len(rim), clamp_stiffness), boundary=True)
        fixed = np.zeros(mesh.p.shape[1], dtype=bool)
    return membrane_on_mesh(
        mesh,
        chamber_of_element,
        description.thickness if thickness is None else thickness,
        description.material if material is None else material,
        springs=springs,
        fixed=fixed,
        prestretch=description.prestretch if prestretch is None else prestretch,
        density=description.density,
        gravity=gravity,
    )


def _mesh_lines(
    side: float, chambers: int, cells: int, walls: Sequence[float] | None, name: str
) -> tuple[Array, NDArray[np.int64]]:
    """Mesh lines across one side, with the walls among them, and the chamber strip of each cell."""
    if cells < chambers:
        raise SoftformError(f"{cells} mesh cells a side are fewer than {chambers} chambers.", "Give more cells.")
    inner = np.linspace(-side / 2, side / 2, chambers + 1)[1:-1] if walls is None else np.asarray(walls, dtype=float)
    edges = np.concatenate([[-side / 2], inner, [side / 2]])
    if edges.size != chambers + 1 or not (np.diff(edges) > 0.0).all():
        raise SoftformError(
            f"{name} must be {chambers - 1} rising positions within ±{side / 2:g} m, got {walls}.", "Correct the walls."
        )
    cells_of_chamber = np.diff(np.round(np.linspace(0, cells, chambers + 1)).astype(int))
    strips = [np.linspace(a, b, n + 1)[:-1] for a, b, n in zip(edges, edges[1:], cells_of_chamber, strict=False)]
    return np.concatenate([*strips, edges[-1:]]), np.repeat(np.arange(chambers), cells_of_chamber)


def _cut_cells(mesh: MeshQuad, cells_x: int) -> MeshTri:
    """Each quadrilateral in two triangles, diagonals alternating like a chessboard so that no direction is favoured."""
    cell = np.arange(mesh.t.shape[1])
    even = (cell % cells_x + cell // cells_x) % 2 == 0
    a, b, c, d = mesh.t
    one = np.where(even, np.stack([a, b, c]), np.stack([a, b, d]))
    two = np.where(even, np.stack([a, c, d]), np.stack([b, c, d]))
    return MeshTri(mesh.p, np.concatenate([one, two], axis=1), sort_t=False)


def _upwards(points: Array, elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """Elements with their vertices counter-clockwise, so that normals point to +z (scikit-fem does not orient)."""
    corner, left, right = points[:, elements[:, 0]], points[:, elements[:, 1]], points[:, elements[:, -1]]
    turn = (left - corner)[0] * (right - corner)[1] - (left - corner)[1] * (right - corner)[0]
    oriented = elements.copy()
    oriented[turn < 0.0] = np.roll(elements[turn < 0.0][:, ::-1], 1, axis=1)
    return oriented


def _triangles(elements: NDArray[np.int64]) -> NDArray[np.int32]:
    if elements.shape[1] == 3:
        return np.ascontiguousarray(elements, dtype=np.int32)
    return np.concatenate([elements[:, [0, 1, 2]], elements[:, [0, 2, 3]]]).astype(np.int32)


def _thickness_of_element(thickness: Thickness, mesh: Mesh) -> Array:
    centre = mesh.p[:, mesh.t].mean(axis=1)
    values = np.asarray(thickness(centre[0], centre[1]) if callable(thickness) else thickness, dtype=np.float64)
    count = mesh.t.shape[1]
    if values.shape not in ((), (count,)) or not np.isfinite(values).all() or (values <= 0.0).any():
        raise SoftformError(
            f"Thickness must be one positive number or {count} of them (m), got shape {values.shape}.",
            "Give a number, an array over the elements, or a function of x and y.",
        )
    return np.array(np.broadcast_to(values, (count,)))  # one that may be written to: kernels are compiled for either


def _line_tethers(mesh: Mesh, facets: NDArray[np.int64], stiffness: Array, boundary: bool = False) -> csr_matrix:
    """Tethers of mesh lines (f,) of stiffness (f,) N/m^2, (V, V) N/m: energy 1/2 k |u|^2 per length."""
    vertices = mesh.p.shape[1]
    if len(facets) == 0:
        return csr_matrix((vertices, vertices))
    element = ElementQuad1() if isinstance(mesh, MeshQuad) else ElementTriP1()
    basis = (FacetBasis if boundary else InteriorFacetBasis)(mesh, element, facets=facets)
    return csr_matrix(BilinearForm(lambda u, v, w: w.stiffness * u * v).assemble(basis, stiffness=stiffness[:, None]))


def _wall_springs(mesh: Mesh, chamber_of_element: NDArray[np.int64], per_chamber: Array) -> csr_matrix:
    """Tethers of the walls between chambers, (V, V) N/m; a wall has the mean stiffness of its two chambers."""
    sides = mesh.f2t
    first, second = chamber_of_element[sides[0]], chamber_of_element[sides[1]]
    walls = np.flatnonzero((sides[1] >= 0) & (first != second))
    return _line_tethers(mesh, walls, (per_chamber[first[walls]] + per_chamber[second[walls]]) / 2.0)
