"""A rod as arrays: geometrically exact, without shear, piecewise constant strains.

Each element has the strains q = (kappa_1, kappa_2, kappa_3, epsilon): curvatures about the directors d1, d2, the twist
about the tangent d3, and the stretch of the axis less one. Rigid links follow the sections.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.bodies.placement import Elements, in_sections
from softform_core.bodies.rod.cross_section import chamber_area, wall_fibres
from softform_core.bodies.rod.description import RodShape
from softform_core.robots.description import Material
from softform_core.simulation.materials import law_and_coefficients, scaled, shear_modulus

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


def build_rod(
    body: RodShape,
    *,
    elements: int | None = None,
    material: Material | None = None,
    stiffness_scale: ArrayLike = 1.0,
    length_scale: ArrayLike = 1.0,
    chamber_shift: ArrayLike = 0.0,
    chamber_scale: ArrayLike = 1.0,
    base_rotation: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Rod:
    """Arrays of a rod; what is given replaces what its description says.

    Args:
        body: The description.
        elements: Number of elements of each section.
        material: Material of the wall.
        stiffness_scale: Modulus of each section's wall over the material's, (sections,) or a number.
        length_scale: Length of each section over the described one, (sections,) or a number.
        chamber_shift: Added to the places of the chambers, (k, 2) m or a number.
        chamber_scale: Area of each chamber over the described one, (k,) or a number.
        base_rotation: (3, 3), turns the base in the robot's frame.
        gravity: (3,) m/s².

    Raises:
        SoftformError: If a cross-section is impossible.
    """
    section = body.section
    count = elements or body.elements
    of_section = np.repeat(np.arange(body.sections), count)
    middle = (np.tile(np.arange(count), body.sections) + 0.5) / count
    scale = 1.0 + (section.taper - 1.0) * middle
    length = (section.length * np.broadcast_to(length_scale, body.sections)).repeat(count) / count
    place, area = wall_fibres(section, body.chambers, planar=body.planar)
    moduli = np.broadcast_to(stiffness_scale, body.sections)
    walls = [scaled(material or section.material, float(one)) for one in moduli]
    modulus = np.array([shear_modulus(one) for one in walls])[of_section]
    polar = float((area * (place**2).sum(axis=1)).sum())
    mass = section.density * area.sum() * scale**2 * section.length / count
    centres = np.array([chamber.centre for chamber in body.chambers]).reshape(-1, 2)
    chambers = np.tile(centres, (body.sections, 1))
    areas = np.tile([chamber_area(chamber) for chamber in body.chambers], body.sections)
    turned = np.eye(3) if base_rotation is None else np.asarray(base_rotation, dtype=np.float64)
    base = turned @ (_PLANAR_DIRECTORS if body.planar else np.eye(3))
    pull = np.asarray(body.gravity if gravity is None else gravity, dtype=np.float64)
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
        chamber_place=chambers + np.broadcast_to(chamber_shift, chambers.shape),
        chamber_area=areas * np.broadcast_to(chamber_scale, areas.shape),
        base=base,
        gravity=pull,
    )
