"""Tetrahedra of 10 nodes as the mesh of a body: its cavities, its base, and its outside."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.elements import TETRAHEDRON_SIDES, TURNED_TRIANGLE
from softform_core.bodies.solid.mesh import SolidMesh

_IN_FOUR = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])
"""Flat triangles over a face of 6 nodes."""


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
    sides = elements[:, TETRAHEDRON_SIDES].reshape(-1, 6)
    _, first, times = np.unique(_keys(sides, len(nodes)), return_index=True, return_counts=True)
    sides = sides[first[times == 1]]  # those between two elements are there twice
    keys, cavity = _keys(sides, len(nodes)), np.full(len(sides), -1)
    for number_of_cavity, walls in enumerate(cavities):
        cavity[np.isin(keys, _keys(walls, len(nodes)))] = number_of_cavity
    in_base = (nodes[sides, 2] < in_plane).all(axis=1)
    base, shown = np.unique(sides[in_base]), (cavity < 0) & ~in_base
    outside, faces = np.unique(sides[shown][:, _IN_FOUR].reshape(-1, 3), return_inverse=True)
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


def _keys(triangles: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """A number for each triangle (T, 6) over `count` nodes, the same from both sides: of the middles of its edges."""
    low, middle, high = np.sort(triangles[:, 3:].astype(np.int64), axis=1).T
    return np.asarray((low * count + middle) * count + high)
