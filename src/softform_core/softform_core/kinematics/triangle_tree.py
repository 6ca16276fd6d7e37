"""Exact closest points on triangles by a tree of bounding boxes; numba runs the search without the GIL."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LEAF = 2
_STACK = 64


class TriangleTree:
    """Boxes over triangles in Morton order, a complete binary tree whose node i has the children 2i + 1 and 2i + 2.

    Args:
        corners: (F, 3, 3) corners a, b, c of each triangle; none without area.
    """

    def __init__(self, corners: Array) -> None:
        """Order the triangles and build the boxes from the leaves up."""
        self._order = np.argsort(_morton_codes(corners.mean(axis=1)), kind="stable")
        self._corners = np.ascontiguousarray(corners[self._order])
        starts = np.arange(0, len(corners), _LEAF)
        leaves = 1 << int(np.ceil(np.log2(max(len(starts), 1))))
        low, high = np.full((2 * leaves - 1, 3), np.inf), np.full((2 * leaves - 1, 3), -np.inf)
        first = leaves - 1
        low[first : first + len(starts)] = np.minimum.reduceat(self._corners.min(axis=1), starts)
        high[first : first + len(starts)] = np.maximum.reduceat(self._corners.max(axis=1), starts)
        while first > 0:
            parent = (first - 1) // 2
            low[parent:first] = low[first : 2 * first + 1].reshape(-1, 2, 3).min(axis=1)
            high[parent:first] = high[first : 2 * first + 1].reshape(-1, 2, 3).max(axis=1)
            first = parent
        self._low, self._high = low, high

    def query(self, points: Array) -> tuple[NDArray[np.int64], Array, Array]:
        """Closest triangle of each point.

        Args:
            points: (P, 3), finite.

        Returns:
            Index of the triangle (P,), the closest point on it (P, 3), and its barycentric coordinates (P, 3).
        """
        triangle, along = _search(np.ascontiguousarray(points), self._corners, self._low, self._high)
        barycentric = np.stack([1.0 - along.sum(axis=1), along[:, 0], along[:, 1]], axis=1)
        closest = np.einsum("pc,pcx->px", barycentric, self._corners[triangle])
        return self._order[triangle], closest, barycentric


def _morton_codes(points: Array) -> NDArray[np.int64]:
    low = points.min(axis=0)
    cells = ((points - low) * (1023.0 / max(float(np.ptp(points, axis=0).max()), 1e-300))).astype(np.int64)
    codes = np.zeros(len(points), dtype=np.int64)
    for bit in range(10):
        for axis in range(3):
            codes |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return codes


@njit(cache=True, nogil=True)
def _box_distance(x, y, z, low, high, node):  # type: ignore[no-untyped-def]  # numba infers the types
    dx = max(low[node, 0] - x, x - high[node, 0], 0.0)
    dy = max(low[node, 1] - y, y - high[node, 1], 0.0)
    dz = max(low[node, 2] - z, z - high[node, 2], 0.0)
    return dx * dx + dy * dy + dz * dz


@njit(cache=True, nogil=True)
def _closest_on_triangle(x, y, z, corners, t):  # type: ignore[no-untyped-def]  # numba infers the types
    """Squared distance and barycentric coordinates; corner, edge and inner regions as in Ericson 2005, Sec. 5.1.5."""
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
def _search(points, corners, low, high):  # type: ignore[no-untyped-def]  # numba infers the types
    first_leaf = len(low) // 2
    triangle = np.zeros(len(points), dtype=np.int64)
    along = np.empty((len(points), 2))
    stack = np.empty(_STACK, dtype=np.int64)
    bound = np.empty(_STACK)
    for index in range(len(points)):
        x, y, z = points[index, 0], points[index, 1], points[index, 2]
        # Neighbouring queries follow each other: the last answer bounds the next one from the start.
        nearest = triangle[max(index - 1, 0)]
        best, best_v, best_w = _closest_on_triangle(x, y, z, corners, nearest)
        stack[0], bound[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            if bound[depth] >= best:
                continue
            node = stack[depth]
            if node >= first_leaf:
                start = (node - first_leaf) * _LEAF
                for candidate in range(start, min(start + _LEAF, len(corners))):
                    distance, v, w = _closest_on_triangle(x, y, z, corners, candidate)
                    if distance < best:
                        best, best_v, best_w, nearest = distance, v, w, candidate
                continue
            left = 2 * node + 1
            to_left = _box_distance(x, y, z, low, high, left)
            to_right = _box_distance(x, y, z, low, high, left + 1)
            # The nearer child comes off the stack first, so that the bound falls early.
            first = 1 if to_left < to_right else 0
            stack[depth + first], bound[depth + first] = left, to_left
            stack[depth + 1 - first], bound[depth + 1 - first] = left + 1, to_right
            depth += 2
        triangle[index] = nearest
        along[index, 0], along[index, 1] = best_v, best_w
    return triangle, along
