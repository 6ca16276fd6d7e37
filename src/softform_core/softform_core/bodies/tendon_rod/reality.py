"""How a real tendon-driven rod differs from the simulator's; docs/robots/tendon_rod.md explains every field."""

import numpy as np

from softform_core.bodies.random_fields import some_of
from softform_core.bodies.rod.reality import (
    CHANCES,
    RealShape,
    Share,
    Specimen,
    drawn_elements,
    drawn_shape,
    drawn_specimen,
    real_shape,
)
from softform_core.bodies.tendon_rod.description import TendonRodBody
from softform_core.bodies.tendon_rod.equilibrium import TendonRodProblem
from softform_core.bodies.tendon_rod.model import build_tendons
from softform_core.robots.description import NotNegative


class TendonFabrication(Specimen):
    """Errors of a specimen with tendons: one draw for each section or tendon.

    Attributes:
        tendon_place: Deviation of each tendon's two coordinates in the cross-section, m.
        tendon_stiffness: Relative deviation of each tendon's stiffness.
    """

    tendon_place: NotNegative = 0.0
    tendon_stiffness: Share = 0.0


class RealTendonRod(RealShape):
    """The real rod with tendons; `fabrication` are the errors of this specimen."""

    fabrication: TendonFabrication = TendonFabrication()


Reality = RealTendonRod


def drawn_reality(nominal: TendonRodBody, draw: np.random.Generator) -> RealTendonRod:
    """A rod of the distribution that docs/notes/realities-at-random.md describes."""
    fields, made = drawn_shape(draw), drawn_specimen(draw)
    made |= {"tendon_place": draw.uniform(0.01, 0.04) * nominal.section.width}
    made |= {"tendon_stiffness": draw.uniform(0.02, 0.15)}
    differences = some_of(fields | {"fabrication": TendonFabrication(**made)}, CHANCES, draw)
    return RealTendonRod(**differences, elements=drawn_elements(nominal, draw))


def real_simulator(body: TendonRodBody, real: RealTendonRod) -> TendonRodProblem:
    """The rod of a reality.

    Raises:
        SoftformError: If the simulation rejects a value.
    """
    made, count = real.fabrication, len(body.tendons)
    draw = np.random.default_rng(made.seed).standard_normal
    rod = real_shape(body, real, made, draw(body.sections), draw(body.sections))
    shift, stiffness = made.tendon_place * draw((count, 2)), made.tendon_stiffness * draw(count)
    return TendonRodProblem(rod, build_tendons(body, rod, place_shift=shift, stiffness_scale=1.0 + stiffness))
