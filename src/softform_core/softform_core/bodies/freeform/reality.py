"""How a real solid of free form differs from the simulator's; docs/robots/freeform.md explains every field."""

from typing import Annotated

import numpy as np
from pydantic import Field

from softform_core.bodies.freeform.description import FreeformBody
from softform_core.bodies.freeform.model import build_freeform
from softform_core.bodies.random_fields import SOLIDS, another_silicone, log_uniform, some_of, tilted
from softform_core.bodies.solid.cabled import problem_of
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.spread import Values, spread_values
from softform_core.robots.description import Description, Material, NotNegative, Place, Positive

_CHANCES = {"material": 0.8, "chamber_shift": 0.7, "fibre_scale": 0.6, "clamp_stiffness": 0.6, "gravity": 0.8}
"""That a drawn body differs in a field."""


class RealFreeform(Description):
    """The real body. What is left out is as the robot's description says.

    Attributes:
        mesh_scale: Length of its mesh's edges over the described one.
        material: Its material.
        chamber_shift: How far the core of each chamber was cast outwards from the z axis, m; along x if it lies in it.
        fibre_scale: Stiffness of the fibres over the described one.
        clamp_stiffness: Stiffness of the support under the base, N/m^3; rigid, if left out.
        gravity: m/s^2; as described, if left out.
    """

    mesh_scale: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    material: Material | None = None
    chamber_shift: Values = 0.0
    fibre_scale: NotNegative = 1.0
    clamp_stiffness: Positive | None = None
    gravity: Place | None = None


Reality = RealFreeform


def real_simulator(nominal: FreeformBody, real: RealFreeform) -> SolidProblem:
    """The body of a reality.

    Raises:
        ValueError: If a list does not fit the number of chambers.
        SoftformError: If it cannot be meshed, or the simulation rejects a value.
    """
    solid = build_freeform(
        nominal,
        mesh_scale=real.mesh_scale,
        material=real.material,
        chamber_shift=spread_values(real.chamber_shift, len(nominal.chambers), "chamber_shift"),
        fibre_scale=real.fibre_scale,
        clamp_stiffness=real.clamp_stiffness,
        gravity=real.gravity,
    )
    return problem_of(solid)


def drawn_reality(nominal: FreeformBody, draw: np.random.Generator) -> RealFreeform:
    """A body of the distribution that docs/notes/realities-at-random.md describes."""
    material = another_silicone(nominal.material, (0.8, 1.25), SOLIDS, draw)
    tilt = draw.normal(0.0, 0.01, 2)
    differences = {
        "material": material,
        "chamber_shift": draw.normal(0.0, 0.002 * nominal.size, len(nominal.chambers)).tolist(),
        "fibre_scale": log_uniform(draw, 0.7, 1.4),
        "clamp_stiffness": log_uniform(draw, 1e8, 1e9),
        "gravity": tilted(nominal.gravity, tilt),
    }
    # Never the described mesh, and no finer: a shape costs seconds, a reality a hundred of them.
    return RealFreeform(mesh_scale=draw.uniform(1.05, 1.3), **some_of(differences, _CHANCES, draw))
