"""The simulators of a solid as described: one sample at a time, and for data sets."""

from softform_core.bodies.solid.cabled import problem_of
from softform_core.bodies.solid.description import SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import build_solid
from softform_core.bodies.solid.rod import RodOfSolid
from softform_core.simulation.sampled_body import SampledSurface


def simulator(body: SolidBody) -> SolidProblem | RodOfSolid:
    """The solid, meshed or as a rod."""
    return RodOfSolid(body) if body.kind == "solid_rod" else problem_of(build_solid(body))


def sampled(body: SolidBody) -> SampledSurface:
    """The solid for data sets."""
    return SampledSurface(simulator(body))
