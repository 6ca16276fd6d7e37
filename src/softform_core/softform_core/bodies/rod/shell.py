"""The outside of a rod at rest, as its description has it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.swept import closed_tube

_AROUND = 24  # a multiple of 8: rectangles have points at their corners and at the middles of their sides


class RodOutside(NamedTuple):
    """What the outside of a rod is described by; SI units, fields as those of `RodShape` and its section.

    Attributes:
        disc_radius: Of the discs that the links are, m; 0 if they are none.
    """

    sections: int
    elements: int
    length: float
    link_length: float
    size: tuple[float, float]
    taper: float
    is_rectangle: bool
    is_planar: bool
    disc_radius: float = 0.0


def rod_shell(rod: RodOutside) -> tuple[Array, NDArray[np.int64]]:
    """Return points (V, 3) m and outward triangles (F, 3) of a straight rod: sections, and links or discs."""
    pitch = rod.length + rod.link_length
    unit = _unit_ring(rod.is_rectangle) * 0.5 * np.array(rod.size)
    share = np.linspace(0.0, 1.0, rod.elements + 1)
    along: list[Array] = []
    rings: list[Array] = []
    for start in pitch * np.arange(rod.sections):
        places, sizes = start + share * rod.length, 1.0 + share * (rod.taper - 1.0)
        if rod.link_length:
            places, sizes = np.append(places, start + pitch), np.append(sizes, sizes[-1])
        if along and sizes[0] == rings[-1][-1]:  # it goes on as the one before ends
            places, sizes = places[1:], sizes[1:]
        along.append(places)
        rings.append(sizes)
    parts = [_part(np.concatenate(along), np.concatenate(rings)[:, None, None] * unit)]
    if rod.disc_radius and rod.link_length:
        disc = np.tile(rod.disc_radius * _unit_ring(is_rectangle=False), (2, 1, 1))
        ends = pitch * np.arange(1, rod.sections + 1)
        parts += [_part(np.array([end - rod.link_length, end]), disc) for end in ends]
    counts = np.cumsum([0, *(len(points) for points, _ in parts)])
    points = np.concatenate([points for points, _ in parts])
    faces = np.concatenate([faces + count for (_, faces), count in zip(parts, counts[:-1], strict=True)])
    return (points[:, [2, 0, 1]] if rod.is_planar else points), faces


def _unit_ring(is_rectangle: bool) -> Array:
    """Points (A, 2) around the unit circle, or around the square of side 2."""
    angle = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return ring / np.abs(ring).max(axis=1, keepdims=True) if is_rectangle else ring


def _part(along: Array, rings: Array) -> tuple[Array, NDArray[np.int64]]:
    """Points and triangles of a closed tube over rings (R, A, 2) at places (R,) of the axis, which is z."""
    height = np.broadcast_to(along[:, None, None], (*rings.shape[:2], 1))
    ends = np.array([[0.0, 0.0, along[0]], [0.0, 0.0, along[-1]]])
    points = np.concatenate([np.concatenate([rings, height], axis=2).reshape(-1, 3), ends])
    return points, closed_tube(*rings.shape[:2])
