"""The arm as arrays: a rod, without shear, whose axial law is that of its bellows; kinematics: `bodies.placement`."""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.description import BellowsBody
from softform_core.bodies.placement import Elements, in_sections

GRAVITY = 9.81

DOWN = np.diag([1.0, -1.0, -1.0])
"""Directors of a hanging arm: its first bellow lies on the x axis, and it leads along -z."""


@dataclass(frozen=True, eq=False)
class BellowsArm(Elements):
    """E elements with k bellows, whose links are the plates; SI units.

    Attributes:
        place: (k, 2) of each bellow in the cross-section.
        area: (k,).
        stiffness: (k,) force over strain at the natural length, N.
        shortest: (k,) least strain, below 0.
        longest: (k,) largest strain.
        bending: (E,) of all bellows about their own axes, N m².
        torsion: (E,) N m².
    """

    place: Array
    area: Array
    stiffness: Array
    shortest: Array
    longest: Array
    bending: Array
    torsion: Array


def build_arm(body: BellowsBody) -> BellowsArm:
    """Arrays of an arm."""
    section, bellows = body.section, len(body.inputs)
    elements = body.sections * body.elements
    mass = np.full(elements, section.count * section.mass / body.elements)
    return BellowsArm(
        **in_sections(body.sections, mass, body.plate_length, body.plate_mass),
        length=np.full(elements, section.length / body.elements),
        base=directors(body),
        gravity=np.array([0.0, 0.0, -GRAVITY]),
        place=np.tile(section.places, (body.sections, 1)),
        area=np.full(bellows, section.area),
        stiffness=np.full(bellows, section.stiffness),
        shortest=np.full(bellows, section.shortest - 1.0),
        longest=np.full(bellows, section.longest - 1.0),
        bending=np.full(elements, section.count * section.bending),
        torsion=np.full(elements, section.count * section.torsion),
    )


def directors(body: BellowsBody) -> Array:
    """Directors (3, 3) at the base, as columns: the third leads along the arm."""
    return DOWN if body.hanging else np.eye(3)
