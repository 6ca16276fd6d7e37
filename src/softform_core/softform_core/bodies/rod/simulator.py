"""The simulators of a rod as described: one sample at a time, and for data sets."""

from softform_core.bodies.rod.description import RodBody
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import build_rod
from softform_core.bodies.rod.sampled import SampledRod


def simulator(body: RodBody) -> RodProblem:
    """The rod with its chambers."""
    return RodProblem(build_rod(body))


def sampled(body: RodBody) -> SampledRod:
    """The rod for data sets: its tip."""
    return SampledRod(simulator(body), body.frames["tip"])
