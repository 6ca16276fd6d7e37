"""The simulators of a membrane as described: one sample at a time, and for data sets."""

from softform_core.bodies.membrane.description import MembraneBody
from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.model import build_membrane
from softform_core.simulation.sampled_body import SampledSurface


def simulator(body: MembraneBody) -> MembraneProblem:
    """The meshed membrane."""
    return MembraneProblem(build_membrane(body))


def sampled(body: MembraneBody) -> SampledSurface:
    """The meshed membrane for data sets."""
    return SampledSurface(simulator(body))


def batched(body: MembraneBody, device: str) -> SampledSurface:
    """As `sampled`, many at once on a device."""
    from softform_core.bodies.membrane.batched import BatchedMembranes  # seldom asked for

    return BatchedMembranes(simulator(body), device)
