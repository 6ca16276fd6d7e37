"""The simulators of an arm of bellows as described: one sample at a time, and for data sets."""

from softform_core.bodies.bellows.description import BellowsBody
from softform_core.bodies.bellows.equilibrium import BellowsProblem
from softform_core.bodies.bellows.model import build_arm
from softform_core.bodies.bellows.skin import skin_of
from softform_core.simulation.sampled_body import SampledSurface


def simulator(body: BellowsBody) -> BellowsProblem:
    """The arm as a rod of bellows."""
    return BellowsProblem(build_arm(body), skin_of(body))


def sampled(body: BellowsBody) -> SampledSurface:
    """The arm for data sets."""
    return SampledSurface(simulator(body))
