"""The arm as arrays: a rod, without shear, whose axial law is that of its bellows; kinematics: `bodies.placement`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.bellows.description import BellowsBody

GRAVITY = 9.81

DOWN = np.diag([1.0, -1.0, -1.0])
"""Directors of a hanging arm: its first bellow lies on the x axis, and it leads along -z."""


class BellowsArm(NamedTuple):
    """`Elements`, E of them, with k bellows; SI units.

    Attributes:
        length: (E,) of each element.
        section: (E,) section of each element.
        node_mass: (E,) mass at the end of each element, kg.
        link_length: (E,) of the plate behind each element; 0 where there is none.
        link_mass: (E,) of that plate.
        base: (3, 3) directors at the base, as columns.
        gravity: (3,) m/s².
        place: (k, 2) of each bellow in the cross-section.
        area: (k,).
        stiffness: (k,) force over strain at the natural length, N.
        shortest: (k,) least strain, below 0.
        longest: (k,) largest strain.
        bending: (E,) of all bellows about their own axes, N m².
        torsion: (E,) N m².
    """

    length: Array
    section: NDArray[np.int64]
    node_mass: Array
    link_length: Array
    link_mass: Array
    base: Array
    gravity: Array
    place: Array
    area: Array
    stiffness: Array
    shortest: Array
    longest: Array
    bending: Array
    torsion: Array


def build_arm(body: BellowsBody) -> BellowsArm:
    """Arrays of an arm."""
    section, per_section = body.section, body.elements
    elements, bellows = body.sections * per_section, body.sections * section.count
    mass = section.count * section.mass / per_section
    last = np.tile(np.arange(per_section) == per_section - 1, body.sections)
    ahead = np.append(np.full(elements - 1, 0.5 * mass), 0.0)  # half of an element's mass is lumped at its beginning
    return BellowsArm(
        length=np.full(elements, section.length / per_section),
        section=np.repeat(np.arange(body.sections), per_section),
        node_mass=0.5 * mass + np.where(last, 0.0, ahead),
        link_length=np.where(last, body.plate_length, 0.0),
        link_mass=np.where(last, body.plate_mass + ahead, 0.0),
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
