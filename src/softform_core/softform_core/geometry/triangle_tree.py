"""Exact closest points on triangles by a tree of bounding boxes; numba runs the search without the GIL."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.geometry.box_tree import STACK, box_tree, guesses, push_children, push_siblings

_LEAF = 1
"""Triangles of a leaf: boxes of several let in triangles that a box of their own keeps out."""


class TriangleTree:
    """Triangles that answer for their closest points.

    Args:
        corners: (F, 3, 3) corners a, b, c of each triangle; none without area.
    """

    def __init__(self, corners: Array) -> None:
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        self._tree = box_tree(np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c), _LEAF)
        self._corners = np.ascontiguousarray(corners[self._tree.order])
        self._last = np.zeros(0, dtype=np.int64)

    def query(self, points: Array) -> tuple[NDArray[np.int64], Array, Array]:
        """Return closest triangles (P,), the points on them (P, 3) and their barycentrics (P, 3) to (P, 3) points."""
        triangle = guesses(self._last, len(points))
        along = _search(np.ascontiguousarray(points), self._corners, self._tree.boxes, triangle)
        self._last = triangle
        barycentric = np.stack([1.0 - along.sum(axis=1), along[:, 0], along[:, 1]], axis=1)
        closest = np.einsum("pc,pcx->px", barycentric, self._corners[triangle])
        return self._tree.order[triangle], closest, barycentric


@njit(cache=True, nogil=True)
def _closest_on_triangle(x, y, z, corners, t):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return squared distance and barycentrics; corner, edge and inner regions as in Ericson 2005, Sec. 5.1.5."""
    ax, ay, az = corners[t, 0, 0], corners[t, 0, 1], corners[t, 0, 2]
    abx, aby, abz = corners[t, 1, 0] - ax, corners[t, 1, 1] - ay, corners[t, 1, 2] - az
    acx, acy, acz = corners[t, 2, 0] - ax, corners[t, 2, 1] - ay, corners[t, 2, 2] - az
    px, py, pz = x - ax, y - ay, z - az
    bb, cc, bc = (
        abx * abx + aby * aby + abz * abz,
        acx * acx + acy * acy + acz * acz,
        abx * acx + aby * acy + abz * acz,
    )
    d1, d2 = abx * px + aby * py + abz * pz, acx * px + acy * py + acz * pz
    d3, d4, d5, d6 = d1 - bb, d2 - bc, d1 - bc, d2 - cc
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        v, w = 0.0, 0.0
    elif d3 >= 0.0 and d4 <= d3:
        v, w = 1.0, 0.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v, w = d1 / bb, 0.0
    elif d6 >= 0.0 and d5 <= d6:
        v, w = 0.0, 1.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        v, w = 0.0, d2 / cc
    elif va <= 0.0 and d4 >= d3 and d5 >= d6:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        v = 1.0 - w
    else:
        v, w = vb / (va + vb + vc), vc / (va + vb + vc)
    dx, dy, dz = px - v * abx - w * acx, py - v * aby - w * acy, pz - v * abz - w * acz
    return dx * dx + dy * dy + dz * dz, v, w


@njit(cache=True, nogil=True)
def _search(points, corners, boxes, found):  # type: ignore[no-untyped-def]  # numba infers the types
    """Replace the guesses in `found`, -1 where there is none, by the closest triangles; where on them (P, 2)."""
    inner = len(boxes)
    along = np.empty((len(points), 2))
    stack, bound, distances = np.empty(STACK, dtype=np.int64), np.empty(STACK), np.empty(4)
    for index in range(len(points)):
        x, y, z = points[index, 0], points[index, 1], points[index, 2]
        # Neighbouring queries follow each other: the last answer bounds the next one from the start.
        guess, nearest, seen = found[index], max(found[index - 1], 0) if index > 0 else 0, 0
        best, best_v, best_w = _closest_on_triangle(x, y, z, corners, nearest)
        stack[0], bound[0], depth = 0, 0.0, 1
        if guess >= 0:
            distance, v, w = _closest_on_triangle(x, y, z, corners, guess)
            if distance <= best:
                # Upwards from there, instead of down from the root: what lies beside the way is seldom near enough.
                best, best_v, best_w, nearest = distance, v, w, guess
                seen, depth = inner + guess, 0
        while depth > 0 or seen > 0:
            if depth == 0:
                depth = push_siblings(x, y, z, boxes, seen, best, stack, bound, distances)
                seen = (seen - 1) // 4
                continue
            depth -= 1
            if bound[depth] >= best:
                continue
            node = stack[depth]
            if node < inner:
                depth = push_children(x, y, z, boxes, node, best, stack, bound, depth)
                continue
            distance, v, w = _closest_on_triangle(x, y, z, corners, node - inner)
            if distance < best:
                best, best_v, best_w, nearest = distance, v, w, node - inner
        found[index] = nearest
        along[index, 0], along[index, 1] = best_v, best_w
    return along
