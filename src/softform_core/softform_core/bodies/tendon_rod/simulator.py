"""The simulators of a rod with tendons as described: one sample at a time, and for data sets."""

from softform_core.bodies.rod.model import build_rod
from softform_core.bodies.rod.sampled import SampledRod
from softform_core.bodies.tendon_rod.description import TendonRodBody
from softform_core.bodies.tendon_rod.equilibrium import TendonRodProblem
from softform_core.bodies.tendon_rod.model import build_tendons


def simulator(body: TendonRodBody) -> TendonRodProblem:
    """The rod and its tendons."""
    rod = build_rod(body)
    return TendonRodProblem(rod, build_tendons(body, rod))


def sampled(body: TendonRodBody) -> SampledRod:
    """The rod for data sets: its tip."""
    return SampledRod(simulator(body), body.frames["tip"])
