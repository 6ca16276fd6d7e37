"""Where triangles cross each other, and how far away the next ones are along a ray; numba runs it without the GIL."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.geometry.box_tree import STACK, BoxTree, box_tree

_TOUCHING = 1e-9
"""Of the reference coordinates of a triangle, and of the length of an edge: what touches crosses."""


def crossings(points: Array, faces: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """Edges of triangles that pierce, or touch, a triangle with which they have no corner in common.

    Triangles that lie in one plane and overlap there pierce none.

    Args:
        points: (V, 3).
        faces: (F, 3).

    Returns:
        Pairs (n, 2) of faces, the first one's edge in the second one, and the place (n, 3) of each; one an edge.
    """
    corners = points[faces]
    tree = _tree(corners)
    edges = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2), axis=1)
    edges, first = np.unique(edges, axis=0, return_index=True)
    pierced, share = _pierced(points, edges, np.ascontiguousarray(faces[tree.order]), tree.boxes)
    found = np.flatnonzero(pierced >= 0)
    begin, end = points[edges[found]].transpose(1, 0, 2)
    pairs = np.column_stack([first[found] // 3, tree.order[pierced[found]]])
    return pairs, begin + share[found, None] * (end - begin)


def distances_along(
    points: Array, faces: NDArray[np.int64], origins: Array, along: Array, own: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int64]]:
    """How far from origins (n, 3) the next triangle lies in directions (n, 3), and which it is, (n,) each.

    Where there is none the distance is infinity, and the triangle -1.

    Args:
        points: (V, 3).
        faces: (F, 3).
        origins: Where rays begin.
        along: Unit vectors.
        own: (n,) face that each ray begins on, which does not count.
    """
    corners = points[faces]
    tree = _tree(corners)
    place = np.empty(len(faces), dtype=np.int64)
    place[tree.order] = np.arange(len(faces))
    sorted_corners = np.ascontiguousarray(corners[tree.order])
    distances, met = _next_along(origins, along, place[own], sorted_corners, tree.boxes)
    return distances, np.where(met >= 0, tree.order[met], -1)


def _tree(corners: Array) -> BoxTree:
    return box_tree(corners.min(axis=1), corners.max(axis=1), 1)


@njit(cache=True, nogil=True)
def _meets(origin, along, a, b, c):  # type: ignore[no-untyped-def]  # numba infers the types
    """Where a line meets a triangle (Moeller and Trumbore 1997), in lengths of `along`; NaN where it does not."""
    one, other = b - a, c - a
    normal = np.cross(along, other)
    size = one @ normal
    if size * size <= 1e-24 * (one @ one) * (other @ other) * (along @ along):
        return np.nan  # it lies in the plane of the triangle
    away = origin - a
    u = (away @ normal) / size
    if u < -_TOUCHING or u > 1.0 + _TOUCHING:
        return np.nan
    turned = np.cross(away, one)
    v = (along @ turned) / size
    if v < -_TOUCHING or u + v > 1.0 + _TOUCHING:
        return np.nan
    return (other @ turned) / size


@njit(cache=True, nogil=True)
def _pierced(points, edges, faces, boxes):  # type: ignore[no-untyped-def]  # as above
    """Of each edge (E, 2) the first face that it pierces, -1 if none, and where along it; faces are in tree order."""
    inner = len(boxes)
    found, share = np.full(len(edges), -1), np.zeros(len(edges))
    stack = np.empty(4 * STACK, dtype=np.int64)
    for edge in range(len(edges)):
        i, j = edges[edge]
        begin, end = points[i], points[j]
        low, high = np.minimum(begin, end), np.maximum(begin, end)
        stack[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if node < inner:
                box = boxes[node]
                for child in range(4):
                    apart = False
                    for axis in range(3):
                        if box[axis, child] > high[axis] or box[3 + axis, child] < low[axis]:
                            apart = True
                    if not apart:
                        stack[depth] = 4 * node + 1 + child
                        depth += 1
                continue
            a, b, c = faces[node - inner]
            if i in (a, b, c) or j in (a, b, c):
                continue
            where = _meets(begin, end - begin, points[a], points[b], points[c])
            if where >= -_TOUCHING and where <= 1.0 + _TOUCHING:
                found[edge], share[edge] = node - inner, where
                break
    return found, share


@njit(cache=True, nogil=True)
def _next_along(origins, along, own, corners, boxes):  # type: ignore[no-untyped-def]  # as above
    inner = len(boxes)
    nearest, met = np.full(len(origins), np.inf), np.full(len(origins), -1)
    stack = np.empty(4 * STACK, dtype=np.int64)
    for ray in range(len(origins)):
        origin, direction = origins[ray], along[ray]
        stack[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if node < inner:
                box = boxes[node]
                for child in range(4):
                    if box[0, child] > box[3, child]:
                        continue  # empty
                    enter, leave = 0.0, nearest[ray]
                    for axis in range(3):
                        before, after = box[axis, child] - origin[axis], box[3 + axis, child] - origin[axis]
                        if abs(direction[axis]) < 1e-12:
                            if before > 0.0 or after < 0.0:
                                leave = -1.0
                            continue
                        one, other = before / direction[axis], after / direction[axis]
                        enter, leave = max(enter, min(one, other)), min(leave, max(one, other))
                    if enter <= leave:
                        stack[depth] = 4 * node + 1 + child
                        depth += 1
                continue
            face = node - inner
            if face == own[ray]:
                continue
            where = _meets(origin, direction, corners[face, 0], corners[face, 1], corners[face, 2])
            if where >= 0.0 and where < nearest[ray]:
                nearest[ray], met[ray] = where, face
    return nearest, met
