"""Skins of slender bodies: triangles that a centre line and its directors carry.

The centre line is a row of stations, fixed in the material: the base, `STEPS` along each section, and the far face of
the disc behind it. Each vertex of the skin lies in the cross-section of one station. Paper 004, Sec. VI-D1, sweeps its
physics-based model to a cloud in the same way.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.placement import Elements
from softform_core.bodies.rotations import one_after_another, turns_by
from softform_core.errors import SoftformError

STEPS = 4
"""Stations along a section: a chord of 5 mm at the strongest bend of the robot lies 0.04 mm within its arc."""
_AROUND = 20


@dataclass(frozen=True, eq=False)
class Skin:
    """Triangles over V vertices, carried by S stations.

    Attributes:
        station: (V,) of each vertex.
        offset: (V, 2) from the centre line along the station's first two directors, m.
        faces: (F, 3), normals outwards by the right-hand rule.
    """

    station: NDArray[np.int64]
    offset: Array
    faces: NDArray[np.int32]

    def vertices(self, centre_line: Array, directors: Array) -> Array:
        """Return vertices (..., V, 3) m of a centre line (..., S, 3) m with directors (..., S, 3, 3), as columns.

        All in one unit: with `centre_line` in mm give `offset` in mm, too (`scaled`).
        """
        carried = (directors[..., self.station, :, :2] @ self.offset[:, :, None])[..., 0]
        return np.asarray(centre_line[..., self.station, :] + carried)

    def scaled(self, factor: float) -> "Skin":
        """Return the same skin in another unit."""
        return Skin(self.station, factor * self.offset, self.faces)

    def samples(self, vertices: Array, count: int, seed: int = 0) -> tuple[NDArray[np.int64], Array]:
        """Return `count` places spread evenly over the skin of one shape, vertices (V, 3): (count, 3) and weights.

        The weights (count, 3) of these vertices give the same places of the material on every shape.
        """
        a, b, c = vertices[self.faces].transpose(1, 0, 2)
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
        random = np.random.default_rng(seed)
        # One draw in each of equal parts of the area: more even than independent draws.
        share = (np.arange(count) + random.random(count)) / count
        face = np.searchsorted(np.cumsum(area) / area.sum(), share).clip(max=len(area) - 1)
        u, v = random.random((2, count))
        u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
        return self.faces[face].astype(np.int64), np.stack([1.0 - u - v, u, v], axis=1)


def stations(sections: int) -> int:
    """Return the number S of stations of so many sections."""
    return 1 + sections * (STEPS + 1)


def centre_line(rod: Elements, bends: Array) -> tuple[Array, Array]:
    """Return the stations (n, S, 3) m of elements with bends (n, E, 4), and their directors (n, S, 3, 3), as columns.

    Raises:
        SoftformError: If the number of elements of a section is no divisor of `STEPS`.
    """
    sections = int(rod.section[-1]) + 1
    pieces, rest = divmod(STEPS * sections, len(rod.length))
    if rest:
        raise SoftformError(
            f"A section of {len(rod.length) // sections} elements has no {STEPS} equal steps.",
            f"Give the robot as many `elements` as divide {STEPS}.",
        )
    samples = len(bends)
    small = np.repeat(bends, pieces, axis=1)
    small[..., :3] /= pieces
    length = np.repeat(rod.length / pieces, pieces)
    # Each section is followed by its rigid link.
    moves, link = np.zeros((samples, sections, STEPS + 1, 3)), rod.link_length.reshape(sections, -1)[:, -1]
    turns, turned = np.tile(np.eye(3), (samples, sections, STEPS + 1, 1, 1)), turns_by(small[..., :3])
    turns[:, :, :STEPS] = turned.turn.reshape(samples, sections, STEPS, 3, 3)
    along = (length * (1.0 + small[..., 3]))[..., None] * turned.mean[..., 2]
    moves[:, :, :STEPS], moves[:, :, STEPS, 2] = along.reshape(samples, sections, STEPS, 3), link
    directors = one_after_another(rod.base, turns.reshape(samples, -1, 3, 3))
    steps = (directors[:, :-1] @ moves.reshape(samples, -1, 3, 1))[..., 0]
    return np.concatenate([np.zeros((samples, 1, 3)), np.cumsum(steps, axis=1)], axis=1), directors


def swept_skin(sections: int, rim: Array, disc_radius: float) -> Skin:
    """Return the skin of a rod: its tube, closed at its ends, and a closed drum of each disc.

    Args:
        sections: Number of them, each followed by a disc.
        rim: (2,) half the width and height of the tube's elliptic section, m.
        disc_radius: m; 0 of none.
    """
    angle = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    parts: list[tuple[NDArray[np.int64], Array, NDArray[np.int64]]] = []
    last = stations(sections) - 1
    # A rod's end that is closed by its last disc lies within it.
    parts.append(_drum(np.arange(last + 1), circle * rim))
    if disc_radius:
        for section in range(sections):
            far = (section + 1) * (STEPS + 1)
            parts.append(_drum(np.array([far - 1, far]), disc_radius * circle))
    station, offset, faces = [], [], []
    count = 0
    for one_station, one_offset, one_faces in parts:
        station.append(one_station)
        offset.append(one_offset)
        faces.append(one_faces + count)
        count += len(one_station)
    return Skin(np.concatenate(station), np.concatenate(offset), np.concatenate(faces).astype(np.int32))


def _drum(along: NDArray[np.int64], ring: Array) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
    """Return stations, offsets and outward triangles of a tube over rings at stations `along`, closed at both ends."""
    rows, around = len(along), len(ring)
    station = np.concatenate([np.repeat(along, around), along[[0, -1]]])
    offset = np.concatenate([np.tile(ring, (rows, 1)), np.zeros((2, 2))])
    return station, offset, closed_tube(rows, around)


def closed_tube(rows: int, around: int) -> NDArray[np.int64]:
    """Return outward triangles (F, 3) over `rows` rings of `around` points each, then the middles of both ends."""
    here = np.arange(around)
    ahead = (here + 1) % around
    faces = []
    for row in range(rows - 1):
        low, high = row * around, (row + 1) * around
        faces += [
            np.stack([low + here, low + ahead, high + ahead], axis=1),
            np.stack([low + here, high + ahead, high + here], axis=1),
        ]
    first, end = rows * around, (rows - 1) * around
    faces += [
        np.stack([np.full(around, first), ahead, here], axis=1),
        np.stack([np.full(around, first + 1), end + here, end + ahead], axis=1),
    ]
    return np.concatenate(faces)
