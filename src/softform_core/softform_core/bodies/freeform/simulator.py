"""The simulators of a solid of free form as described: one sample at a time, and for data sets."""

from softform_core.bodies.freeform.description import FreeformBody
from softform_core.bodies.freeform.model import build_freeform
from softform_core.bodies.solid.cabled import problem_of
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.simulation.sampled_body import SampledSurface


def simulator(body: FreeformBody) -> SolidProblem:
    """The meshed body."""
    return problem_of(build_freeform(body))


def sampled(body: FreeformBody) -> SampledSurface:
    """The meshed body for data sets."""
    return SampledSurface(simulator(body))
