"""Meshes of tetrahedra that somebody else made: checked, of 10 nodes each, and curved where their surface is."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from softform_core.arrays import Array
from softform_core.bodies.elements import TETRAHEDRON_EDGES, TETRAHEDRON_SIDES, tetrahedron_shapes
from softform_core.bodies.freeform.block import free_sides
from softform_core.bodies.freeform.description import MOST_CELLS
from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.surface.closed import Closed, place
from softform_core.surface.mesh import parts_of

_AT_NODES = np.concatenate([np.eye(4)[:, 1:], 0.5 * (np.eye(4)[TETRAHEDRON_EDGES].sum(axis=1))[:, 1:]])
"""Reference coordinates (10, 3) of the nodes of a tetrahedron."""
_LEAST = 0.2
"""Volume at each node of a curved tetrahedron over that of the straight one, at least."""
_HALVINGS = 4
_FLAT = 1e-4
"""Volume of a tetrahedron over that of a cube of its longest edge, below which it is flat."""


def checked_tetrahedra(points: Array, elements: NDArray[np.int64], name: str) -> tuple[Array, NDArray[np.int64]]:
    """Nodes (V, 3) m and tetrahedra (E, 10) of a mesh; straight ones get nodes in the middle of their edges.

    Args:
        points: (N, 3) m.
        elements: (E, 4) or (E, 10); those that are inside out are turned.
        name: Of its file.

    Raises:
        SoftformError: If there are too many, one is flat, more than two meet at a side, two lie on the same side of
            one, or they are in pieces.
    """
    if len(elements) > MOST_CELLS:
        raise SoftformError(
            f"{name} has {len(elements)} tetrahedra; at most {MOST_CELLS} are simulated.", "Mesh it coarser."
        )
    elements = _turned(points, elements, name)
    corners = elements[:, :4]
    outwards = corners[:, TETRAHEDRON_SIDES[:, :3]].reshape(-1, 3)
    sides, number, uses = np.unique(np.sort(outwards, axis=1), axis=0, return_inverse=True, return_counts=True)
    if (uses > 2).any():
        worst = int(np.argmax(uses))
        raise SoftformError(
            f"{name}: {uses[worst]} tetrahedra have one side in common at {place(points[sides[worst]].mean(axis=0))}.",
            "Some are there twice: export it again.",
        )
    # Outwards of one of two tetrahedra at a side is inwards of the other.
    a, b, c = outwards.T
    facing = np.bincount(number.ravel(), np.where((a < b) ^ (b < c) ^ (a < c), 1.0, -1.0), len(sides))
    if (folded := (uses == 2) & (facing != 0.0)).any():
        raise SoftformError(
            f"{name}: the mesh folds over itself at {folded.sum()} sides of its tetrahedra, the first at "
            f"{place(points[sides[int(np.argmax(folded))]].mean(axis=0))}: some are inside out.",
            "Mesh it again; a mesh that was moved may have been moved too far.",
        )
    _check_one_piece(points, corners, name)
    if elements.shape[1] == 4:
        points, elements = with_middles(points, elements)
    elif (inverted := (_sizes(points, elements) <= 0.0).any(axis=1)).any():
        first = int(np.argmax(inverted))
        raise SoftformError(
            f"{name}: {inverted.sum()} of {len(elements)} curved tetrahedra turn inside out, the first is number "
            f"{first} at {place(points[elements[first, :4]].mean(axis=0))}.",
            "Mesh it finer where it is curved, or by straight tetrahedra (order 1).",
        )
    used, elements = np.unique(elements, return_inverse=True)
    return points[used], elements.reshape(-1, 10)


def _turned(points: Array, elements: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    a, b, c, d = points[elements[:, :4]].transpose(1, 0, 2)
    volume = np.einsum("ei,ei->e", np.cross(b - a, c - a), d - a) / 6.0
    one, other = TETRAHEDRON_EDGES.T
    corners = points[elements[:, :4]]
    longest = np.linalg.norm(corners[:, one] - corners[:, other], axis=2).max(axis=1)
    flat = np.abs(volume) < _FLAT * longest**3
    if flat.any():
        first = int(np.argmax(flat))
        raise SoftformError(
            f"{name}: {flat.sum()} of {len(elements)} tetrahedra are flat, the first is number {first} at "
            f"{place(corners[first].mean(axis=0))}.",
            "Mesh it again with a limit on the quality of its cells.",
        )
    turned = [1, 0, 2, 3, *([4, 6, 5, 8, 7, 9] if elements.shape[1] == 10 else [])]
    return np.where(volume[:, None] < 0.0, elements[:, turned], elements)


def _check_one_piece(points: Array, corners: NDArray[np.int64], name: str) -> None:
    """Reject tetrahedra that do not hang together by their nodes."""
    used, local = np.unique(corners, return_inverse=True)
    local = local.reshape(-1, 4)
    pairs = np.concatenate([local[:, [0, k]] for k in (1, 2, 3)])
    graph = csr_matrix((np.ones(len(pairs)), pairs.T), (len(used), len(used)))
    count, piece = connected_components(graph, directed=False)
    if count == 1:
        return
    sizes = np.bincount(piece)
    lone = int(np.argsort(-sizes)[1])
    raise SoftformError(
        f"{name} is in {count} pieces: the second largest has {sizes[lone]} of {len(used)} nodes around "
        f"{place(points[used[piece == lone]].mean(axis=0))}.",
        "Let its parts have their nodes in common where they touch (merge duplicate nodes), or leave the others out.",
    )


def with_middles(points: Array, elements: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Straight tetrahedra (E, 4) with a node in the middle of each edge."""
    edges = np.sort(elements[:, TETRAHEDRON_EDGES].reshape(-1, 2), axis=1)
    unique, number = np.unique(edges, axis=0, return_inverse=True)
    nodes = np.concatenate([points, points[unique].mean(axis=1)])
    return nodes, np.concatenate([elements, len(points) + number.reshape(-1, 6)], axis=1)


def curved(nodes: Array, elements: NDArray[np.int64], parts: Sequence[Closed]) -> tuple[Array, list[NDArray[np.int64]]]:
    """Tetrahedra between closed surfaces, whose nodes between two others are led to the surface that they lie on.

    They go there as far as no element is bent by much.

    Args:
        nodes: (V, 3) m, in the middle of straight edges.
        elements: (E, 10).
        parts: Closed surfaces, between which the tetrahedra lie.

    Returns:
        Nodes (V, 3) m, and the free sides (S, 6) on each surface.
    """
    sides, _ = free_sides(elements, [], len(nodes))
    trees = [TriangleTree(part.points[part.faces]) for part in parts]
    _, component = parts_of(sides[:, :3])
    walls = [np.zeros((0, 6), dtype=np.int64)] * len(parts)
    moves = np.zeros_like(nodes)
    for number in range(int(component.max()) + 1):
        own = sides[component == number]
        corners = nodes[np.unique(own[:, :3])]
        away = [np.linalg.norm(tree.query(corners)[1] - corners, axis=1).mean() for tree in trees]
        nearest, middles = int(np.argmin(away)), np.unique(own[:, 3:])
        walls[nearest] = np.concatenate([walls[nearest], own])
        moves[middles] = trees[nearest].query(nodes[middles])[1] - nodes[middles]
    straight = _sizes(nodes, elements).min(axis=1)
    for halving in range(_HALVINGS + 1):
        bent = (_sizes(nodes + moves, elements) < _LEAST * straight[:, None]).any(axis=1)
        if not bent.any():
            break
        moves[np.unique(elements[bent])] *= 0.5 if halving < _HALVINGS else 0.0
    return nodes + moves, walls


def _sizes(nodes: Array, elements: NDArray[np.int64]) -> Array:
    """Six times the volume that each element has around each of its nodes, (E, 10) m^3."""
    _, slopes = tetrahedron_shapes(_AT_NODES)
    return np.asarray(np.linalg.det(np.einsum("eni,qnr->eqir", nodes[elements], slopes)))
