"""The simulators of an arm of bellows: as described, for data sets, and as a real arm differs from it.

docs/steps/write-a-reality.md explains every field of a reality.
"""

from typing import Annotated

import numpy as np
from pydantic import Field, model_validator
from scipy.spatial.transform import Rotation

from softform_core.bodies.bellows.chain import Chain, ChainProblem
from softform_core.bodies.bellows.description import BellowsBody
from softform_core.bodies.bellows.equilibrium import GRAVITY, BellowsProblem, build_arm, directors
from softform_core.bodies.bellows.skin import SkinnedArm, skin_of
from softform_core.bodies.realities import Values, log_uniform, positive, some_of, spread_values
from softform_core.robots.description import Description, Finite, NotNegative, Positive
from softform_core.simulation.sampled_body import SampledSurface

_CHANCES = {
    "stiffness_scale": 0.9,
    "area_scale": 0.8,
    "length_scale": 0.8,
    "place_error": 0.8,
    "plate_tilt": 0.8,
    "base_turn": 0.8,
    "tilt": 0.8,
    "bending_scale": 0.8,
    "torsion_scale": 0.5,
    "mass_scale": 0.6,
}
"""That a drawn arm differs in a field."""


class RealBellows(Description):
    """The real arm: rigid discs joined by single folds. Without `folds` it is the simulator's own rod.

    Attributes:
        folds: Joints of each section.
        hardening: Cubic part of the axial law over the stiffness.
        contact: Length at which the folds touch over the natural length, of each bellow.
        contact_stiffness: Stiffness of touching folds over that of the bellow, grows with the square of their overlap.
        shear: Force over angle with which a section gives way sideways, N.
        stiffness_scale: Axial stiffness of each bellow over the described one.
        area_scale: Effective area of each bellow over the described one.
        length_scale: Length of each section over the described one.
        bending_scale: Bending stiffness over the described one.
        torsion_scale: Torsional stiffness over the described one.
        mass_scale: Mass of bellows and plates over the described one.
        place_error: Standard deviation of the two coordinates of each bellow in its section, m.
        plate_tilt: Standard deviation of the two angles at which each plate sits askew, rad.
        base_turn: How the base is mounted: rotation about x, y and z, rad.
        tilt: Angles of the mount out of level, about x and y, rad.
        seed: Seed of places and plates.
    """

    folds: Annotated[int, Field(ge=3, le=40)] | None = None
    hardening: NotNegative = 6.0
    contact: Values = 0.73
    contact_stiffness: Positive = 150.0
    shear: Positive = 250.0
    stiffness_scale: Values = 1.0
    area_scale: Values = 1.0
    length_scale: Values = 1.0
    bending_scale: Positive = 1.0
    torsion_scale: Positive = 1.0
    mass_scale: Positive = 1.0
    place_error: NotNegative = 0.0
    plate_tilt: Annotated[float, Field(ge=0.0, le=0.2)] = 0.0
    base_turn: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    tilt: tuple[Finite, Finite] = (0.0, 0.0)
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _of_discs(self) -> "RealBellows":
        if self.folds is None and self.model_fields_set - {"folds"}:
            raise ValueError("folds must be given: without them the arm is the simulator's own")
        return self


Reality = RealBellows
_AS_DESCRIBED = RealBellows()


def simulator(body: BellowsBody, real: RealBellows = _AS_DESCRIBED) -> SkinnedArm:
    """The arm as a rod of bellows; that of a reality with folds as discs joined by them.

    Raises:
        ValueError: If a list does not fit the number of bellows or sections, or a value is impossible.
    """
    if real.folds is None:
        return BellowsProblem(build_arm(body), skin_of(body))
    return ChainProblem(_chain(body, real, real.folds), skin_of(body, real.folds, 1))


real_simulator = simulator


def sampled(body: BellowsBody) -> SampledSurface:
    """The arm for data sets."""
    return SampledSurface(simulator(body))


def _chain(body: BellowsBody, real: RealBellows, folds: int) -> Chain:
    section, bellows = body.section, len(body.inputs)
    draw = np.random.default_rng(real.seed)
    shift, askew = draw.normal(0.0, 1.0, (bellows, 2)), draw.normal(0.0, 1.0, (body.sections, 2))
    length = section.length * spread_values(real.length_scale, body.sections, "length_scale", positive)
    height = np.repeat(length / folds, folds)
    last = np.tile(np.arange(folds) == folds - 1, body.sections)
    tilts = np.zeros((len(height), 3))
    tilts[last, :2] = real.plate_tilt * askew
    stiffness = section.stiffness * spread_values(real.stiffness_scale, bellows, "stiffness_scale", positive)
    leaning = Rotation.from_euler("xy", real.tilt).inv()
    return Chain(
        section=np.repeat(np.arange(body.sections), folds),
        height=height,
        mass=np.full(len(height), real.mass_scale * section.count * section.mass / folds),
        askew=Rotation.from_rotvec(tilts).as_matrix(),
        plate_length=np.where(last, body.plate_length, 0.0),
        plate_mass=np.where(last, real.mass_scale * body.plate_mass, 0.0),
        base=Rotation.from_rotvec(real.base_turn).as_matrix() @ directors(body),
        gravity=leaning.apply([0.0, 0.0, -GRAVITY]),
        place=np.tile(section.places, (body.sections, 1)) + real.place_error * shift,
        area=section.area * spread_values(real.area_scale, bellows, "area_scale", positive),
        stiffness=stiffness,
        hardening=real.hardening * stiffness,
        contact=spread_values(real.contact, bellows, "contact", _below_natural) - 1.0,
        contact_stiffness=real.contact_stiffness * stiffness,
        shear=real.shear / height,
        bending=real.bending_scale * section.count * section.bending / height,
        torsion=real.torsion_scale * section.count * section.torsion / height,
    )


def _below_natural(values: np.ndarray) -> np.ndarray:
    return (values > 0.0) & (values < 1.0)


def drawn_reality(nominal: BellowsBody, draw: np.random.Generator) -> RealBellows:
    """An arm of the distribution that docs/notes/realities-at-random.md describes."""
    count, section = len(nominal.inputs), nominal.section
    batch, spread = log_uniform(draw, 0.8, 1.25), draw.uniform(0.04, 0.12)
    differences = {
        "stiffness_scale": (batch * np.clip(draw.normal(1.0, spread, count), 0.7, 1.3)).tolist(),
        "area_scale": np.clip(draw.normal(1.0, 0.02, count), 0.94, 1.06).tolist(),
        "length_scale": np.clip(draw.normal(1.0, 0.008, nominal.sections), 0.98, 1.02).tolist(),
        "place_error": draw.uniform(0.005, 0.03) * section.pitch_radius,
        "plate_tilt": draw.uniform(0.004, 0.015),
        "base_turn": tuple(draw.normal(0.0, 0.015, 3)),
        "tilt": tuple(draw.normal(0.0, 0.015, 2)),
        "bending_scale": log_uniform(draw, 0.75, 1.25),
        "torsion_scale": log_uniform(draw, 0.6, 1.6),
        "mass_scale": draw.uniform(0.9, 1.4),
    }
    room = 1.0 - section.shortest
    return RealBellows(
        folds=int(draw.integers(9, 16)),
        hardening=log_uniform(draw, 4.0, 9.0),
        contact=np.clip(1.0 - room * draw.normal(0.7, 0.03, count), 0.5, 0.95).tolist(),
        contact_stiffness=log_uniform(draw, 100.0, 250.0),
        shear=log_uniform(draw, 120.0, 500.0),
        seed=int(draw.integers(2**31)),
        **some_of(differences, _CHANCES, draw),
    )
