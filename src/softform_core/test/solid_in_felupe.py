"""The same solid in FElupe (https://felupe.readthedocs.io, GPL-3; only tests import it).

Mesh, quadrature and laws are ours; the tetrahedron, the derivatives of volume and isochoric invariant, the follower
pressure, assembly, and Newton's method are FElupe's.
"""

from typing import Any, NamedTuple

import felupe
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import spsolve

from softform_core.arrays import Array
from softform_core.bodies.elements import (
    TETRAHEDRON_SIDES,
    line_shapes,
    triangle_rule,
    triangle_shapes,
    volume_element,
)
from softform_core.bodies.solid.model import Solid
from softform_core.simulation.materials import energy_slopes

_TOLERANCE = 1e-7  # of the reaction forces
_MOST_ITERATIONS = 30
_TETRAHEDRON_NODES = 10
_SIDES = ((0, 3, 1), (1, 4, 2), (2, 5, 0))  # nodes along the sides of a triangle


class _Wedge(felupe.element.Element):
    """Our wedge of 18 nodes."""

    def function(self, rst: Array) -> Array:
        """Shape functions (18,)."""
        return _wedge_at(rst)[0]

    def gradient(self, rst: Array) -> Array:
        """Their derivatives (18, 3)."""
        return _wedge_at(rst)[1]


def _wedge_at(rst: Array) -> tuple[Array, Array]:
    (shape, slope), (rise, climb) = triangle_shapes(rst[None, :2]), line_shapes(rst[2:])
    values = np.einsum("ql,qn->ln", rise, shape).ravel()
    in_triangle = np.einsum("ql,qnd->lnd", rise, slope).reshape(18, 2)
    return values, np.column_stack([in_triangle, np.einsum("ql,qn->ln", climb, shape).ravel()])


class _Shape:
    """W(I1) + k / 8 (I4 - 1)^2 as a material of FElupe, whose neo-Hookean law with mu = 2 is I1 - 3."""

    def __init__(self, solid: Solid, points: int) -> None:
        self._law, self._coefficients = solid.law, solid.coefficients
        self._fibres = solid.fibres[:, :points].transpose(2, 1, 0)
        self._modulus = solid.fibre_modulus
        self._invariant = felupe.NeoHooke(mu=2.0)
        self.x = self._invariant.x

    def gradient(self, x: list[Array]) -> list[Any]:
        """First Piola-Kirchhoff stress (3, 3, q, E)."""
        slope, _ = self._slopes(x[0])
        stretched, excess = self._stretched(x[0])
        along = np.einsum("i...,j...->ij...", stretched, self._fibres)
        return [slope * self._invariant.gradient(x)[0] + 0.5 * self._modulus * excess * along, None]

    def hessian(self, x: list[Array]) -> list[Array]:
        """Its derivative (3, 3, 3, 3, q, E)."""
        slope, curvature = self._slopes(x[0])
        first = self._invariant.gradient(x)[0]
        found = slope * self._invariant.hessian(x)[0] + curvature * np.einsum("ij...,kl...->ijkl...", first, first)
        stretched, excess = self._stretched(x[0])
        along = np.einsum("i...,j...->ij...", stretched, self._fibres)
        found = found + self._modulus * np.einsum("ij...,kl...->ijkl...", along, along)
        turn = np.einsum("ik,j...,l...->ijkl...", np.eye(3), self._fibres, self._fibres)
        return [found + 0.5 * self._modulus * excess * turn]

    def _slopes(self, f: Array) -> tuple[Array, Array]:
        """W' and W'' (q, E)."""
        volume = np.linalg.det(np.moveaxis(f, (0, 1), (-2, -1)))
        invariant = volume ** (-2.0 / 3.0) * np.einsum("ij...,ij...->...", f, f)
        slope, curvature = energy_slopes(self._law, self._coefficients, invariant.T)
        return slope.T, curvature.T

    def _stretched(self, f: Array) -> tuple[Array, Array]:
        """F a (3, q, E) and I4 - 1 (q, E)."""
        stretched = np.einsum("ij...,j...->i...", f, self._fibres)
        return stretched, np.einsum("i...,i...->...", stretched, stretched) - 1.0


class FelupeShape(NamedTuple):
    """A shape that FElupe found: nodes (V, 3) m and Newton iterations over all load steps."""

    nodes: Array
    iterations: int


class FelupeSolid:
    """A solid as FElupe's items.

    Args:
        solid: Held rigidly at its base.
    """

    def __init__(self, solid: Solid) -> None:
        self._nodes = solid.nodes
        count = solid.elements.shape[1]
        kind = "tetra10" if count == _TETRAHEDRON_NODES else "wedge18"
        self._mesh = felupe.Mesh(solid.nodes, solid.elements.astype(np.int64), kind)
        rules = volume_element(count)
        fields = [self._field(_region(self._mesh, rule.points, rule.weights)) for rule in rules]
        self._field_container = fields[0]
        materials = _Shape(solid, len(rules[0].weights)), felupe.Volumetric(bulk=solid.bulk)
        bodies = [felupe.SolidBody(*pair) for pair in zip(materials, fields, strict=True)]
        weight = felupe.PointLoad(fields[0], np.arange(len(solid.nodes)), solid.weight)
        self._pressures = _pressures(self._mesh, solid, self._field)
        self._items = [*bodies, weight, *(item for item, _ in self._pressures)]
        held = {"base": felupe.Boundary(fields[0][0], mask=solid.is_fixed)}
        self._held, self._free = felupe.dof.partition(fields[0], held)

    def forces(self, nodes: Array, pressures: Array) -> Array:
        """Gradient (V, 3) N of the total potential at nodes (V, 3) m under pressures (k,) Pa."""
        self._load(pressures)
        self._field_container[0].values[:] = nodes - self._nodes
        total = np.zeros(nodes.shape)
        for item in self._items:
            item.field.link(self._field_container)
            total += (item.assemble.multiplier or 1.0) * item.assemble.vector(item.field).toarray().reshape(-1, 3)
        return total

    def solve(self, pressures: Array, steps: int, solver: Any = spsolve) -> FelupeShape:
        """The shape under pressures (k,) Pa, which are raised in so many equal steps.

        Raises:
            felupe.tools.NewtonConvergenceError: If Newton's method does not converge.
        """
        iterations, field = 0, self._field_container
        field[0].values[:] = 0.0
        for share in np.linspace(0.0, 1.0, steps + 1)[1:]:
            self._load(share * pressures)
            found = felupe.newtonraphson(
                x0=field,
                items=self._items,
                dof0=self._held,
                dof1=self._free,
                ext0=np.zeros(len(self._held)),
                solver=solver,
                tol=_TOLERANCE,
                maxiter=_MOST_ITERATIONS,
                verbose=0,
            )
            field, iterations = found.x, iterations + found.iterations
        return FelupeShape(self._nodes + field[0].values, iterations)

    def _field(self, region: Any) -> Any:
        return felupe.FieldContainer([felupe.Field(region, dim=3)])

    def _load(self, pressures: Array) -> None:
        for item, cavity in self._pressures:
            item.update(pressures[cavity])


def _region(mesh: Any, points: Array, weights: Array) -> Any:
    element = felupe.QuadraticTetra() if mesh.cell_type == "tetra10" else _Wedge()
    return felupe.Region(mesh, element, felupe.quadrature.Scheme(points, weights))


def _pressures(mesh: Any, solid: Solid, field: Any) -> list[tuple[Any, NDArray[np.int64]]]:
    """FElupe's pressure items, one for each side of an element, with the cavity (c,) of each of their cells."""
    owner = {}
    sides = _sides_of_tetrahedron() if mesh.cell_type == "tetra10" else _sides_of_wedge()
    for side, (local, _, _, _) in enumerate(sides):
        for element, nodes in enumerate(np.sort(solid.elements[:, local], axis=1)):
            owner[tuple(nodes)] = element, side
    found: dict[int, list[tuple[int, int]]] = {}
    for faces, cavities in ((solid.rectangles, solid.cavity_of_rectangle), (solid.caps, solid.cavity_of_cap)):
        for nodes, cavity in zip(np.sort(faces, axis=1), cavities, strict=True):
            if solid.is_fixed[nodes].all():
                continue  # the base, which is rigid and not meshed
            element, side = owner[tuple(nodes)]
            found.setdefault(side, []).append((element, int(cavity)))
    items = []
    for side, cells in found.items():
        elements, cavity = np.array(cells).T
        _, points, weights, normal = sides[side]
        region = _region(felupe.Mesh(mesh.points, mesh.cells[elements], mesh.cell_type), points, weights)
        # An area moves by the cofactors of the map from the reference element.
        cofactors = np.linalg.det(np.moveaxis(region.dXdr, (0, 1), (-2, -1))) * region.drdX.swapaxes(0, 1)
        region.dA = np.einsum("ijqc,j,q->iqc", cofactors, normal, weights)
        region.dV = np.linalg.norm(region.dA, axis=0)
        region.normals = region.dA / region.dV
        items.append((felupe.SolidBodyPressure(field(region), np.zeros(len(cavity))), cavity))
    return items


_Side = tuple[list[int], Array, Array, Array]


def _sides_of_wedge() -> list[_Side]:
    """Of each side of the reference wedge: nodes, quadrature points (q, 3) and weights (q,), normal times area (3,)."""
    flat, flat_weights = triangle_rule(6)
    line, line_weights = np.polynomial.legendre.leggauss(3)
    sides = []
    for level, end in ((0, -1.0), (2, 1.0)):
        points = np.column_stack([flat, np.full(len(flat), end)])
        sides.append(([6 * level + n for n in range(6)], points, flat_weights, np.array([0.0, 0.0, end])))
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    weights = np.outer(line_weights, line_weights).ravel()
    for first, middle, last in _SIDES:
        half = 0.5 * (corners[last] - corners[first])
        along = 0.5 * (corners[last] + corners[first]) + line[:, None] * half
        points = np.column_stack([along.repeat(3, axis=0), np.tile(line, 3)])
        local = [6 * level + n for level in range(3) for n in (first, middle, last)]
        sides.append((local, points, weights, np.array([half[1], -half[0], 0.0])))
    return sides


def _sides_of_tetrahedron() -> list[_Side]:
    """The same of the reference tetrahedron."""
    flat, weights = triangle_rule(6)
    corners = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    sides = []
    for local in TETRAHEDRON_SIDES:
        first, one, other = corners[local[:3]]
        points = first + flat @ np.stack([one - first, other - first])
        sides.append((local.tolist(), points, weights, np.cross(one - first, other - first)))
    return sides
