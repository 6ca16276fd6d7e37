"""The simulators of a membrane: as described, for data sets, and as a real one differs from it.

docs/steps/write-a-reality.md explains every field of a reality.
"""

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_matrix
from skfem import BilinearForm, ElementQuad1, ElementTriP1, FacetBasis, InteriorFacetBasis, Mesh, MeshQuad, MeshTri

from softform_core.arrays import Array
from softform_core.bodies.membrane.description import MembraneBody
from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.model import Membrane, membrane_on_mesh
from softform_core.bodies.realities import (
    SHEETS,
    Values,
    another_silicone,
    log_uniform,
    not_negative,
    some_of,
    spread_values,
)
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Material, Place, Positive
from softform_core.simulation.sampled_body import SampledSurface

_GRAVITY = 9.81
_CHANCES = {
    "material": 0.8,
    "prestretch": 0.8,
    "thickness": 0.8,
    "wall_stiffness_scale": 0.6,
    "column_wall_shift": 0.5,
    "row_wall_shift": 0.5,
    "clamp_stiffness": 0.6,
}
"""Probability that a drawn membrane differs in a field."""

_WAVES = 200
"""Plane waves whose sum makes a thickness field close to Gaussian."""


class ThicknessField(Description):
    """Thickness of the real sheet over the nominal one: a mean factor and a smooth random field."""

    scale: Positive = 1.0
    variation: Annotated[float, Field(ge=0.0, le=0.3)] = 0.0
    correlation_length: Positive = 0.1
    seed: Annotated[int, Field(ge=0)] = 0


class RealMembrane(Description):
    """The real membrane. What is left out is as the robot's description says."""

    cells: Annotated[int, Field(ge=6, le=120)] | None = None
    element: Literal["quadrilateral", "triangle"] = "quadrilateral"
    material: Material | None = None
    thickness: ThicknessField = ThicknessField()
    prestretch: Annotated[float, Field(ge=1.0, le=2.0)] | None = None
    wall_stiffness_scale: Values = 1.0
    column_wall_shift: Values | None = None
    row_wall_shift: Values | None = None
    clamp_stiffness: Positive | None = None
    gravity: Place = (0.0, 0.0, 0.0)


Reality = RealMembrane
_AS_DESCRIBED = RealMembrane()


def thickness_factor(field: ThicknessField, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thickness over the nominal one at x, y (any equal shape, m): the same field on every mesh.

    A sum of random plane waves has a Gaussian covariance with the field's correlation length; it is kept within 2.5
    standard deviations.
    """
    generator = np.random.default_rng(field.seed)
    wave = generator.standard_normal((_WAVES, 2)) / field.correlation_length
    phase = generator.uniform(0.0, 2.0 * np.pi, _WAVES)
    position = np.stack([np.ravel(x), np.ravel(y)], axis=1)
    value = np.sqrt(2.0 / _WAVES) * np.cos(position @ wave.T + phase).sum(axis=1)
    return (field.scale * (1.0 + field.variation * np.clip(value, -2.5, 2.5))).reshape(np.shape(x))


def build_membrane(body: MembraneBody, real: RealMembrane = _AS_DESCRIBED) -> Membrane:
    """The membrane of a description, or of a reality of it.

    Mesh cells are shared among the chambers so that walls always lie on mesh lines.

    Raises:
        ValueError: If a list does not fit the number of chambers or walls.
        SoftformError: If there are too few cells, or walls do not follow each other.
    """
    cells = real.cells or body.cells
    lines_x, column_of_cell = _mesh_lines(body.width, body.columns, cells, real.column_wall_shift, "column_wall")
    lines_y, row_of_cell = _mesh_lines(body.length, body.rows, cells, real.row_wall_shift, "row_wall")
    mesh: Mesh = MeshQuad.init_tensor(lines_x, lines_y)
    if real.element == "triangle":
        mesh = _cut_cells(mesh, len(lines_x) - 1)
    centre = mesh.p[:, mesh.t].mean(axis=1)
    column = column_of_cell[np.searchsorted(lines_x, centre[0]) - 1]
    row = row_of_cell[np.searchsorted(lines_y, centre[1]) - 1]
    chamber_of_element = row * body.columns + column
    stiffer = spread_values(real.wall_stiffness_scale, len(body.inputs), "wall_stiffness_scale", not_negative)
    springs = _wall_springs(mesh, chamber_of_element, body.wall_stiffness * stiffer)
    fixed = None
    if real.clamp_stiffness is not None:
        rim = mesh.boundary_facets()
        springs = springs + _line_tethers(mesh, rim, np.full(len(rim), real.clamp_stiffness), boundary=True)
        fixed = np.zeros(mesh.p.shape[1], dtype=bool)
    return membrane_on_mesh(
        mesh,
        chamber_of_element,
        body.thickness * thickness_factor(real.thickness, *centre),
        real.material or body.material,
        springs=springs,
        fixed=fixed,
        prestretch=real.prestretch or body.prestretch,
        density=body.density,
        gravity=real.gravity,
    )


def _mesh_lines(
    side: float, chambers: int, cells: int, shift: Values | None, name: str
) -> tuple[Array, NDArray[np.int64]]:
    """Mesh lines across one side, with the shifted walls among them, and the chamber strip of each cell."""
    if cells < chambers:
        raise SoftformError(f"{cells} mesh cells a side are fewer than {chambers} chambers.", "Give more cells.")
    edges = np.linspace(-side / 2, side / 2, chambers + 1)
    edges[1:-1] += spread_values(0.0 if shift is None else shift, chambers - 1, f"{name}_shift")
    if not (np.diff(edges) > 0.0).all():
        raise SoftformError(
            f"{name}s must be {chambers - 1} rising positions within ±{side / 2:g} m, got {edges[1:-1].tolist()}.",
            "Correct the walls.",
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


def simulator(body: MembraneBody, real: RealMembrane = _AS_DESCRIBED) -> MembraneProblem:
    """The meshed membrane, or that of a reality; errors as of `build_membrane`."""
    return MembraneProblem(build_membrane(body, real))


real_simulator = simulator


def sampled(body: MembraneBody) -> SampledSurface:
    """The meshed membrane for data sets."""
    return SampledSurface(simulator(body))


def batched(body: MembraneBody, device: str) -> SampledSurface:
    """As `sampled`, many at once on a device."""
    from softform_core.bodies.membrane.warp_membranes import BatchedMembranes  # seldom asked for

    return BatchedMembranes(simulator(body), device)


def drawn_reality(nominal: MembraneBody, draw: np.random.Generator) -> RealMembrane:
    """A membrane of the distribution that docs/notes/realities-at-random.md describes.

    Args:
        nominal: Body of the robot's description.
        draw: Decides; everything is drawn in any case, so that a field's chance changes nothing else.
    """
    material = another_silicone(nominal.material, (0.65, 1.3), SHEETS, draw)
    thickness = ThicknessField(
        scale=draw.uniform(0.85, 1.1),
        variation=draw.uniform(0.02, 0.12),
        correlation_length=draw.uniform(0.2, 0.5) * nominal.size,
        seed=int(draw.integers(2**31)),
    )
    walls = np.array([log_uniform(draw, 0.5, 2.0) for _ in nominal.inputs])
    torn = draw.random(len(walls)) < 0.15
    walls[torn] = draw.uniform(0.0, 0.2, len(walls))[torn]
    deviation = 0.01 * nominal.size
    tilt = draw.normal(size=3)
    differences = {
        "material": material,
        "prestretch": 1.0 + (nominal.prestretch - 1.0) * draw.uniform(0.6, 1.4),
        "thickness": thickness,
        "wall_stiffness_scale": walls.tolist(),
        "column_wall_shift": draw.normal(0.0, deviation, nominal.columns - 1).tolist(),
        "row_wall_shift": draw.normal(0.0, deviation, nominal.rows - 1).tolist(),
        "clamp_stiffness": log_uniform(draw, 1e5, 5e5),
    }
    upright = draw.random() < 0.75
    side = math.lcm(nominal.rows, nominal.columns)
    return RealMembrane(
        cells=side * round(draw.uniform(0.8, 1.0) * nominal.cells / side),
        element="triangle" if draw.random() < 0.5 else "quadrilateral",
        gravity=(0.0, 0.0, -_GRAVITY) if upright else tuple(_GRAVITY * tilt / np.linalg.norm(tilt)),
        **some_of(differences, _CHANCES, draw),
    )
