"""The simulators of a solid: as described, for data sets, and as a real one differs from it.

docs/robots/manipulator.md explains every field of a reality.
"""

import numpy as np

from softform_core.bodies.realities import SOLIDS, another_silicone, log_uniform, some_of, tilted
from softform_core.bodies.solid.description import SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem, problem_of
from softform_core.bodies.solid.model import RealSolid, build_solid
from softform_core.bodies.solid.rod import RodOfSolid
from softform_core.simulation.sampled_body import SampledSurface

Reality = RealSolid


def simulator(body: SolidBody) -> SolidProblem | RodOfSolid:
    """The solid, meshed or as a rod."""
    return RodOfSolid(body) if body.kind == "solid_rod" else problem_of(build_solid(body))


def real_simulator(body: SolidBody, real: RealSolid) -> SolidProblem:
    """The meshed solid of a reality; errors as of `build_solid`."""
    return problem_of(build_solid(body, real))


def sampled(body: SolidBody) -> SampledSurface:
    """The solid for data sets."""
    return SampledSurface(simulator(body))


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
