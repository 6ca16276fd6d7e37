"""Tetrahedra of 10 nodes as the mesh of a body; those of boxes, cylinders and cones along z without a mesher.

Of a body without chambers it is a grid whose cells are split.

Each cell of the grid is six tetrahedra around its diagonal (Kuhn). Those of the halves below the middle in x and y are
mirror images of the others, so that the mesh is its own mirror image, and so that the diagonals of a round one's four
corners run into them: a cell there would be flat. A square is led to a disc by

    x' = x sqrt(1 - y^2 / 2),   y' = y sqrt(1 - x^2 / 2)
"""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.elements import IN_FOUR, TETRAHEDRON_EDGES, TETRAHEDRON_SIDES, TURNED_TRIANGLE
from softform_core.bodies.freeform.description import IN_PLANE, Box, Cylinder, Ellipsoid, FreeformBody, Part
from softform_core.bodies.solid.mesh import SolidMesh


class FreeformMesh(NamedTuple):
    """The mesh and its outside.

    Attributes:
        solid: Tetrahedra, cavities and the base, which lies in z = 0.
        outside: (P,) nodes of the surface.
        faces: (F, 3) over those, outwards; without the base.
    """

    solid: SolidMesh
    outside: NDArray[np.int64]
    faces: NDArray[np.int32]


def meshed(
    nodes: Array,
    elements: NDArray[np.int64],
    is_rigid: NDArray[np.bool_],
    cavities: Sequence[NDArray[np.int64]],
    in_plane: float,
) -> FreeformMesh:
    """The mesh of tetrahedra, with what lies on their free sides.

    Args:
        nodes: (V, 3) m.
        elements: (E, 10).
        is_rigid: (E,) whether each is of what is stiff.
        cavities: Triangles (T, 6) that are the walls of each cavity.
        in_plane: Height up to which a node lies in the base, m.
    """
    sides, cavity = free_sides(elements, cavities, len(nodes))
    in_base = (nodes[sides, 2] < in_plane).all(axis=1)
    base, shown = np.unique(sides[in_base]), (cavity < 0) & ~in_base
    outside, faces = np.unique(sides[shown][:, IN_FOUR].reshape(-1, 3), return_inverse=True)
    return FreeformMesh(
        solid=SolidMesh(
            nodes=nodes,
            elements=elements.astype(np.int32),
            is_plate=is_rigid,
            is_wall=~is_rigid,
            rectangles=np.zeros((0, 9), dtype=np.int32),
            cavity_of_rectangle=np.zeros(0, dtype=np.int64),
            caps=sides[cavity >= 0][:, TURNED_TRIANGLE].astype(np.int32),
            cavity_of_cap=cavity[cavity >= 0],
            base=base,
            foot=base,
        ),
        outside=outside,
        faces=faces.reshape(-1, 3).astype(np.int32),
    )


def free_sides(
    elements: NDArray[np.integer], cavities: Sequence[NDArray[np.int64]], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sides (S, 6) of tetrahedra (E, 10) that are no other's, outwards, and the cavity (S,) of each, -1 of no cavity.

    Args:
        elements: Over `count` nodes.
        cavities: As of `meshed`.
        count: Number of nodes.
    """
    sides = elements[:, TETRAHEDRON_SIDES].reshape(-1, 6).astype(np.int64)
    _, first, times = np.unique(_keys(sides, count), return_index=True, return_counts=True)
    sides = sides[first[times == 1]]  # those between two elements are there twice
    keys, cavity = _keys(sides, count), np.full(len(sides), -1)
    for number_of_cavity, walls in enumerate(cavities):
        cavity[np.isin(keys, _keys(walls, count))] = number_of_cavity
    return sides, cavity


def _keys(triangles: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """A number for each triangle (T, 6) over `count` nodes, the same from both sides: of the middles of its edges."""
    low, middle, high = np.sort(triangles[:, 3:].astype(np.int64), axis=1).T
    return np.asarray((low * count + middle) * count + high)


def block_of(body: FreeformBody) -> Box | Cylinder | None:
    """The one part that is a body whose mesh is a grid; None of another body."""
    if len(body.shape) > 1 or body.chambers:
        return None
    part = body.shape[0]
    if isinstance(part, Cylinder):
        upright = part.begin[:2] == part.end[:2] and part.begin[2] == 0.0 < part.end[2]
        return part if upright else None
    return part if isinstance(part, Box) else None


def mesh_block(body: FreeformBody, part: Box | Cylinder) -> FreeformMesh:
    """Its mesh.

    Args:
        body: The description; its rigid parts are the elements whose middle lies in one of them.
        part: Result of `block_of`.
    """
    low, high = part.bounds
    low = np.maximum(low, [-np.inf, -np.inf, 0.0])
    halves = np.maximum(1, np.round((high - low)[:2] / (2.0 * body.mesh_size))).astype(int)
    counts = (*(2 * halves).tolist(), max(1, round(float(high[2] - low[2]) / body.mesh_size)))
    lines = np.stack(np.meshgrid(*(np.linspace(-1.0, 1.0, 2 * count + 1) for count in counts), indexing="ij"), axis=-1)
    unit = lines.reshape(-1, 3)
    if isinstance(part, Cylinder):
        unit = np.column_stack([unit[:, :2] * np.sqrt(1.0 - 0.5 * unit[:, 1::-1] ** 2), unit[:, 2]])
        share = 0.5 * (1.0 + unit[:, 2:])
        radius = part.radius + share * ((part.end_radius or part.radius) - part.radius)
        nodes = np.column_stack([part.begin[:2] + radius * unit[:, :2], high[2] * share])
    else:
        nodes = 0.5 * (low + high) + 0.5 * (high - low) * unit
    elements = _split_cells(counts)
    return meshed(nodes, elements, in_rigid(body.rigid, nodes, elements), [], IN_PLANE * body.size)


def in_rigid(rigid: list[Part], nodes: Array, elements: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether the middle of each of the elements (E, 10) over nodes (V, 3) m lies in one of the parts, (E,)."""
    middle = nodes[elements[:, :4]].mean(axis=1)
    return np.any([np.zeros(len(elements), dtype=bool), *(within(part, middle) for part in rigid)], axis=0)


def _split_cells(counts: tuple[int, ...]) -> NDArray[np.int64]:
    """Tetrahedra (E, 10) over a grid with two lines a cell, of so many cells along x, y and z."""
    shape = tuple(2 * count + 1 for count in counts)
    cells = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3)
    mirrored = cells < np.array([counts[0] // 2, counts[1] // 2, 0])
    elements = []
    for order in permutations(range(3)):
        path = np.zeros((4, 3), dtype=np.int64)  # from one corner of a cell to the other, along one axis after another
        for step, axis in enumerate(order):
            path[step + 1 :, axis] = 1
        turned = np.where(mirrored[:, None], 1 - path, path)  # (C, 4, 3)
        # A mirror image of a tetrahedron is inside out, as is one of an odd order.
        is_odd = (np.linalg.det(np.eye(3)[list(order)]) < 0.0) ^ (mirrored.sum(axis=1) % 2 == 1)
        turned[is_odd] = turned[is_odd][:, [0, 2, 1, 3]]
        corners = 2 * (cells[:, None] + turned)
        one, other = TETRAHEDRON_EDGES.T
        places = np.concatenate([corners, (corners[:, one] + corners[:, other]) // 2], axis=1)
        elements.append(np.ravel_multi_index(tuple(np.moveaxis(places, 2, 0)), shape))
    return np.concatenate(elements)


def within(part: Part, points: Array) -> NDArray[np.bool_]:
    """Whether each of the points (P, 3) m lies in a part."""
    if isinstance(part, Box):
        return np.asarray(((points >= part.begin) & (points <= part.end)).all(axis=1))
    if isinstance(part, Ellipsoid):
        return np.asarray((((points - part.centre) / part.radii) ** 2).sum(axis=1) <= 1.0)
    along = np.subtract(part.end, part.begin)
    share = (points - part.begin) @ along / (along @ along)
    distance = np.linalg.norm(points - part.begin - share[:, None] * along, axis=1)
    radius = part.radius + share * ((part.end_radius or part.radius) - part.radius)
    return np.asarray((share >= 0.0) & (share <= 1.0) & (distance <= radius))
