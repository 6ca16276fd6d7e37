"""Walls of a body between closed surfaces: whether there are any, and whether tetrahedra fit into them."""

from collections.abc import Sequence

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.freeform.description import MOST_CELLS
from softform_core.errors import SoftformError
from softform_core.geometry.crossings import crossings, distances_along
from softform_core.surface.closed import TOLD, Closed, place
from softform_core.units import MM_PER_M

_SHORTEST_WALL = 0.15
"""Of the edges of the tetrahedra, a wall's least thickness: cells in thinner ones are flat, and turn inside out."""
_MOST_RAYS = 20_000
_FACING = -0.5
"""Cosine between the normals of two sides of a wall, at most; walls that meet in an edge are no thin place."""


def check_apart(parts: Sequence[Closed]) -> None:
    """Reject surfaces that cross themselves or each other, or touch.

    Raises:
        SoftformError: With the first places.
    """
    starts = np.cumsum([0, *(len(one.points) for one in parts)])
    owner = np.repeat(np.arange(len(parts)), [len(one.faces) for one in parts])
    points = np.concatenate([one.points for one in parts])
    faces = np.concatenate([one.faces + start for one, start in zip(parts, starts, strict=False)])
    pairs, places = crossings(points, faces)
    if not len(pairs):
        return
    one, other = (parts[owner[face]] for face in pairs[0])
    told = ", ".join(place(each) for each in places[:TOLD])
    where = f"at {told}" + (f" and at {len(places) - TOLD} more edges" if len(places) > TOLD else "")
    if one is other:
        raise SoftformError(
            f"The surface of {one.name} crosses itself {where}.",
            "Join the bodies in the CAD to one (union), and export it again.",
        )
    raise SoftformError(
        f"{one.name} and {other.name} cross or touch {where}.",
        "A cavity must lie in the body with a wall around it: move it, make it smaller, or close its inlet.",
    )


def check_walls(parts: Sequence[Closed], mesh_size: float) -> None:
    """Reject walls that are too thin for tetrahedra of edges so long, m.

    Args:
        parts: The outside, then what it encloses.
        mesh_size: m.

    Raises:
        SoftformError: With the thinnest place.
    """
    outside, *within = parts
    starts = np.cumsum([0, *(len(one.points) for one in parts)])
    points = np.concatenate([one.points for one in parts])
    turned = [outside.faces, *(one.faces[:, ::-1] for one in within)]
    faces = np.concatenate([one + start for one, start in zip(turned, starts, strict=False)])
    a, b, c = points[faces].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    area = np.linalg.norm(normals, axis=1)
    normals /= np.maximum(area, 1e-300)[:, None]
    chosen = np.flatnonzero(area > 0.0)
    chosen = chosen[np.argsort(-area[chosen])][:_MOST_RAYS]
    middles = (a + b + c)[chosen] / 3.0
    thickness, met = distances_along(points, faces, middles, -normals[chosen], chosen)
    opposite = np.einsum("ri,ri->r", normals[chosen], normals[np.maximum(met, 0)]) < _FACING
    thickness = np.where((met >= 0) & opposite, thickness, np.inf)
    thinnest = int(np.argmin(thickness))
    if thickness[thinnest] < _SHORTEST_WALL * mesh_size:
        largest, least = 0.99 * thickness[thinnest] / _SHORTEST_WALL, least_size(np.ptp(outside.bounds, axis=0))
        finer = f"Choose a mesh_size of {largest:.2g} m at most, or make" if largest > least else "Make"
        raise SoftformError(
            f"The wall of {outside.name} is {MM_PER_M * thickness[thinnest]:.3g} mm thick at "
            f"{place(middles[thinnest])}, too thin for cells of {MM_PER_M * mesh_size:.3g} mm.",
            f"{finer} the wall thicker.",
        )


def least_size(extent: Array) -> float:
    """The shortest edges, m, by which a body of an extent (3,) m is meshed."""
    return float(np.cbrt(np.prod(extent) / MOST_CELLS))
