"""A rod as arrays: geometrically exact, without shear, piecewise constant strains.

Each element has the strains q = (kappa_1, kappa_2, kappa_3, epsilon): curvatures about the directors d1, d2, the twist
about the tangent d3, and the stretch of the axis less one. Rigid links follow the sections.
The wall of a cross-section is fibres along the rod.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.bodies.placement import Elements, in_sections
from softform_core.bodies.rod.description import OutlineKind, RodChamber, RodShape, SolidSection
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Finite, Material, NotNegative, Positive
from softform_core.simulation.materials import law_and_coefficients, scaled, shear_modulus

CELLS = 14
"""Cells a side of the grid over the outline; each cell's wall makes a fibre."""

_STRIPS = 28
"""Fibres of a rod that bends in one plane only, across that plane."""

_SAMPLES = 24
"""Points a side of a cell at which it is asked whether there is wall."""


def wall_fibres(section: SolidSection, chambers: list[RodChamber], *, planar: bool) -> tuple[Array, Array]:
    """Places (F, 2) m and areas (F,) m² of the wall's fibres at its beginning; strips of a planar rod.

    Raises:
        SoftformError: If a chamber lies outside the outline or chambers touch.
    """
    _check_chambers(section, chambers)
    columns, rows = (_STRIPS, 1) if planar else (CELLS, CELLS)
    width, height = section.width, section.height
    across = _midpoints(width, columns * _SAMPLES)
    along = _midpoints(height, rows * _SAMPLES * (CELLS if planar else 1))
    x, y = np.meshgrid(across, along, indexing="ij")
    wall = _inside(x, y, section.outline, (0.0, 0.0), width, height)
    for chamber in chambers:
        wall &= ~_in_chamber(x, y, chamber)
    wall_area = wall * (width / across.size * height / along.size)

    def by_cell(values: NDArray[np.floating]) -> Array:
        return values.reshape(columns, across.size // columns, rows, along.size // rows).sum(axis=(1, 3)).ravel()

    area = by_cell(wall_area)
    kept = area > 0.0
    area = area[kept]
    place = np.stack([by_cell(x * wall_area)[kept] / area, by_cell(y * wall_area)[kept] / area], axis=1)
    return place, area


def chamber_area(chamber: RodChamber) -> float:
    """Area of a chamber's cross-section, m²."""
    box = chamber.width * chamber.height
    return float(0.25 * np.pi * box if chamber.outline == "ellipse" else box)


def _check_chambers(section: SolidSection, chambers: list[RodChamber]) -> None:
    x, y = np.meshgrid(_midpoints(2.0 * section.width, 400), _midpoints(2.0 * section.height, 400), indexing="ij")
    body = _inside(x, y, section.outline, (0.0, 0.0), section.width, section.height)
    holes = [_in_chamber(x, y, chamber) for chamber in chambers]
    # One that lies beyond the grid has no point of it.
    x, y = np.array([chamber.centre for chamber in chambers]).reshape(-1, 2).T
    centres = _inside(x, y, section.outline, (0.0, 0.0), section.width, section.height)
    if not centres.all() or any((hole & ~body).any() for hole in holes) or (np.sum(holes, axis=0) > 1).any():
        raise SoftformError(
            "A chamber of the rod lies outside its section's outline, or chambers overlap.",
            "Check centre, width and height of the chambers in the robot's description.",
        )


def _in_chamber(x: Array, y: Array, chamber: RodChamber) -> NDArray[np.bool_]:
    return _inside(x, y, chamber.outline, chamber.centre, chamber.width, chamber.height)


def _inside(
    x: Array, y: Array, outline: OutlineKind, centre: tuple[float, float], width: float, height: float
) -> NDArray[np.bool_]:
    u, v = 2.0 * (x - centre[0]) / width, 2.0 * (y - centre[1]) / height
    inside = u * u + v * v <= 1.0 if outline == "ellipse" else (np.abs(u) <= 1.0) & (np.abs(v) <= 1.0)
    return np.asarray(inside)


def _midpoints(side: float, count: int) -> Array:
    return ((np.arange(count) + 0.5) / count - 0.5) * side


_PLANAR_DIRECTORS = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Columns d1 = y, d2 = z, d3 = x: a planar rod rests along x and bends about z."""

_PLANAR_STRAINS = np.array([1, 3])
_ALL_STRAINS = np.arange(4)


@dataclass(frozen=True, eq=False)
class Rod(Elements):
    """E elements with k chambers in all, F fibres a cross-section; SI units.

    Attributes:
        strains: (d,) which of the four strains are free.
        scale: (E,) size of each cross-section over the first of its section.
        fibre_place: (F, 2) in the cross-section.
        fibre_area: (F,).
        law: number of the material law (`simulation.materials`).
        coefficients: (E, c) of the law.
        limiter: (E,) axial stiffness of the strain limiter, N.
        torsion: (E,) torsional stiffness, N m².
        chamber_place: (k, 2) in the cross-section.
        chamber_area: (k,).
    """

    strains: NDArray[np.int64]
    scale: Array
    fibre_place: Array
    fibre_area: Array
    law: int
    coefficients: Array
    limiter: Array
    torsion: Array
    chamber_place: Array
    chamber_area: Array

    @property
    def elements(self) -> int:
        """Number E of elements."""
        return len(self.length)

    @property
    def chambers(self) -> int:
        """Number k of chambers."""
        return len(self.chamber_area)


Share = Annotated[float, Field(ge=0.0, le=0.2)]


class Specimen(Description):
    """Normally distributed errors of a specimen: one draw of `seed` for each section.

    Attributes:
        stiffness: Relative deviation of the wall's modulus in each section.
        length: Relative deviation of each section's length.
        seed: names the specimen.
    """

    stiffness: Share = 0.0
    length: Share = 0.0
    seed: Annotated[int, Field(ge=0)] = 0


class Fabrication(Specimen):
    """Errors of a specimen with chambers: one draw for each section or chamber.

    Attributes:
        chamber_area: Relative deviation of each chamber's cross-section.
        chamber_place: Deviation of each chamber's two coordinates in the cross-section, m.
    """

    chamber_area: Share = 0.0
    chamber_place: NotNegative = 0.0


class GentWall(Description):
    """The wall follows Gent's law, its shear modulus over the described material's, up to a limit of I1 - 3."""

    modulus: Positive = 1.0
    limit: Positive = 30.0


class RealShape(Description):
    """The real rod. What is left out is as the robot's description says.

    Attributes:
        elements: Number of elements of each section.
        wall: its material; the described one, if left out.
        base_turn: how the base is mounted: rotation about the axis along which the rod rests, and, of a rod in space,
            about the two others, rad. A planar rod is turned within its plane by the last.
        tilt: Inclination of the table about x and y, rad, by which gravity is turned.
        fabrication: Errors of this specimen.
    """

    elements: Annotated[int, Field(ge=2, le=100)] | None = None
    wall: GentWall | None = None
    base_turn: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    tilt: tuple[Finite, Finite] = (0.0, 0.0)
    fabrication: Specimen = Specimen()


class RealRod(RealShape):
    """The real rod with chambers; `fabrication` are the errors of this specimen."""

    fabrication: Fabrication = Fabrication()


AS_DESCRIBED = RealShape()


def build_rod(body: RodShape, real: RealShape = AS_DESCRIBED) -> Rod:
    """Arrays of a rod as described, or of a reality of it.

    Raises:
        SoftformError: If a cross-section is impossible.
    """
    section = body.section
    count, made = real.elements or body.elements, real.fabrication
    draw = np.random.default_rng(made.seed).standard_normal
    stiffer, longer = 1.0 + made.stiffness * draw(body.sections), 1.0 + made.length * draw(body.sections)
    material = section.material
    if real.wall is not None:
        limited = [real.wall.modulus * shear_modulus(material), real.wall.limit]
        material = Material(law="gent", coefficients=limited)
    of_section = np.repeat(np.arange(body.sections), count)
    middle = (np.tile(np.arange(count), body.sections) + 0.5) / count
    scale = 1.0 + (section.taper - 1.0) * middle
    length = (section.length * longer).repeat(count) / count
    place, area = wall_fibres(section, body.chambers, planar=body.planar)
    walls = [scaled(material, float(one)) for one in stiffer]
    modulus = np.array([shear_modulus(one) for one in walls])[of_section]
    polar = float((area * (place**2).sum(axis=1)).sum())
    mass = section.density * area.sum() * scale**2 * section.length / count
    centres = np.array([chamber.centre for chamber in body.chambers]).reshape(-1, 2)
    chambers = np.tile(centres, (body.sections, 1))
    areas = np.tile([chamber_area(chamber) for chamber in body.chambers], body.sections)
    if isinstance(made, Fabrication):
        areas = areas * (1.0 + made.chamber_area * draw(len(areas)))
        chambers = chambers + made.chamber_place * draw(chambers.shape)
    along, second, third = real.base_turn
    turn = np.array([0.0, 0.0, third]) if body.planar else np.array([second, third, along])
    base = Rotation.from_rotvec(turn).as_matrix() @ (_PLANAR_DIRECTORS if body.planar else np.eye(3))
    pull = Rotation.from_euler("xy", real.tilt).inv().apply(body.gravity)
    if body.planar:
        pull = pull - base[:, 1] * (base[:, 1] @ pull)  # the table carries the rest
    return Rod(
        **in_sections(body.sections, mass, body.link_length, body.link_mass),
        strains=_PLANAR_STRAINS if body.planar else _ALL_STRAINS,
        length=length,
        scale=scale,
        fibre_place=place,
        fibre_area=area,
        law=law_and_coefficients(walls[0])[0],
        coefficients=np.array([law_and_coefficients(one)[1] for one in walls])[of_section],
        limiter=np.full(len(length), section.strain_limiter),
        torsion=modulus * polar * scale**4,
        chamber_place=chambers,
        chamber_area=areas,
        base=base,
        gravity=pull,
    )
