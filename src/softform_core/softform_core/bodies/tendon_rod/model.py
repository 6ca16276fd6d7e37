"""Tendons along a rod as arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.tendon_rod.description import TendonRodBody


class Tendons(NamedTuple):
    """k tendons along a rod of E elements; SI units.

    Attributes:
        inside: (k, E) whether a tendon runs through an element.
        place: (k, E, 2) of a tendon in the cross-section at the middle of an element.
        slope: (k, E, 2) change of that place along the rod.
        rest_length: (k,) of its way along the straight rod.
        stiffness: (k,) N/m.
    """

    inside: NDArray[np.bool_]
    place: Array
    slope: Array
    rest_length: Array
    stiffness: Array


def build_tendons(
    body: TendonRodBody, rod: Rod, *, place_shift: ArrayLike = 0.0, stiffness_scale: ArrayLike = 1.0
) -> Tendons:
    """Arrays of the tendons of a rod by `build_rod`; their places shifted by (k, 2) m and stiffness scaled by (k,)."""
    count = len(body.tendons)
    shift = np.broadcast_to(place_shift, (count, 2))
    inside = np.array([np.isin(rod.section, body.sections_of(tendon)) for tendon in body.tendons])
    place, slope = np.zeros((2, count, rod.elements, 2))
    for index, tendon in enumerate(body.tendons):
        length = np.where(inside[index], rod.length, 0.0)
        turned = 2.0 * np.pi * tendon.turns * (np.cumsum(length) - 0.5 * length) / length.sum()
        cosine, sine = np.cos(turned), np.sin(turned)
        x, y = np.array(tendon.place) + shift[index]
        place[index] = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=1)
        rate = 2.0 * np.pi * tendon.turns / length.sum()
        slope[index] = rate * np.stack([-place[index, :, 1], place[index, :, 0]], axis=1)
    rest_length = (inside * rod.length * np.sqrt(1.0 + (slope**2).sum(axis=2))).sum(axis=1)
    stiffness = np.array([tendon.stiffness for tendon in body.tendons]) * stiffness_scale / rest_length
    return Tendons(inside, place, slope, rest_length, stiffness)
