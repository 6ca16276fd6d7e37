"""How a real rod differs from the simulator's; docs/steps/waypoints-001.md explains every field."""

from typing import Annotated, Any

import numpy as np
from pydantic import Field
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.bodies.random_fields import log_uniform, some_of
from softform_core.bodies.rod.description import RodBody, RodShape
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import Rod, build_rod
from softform_core.robots.description import Description, Finite, Material, NotNegative, Positive
from softform_core.simulation.materials import shear_modulus

Share = Annotated[float, Field(ge=0.0, le=0.2)]

CHANCES = {"wall": 0.8, "base_turn": 0.8, "tilt": 0.8, "fabrication": 0.9}
"""Probability that a drawn rod differs in a field."""


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
    """

    elements: Annotated[int, Field(ge=2, le=100)] | None = None
    wall: GentWall | None = None
    base_turn: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    tilt: tuple[Finite, Finite] = (0.0, 0.0)


class RealRod(RealShape):
    """The real rod with chambers; `fabrication` are the errors of this specimen."""

    fabrication: Fabrication = Fabrication()


Reality = RealRod


def drawn_reality(nominal: RodBody, draw: np.random.Generator) -> RealRod:
    """A rod of the distribution that docs/notes/realities-at-random.md describes."""
    fields = drawn_shape(draw)
    width = min(min(chamber.width, chamber.height) for chamber in nominal.chambers)
    made = Fabrication(
        **drawn_specimen(draw), chamber_area=draw.uniform(0.01, 0.05), chamber_place=draw.uniform(0.005, 0.03) * width
    )
    return RealRod(**some_of(fields | {"fabrication": made}, CHANCES, draw), elements=drawn_elements(nominal, draw))


def drawn_shape(draw: np.random.Generator) -> dict[str, Any]:
    """Fields of `RealShape`, drawn."""
    return {
        "wall": GentWall(modulus=log_uniform(draw, 0.8, 1.25), limit=draw.uniform(8.0, 30.0)),
        "base_turn": tuple(draw.normal(0.0, 0.015, 3)),
        "tilt": tuple(draw.normal(0.0, 0.005, 2)),
    }


def drawn_specimen(draw: np.random.Generator) -> dict[str, Any]:
    """Fields of `Specimen`, drawn."""
    stiffness, length = draw.uniform(0.01, 0.05), draw.uniform(0.003, 0.015)
    return {"stiffness": stiffness, "length": length, "seed": int(draw.integers(2**31))}


def drawn_elements(nominal: RodShape, draw: np.random.Generator) -> int:
    """Elements of each section, other than the simulator's."""
    return max(2, round(nominal.elements * draw.uniform(0.6, 0.9)))


def real_simulator(body: RodBody, real: RealRod) -> RodProblem:
    """The rod of a reality.

    Raises:
        SoftformError: If the simulation rejects a value.
    """
    made, chambers = real.fabrication, len(body.inputs)
    draw = np.random.default_rng(made.seed).standard_normal
    stiffness, length = draw(body.sections), draw(body.sections)
    area, shift = made.chamber_area * draw(chambers), made.chamber_place * draw((chambers, 2))
    return RodProblem(real_shape(body, real, made, stiffness, length, chamber_shift=shift, chamber_scale=1.0 + area))


def real_shape(
    body: RodShape, real: RealShape, made: Specimen, stiffness: Array, length: Array, **chambers: Array
) -> Rod:
    """The rod of a reality under the drawn errors of its sections.

    Args:
        body: The description.
        real: The reality.
        made: Size of the errors.
        stiffness: (sections,) standard normal draws.
        length: (sections,) standard normal draws.
        **chambers: Passed to `build_rod`.
    """
    wall = None
    if real.wall is not None:
        modulus = real.wall.modulus * shear_modulus(body.section.material)
        wall = Material(law="gent", coefficients=[modulus, real.wall.limit])
    along, second, third = real.base_turn
    turn = np.array([0.0, 0.0, third]) if body.planar else np.array([second, third, along])
    leaning = Rotation.from_euler("xy", real.tilt).inv()
    return build_rod(
        body,
        elements=real.elements,
        material=wall,
        stiffness_scale=1.0 + made.stiffness * stiffness,
        length_scale=1.0 + made.length * length,
        base_rotation=Rotation.from_rotvec(turn).as_matrix(),
        gravity=leaning.apply(body.gravity),
        **chambers,
    )
