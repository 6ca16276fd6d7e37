"""How a real solid differs from the simulator's; docs/robots/manipulator.md explains every field."""

from typing import Annotated

import numpy as np
from pydantic import Field

from softform_core.bodies.random_fields import SOLIDS, another_silicone, log_uniform, some_of, tilted
from softform_core.bodies.solid.cabled import problem_of
from softform_core.bodies.solid.description import Cells, SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import build_solid
from softform_core.bodies.spread import Values, spread_values
from softform_core.robots.description import Description, Material, NotNegative, Place, Positive

_CHANCES = {
    "material": 0.8,
    "wall_scale": 0.8,
    "chamber_shift": 0.7,
    "chamber_turn": 0.7,
    "fibre_scale": 0.6,
    "clamp_stiffness": 0.6,
    "gravity": 0.8,
}
"""That a drawn solid differs in a field."""


class RealSolid(Description):
    """The real solid. What is left out is as the robot's description says.

    Attributes:
        cells: Cells of its mesh.
        material: Its material.
        wall_scale: Thickness of the outer wall over the described one; the outside stays.
        chamber_shift: How far the core of each chamber of the cross-section was cast outwards, m.
        chamber_turn: By how much it was cast turned about the axis, rad.
        fibre_scale: Stiffness of the fibres over the described one.
        clamp_stiffness: Stiffness of the support under the base plate, N/m^3; rigid, if left out.
        gravity: m/s^2; as described, if left out.
    """

    cells: Cells | None = None
    material: Material | None = None
    wall_scale: Annotated[float, Field(ge=0.5, le=1.5)] = 1.0
    chamber_shift: Values = 0.0
    chamber_turn: Values = 0.0
    fibre_scale: NotNegative = 1.0
    clamp_stiffness: Positive | None = None
    gravity: Place | None = None


Reality = RealSolid


def real_simulator(nominal: SolidBody, real: RealSolid) -> SolidProblem:
    """The solid of a reality.

    Raises:
        ValueError: If a list does not fit the number of chambers.
        SoftformError: If the mesh turns inside out, or the simulation rejects a value.
    """
    count = nominal.cross_section.chambers
    solid = build_solid(
        nominal,
        cells=real.cells,
        material=real.material,
        wall_scale=real.wall_scale,
        chamber_shift=spread_values(real.chamber_shift, count, "chamber_shift"),
        chamber_turn=spread_values(real.chamber_turn, count, "chamber_turn"),
        fibre_scale=real.fibre_scale,
        clamp_stiffness=real.clamp_stiffness,
        gravity=real.gravity,
    )
    return problem_of(solid)


def drawn_reality(nominal: SolidBody, draw: np.random.Generator) -> RealSolid:
    """A solid of the distribution that docs/notes/realities-at-random.md describes."""
    section, cells = nominal.cross_section, nominal.cells
    material = another_silicone(nominal.material, (0.8, 1.25), SOLIDS, draw)
    wall = section.radius - section.outer
    tilt = draw.normal(0.0, 0.01, 2)
    differences = {
        "material": material,
        "wall_scale": draw.uniform(0.9, 1.1),
        "chamber_shift": draw.normal(0.0, 0.05 * wall, section.chambers).tolist(),
        "chamber_turn": draw.normal(0.0, 0.02, section.chambers).tolist(),
        "fibre_scale": log_uniform(draw, 0.7, 1.4),
        "clamp_stiffness": log_uniform(draw, 1e8, 1e9),
        "gravity": tilted(nominal.gravity, tilt),
    }
    # Never the described mesh, and no finer around the chambers: a shape costs seconds, a reality a hundred of them.
    around = max(2, cells.chamber - int(draw.integers(1, 3)))
    return RealSolid(
        cells=cells.model_copy(update={"chamber": around, "layers": cells.layers + int(draw.integers(0, 2))}),
        **some_of(differences, _CHANCES, draw),
    )
