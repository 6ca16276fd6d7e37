"""Nearest points of a cloud, and the planes through their surroundings; numba runs the searches without the GIL."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softform_core.kinematics.box_tree import FAST, STACK, box_tree, push_children

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_LEAF = 24
_SPACED_BY = 6
"""Neighbours whose mean distance is the spacing around a point."""


class PointTree:
    """A cloud that answers for its nearest points.

    Args:
        points: (N, 3), finite, N > 0.
    """

    def __init__(self, points: Array) -> None:
        """Order the points; about a millisecond for 20 000."""
        points = np.ascontiguousarray(points, dtype=np.float64)
        self._tree = box_tree(points, points, _LEAF)
        self._points = np.ascontiguousarray(points[self._tree.order].T)
        self._place = np.empty_like(self._tree.order)
        self._place[self._tree.order] = np.arange(len(points))

    def nearest(self, queries: Array, guesses: Indices | None = None) -> Indices:
        """Points nearest to others.

        Args:
            queries: (M, 3), finite.
            guesses: (M,) index of a point that may be near each; the better they are, the shorter the search.

        Returns:
            (M,) index of the nearest.
        """
        # Without a guess: neighbouring queries follow each other, so that the last answer is one (-1).
        places = np.full(len(queries), -1) if guesses is None else self._place[guesses]
        _nearest(np.ascontiguousarray(queries), self._points, self._tree.boxes, self._tree.leaf, places)
        return self._tree.order[places]

    def surroundings(self, index: Indices, neighbours: int) -> tuple[Array, Array]:
        """Planes through the surroundings of points of the cloud.

        Args:
            index: (M,) of the points.
            neighbours: Points of a neighbourhood, itself included.

        Returns:
            Unit normals (M, 3), the direction of least variance of the nearest neighbours, of either sign; and the
            spacing (M,): the mean distance to the six nearest.
        """
        count = min(neighbours, self._points.shape[1])
        normals, spacing = np.empty((len(index), 3)), np.zeros(len(index))
        _surroundings(self._place[index], self._points, self._tree.boxes, self._tree.leaf, count, normals, spacing)
        return normals, spacing


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _squared_distances(x, y, z, points, start, stop, out):  # type: ignore[no-untyped-def]  # numba infers the types
    for place in range(start, stop):
        dx, dy, dz = points[0, place] - x, points[1, place] - y, points[2, place] - z
        out[place - start] = dx * dx + dy * dy + dz * dz


@njit(cache=True, nogil=True, fastmath=FAST)
def _nearest(queries, points, boxes, leaf, found):  # type: ignore[no-untyped-def]  # numba infers the types
    """Replace the guesses in `found`, -1 where there is none, by the nearest."""
    inner, count = len(boxes), points.shape[1]
    stack, bound, squared = np.empty(STACK, dtype=np.int64), np.empty(STACK), np.empty(leaf)
    for query in range(len(queries)):
        x, y, z = queries[query, 0], queries[query, 1], queries[query, 2]
        nearest = found[query]
        if nearest < 0:
            nearest = found[query - 1] if query > 0 else 0
        _squared_distances(x, y, z, points, nearest, nearest + 1, squared)
        best = squared[0]
        stack[0], bound[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            if bound[depth] >= best:
                continue
            node = stack[depth]
            if node < inner:
                depth = push_children(x, y, z, boxes, node, best, stack, bound, depth)
                continue
            start = (node - inner) * leaf
            stop = min(start + leaf, count)
            _squared_distances(x, y, z, points, start, stop, squared)
            for place in range(start, stop):
                if squared[place - start] < best:
                    best, nearest = squared[place - start], place
        found[query] = nearest
    return found


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _neighbours(x, y, z, points, boxes, leaf, limit, nearest, distances, space):  # type: ignore[no-untyped-def]
    """Fill the points nearer than `limit` (squared), at most as many as there is room for, the nearest first.

    Returns:
        How many there are.
    """
    inner, room, found = len(boxes), len(nearest), 0
    stack, bound, squared = space
    stack[0], bound[0], depth = 0, 0.0, 1
    while depth > 0:
        depth -= 1
        if bound[depth] >= limit:
            continue
        node = stack[depth]
        if node < inner:
            depth = push_children(x, y, z, boxes, node, limit, stack, bound, depth)
            continue
        start = (node - inner) * leaf
        stop = min(start + leaf, points.shape[1])
        _squared_distances(x, y, z, points, start, stop, squared)
        for place in range(start, stop):
            distance = squared[place - start]
            if distance < limit:
                found = min(found + 1, room)
                slot = found - 1
                while slot > 0 and distances[slot - 1] > distance:
                    distances[slot], nearest[slot] = distances[slot - 1], nearest[slot - 1]
                    slot -= 1
                distances[slot], nearest[slot] = distance, place
                if found == room:
                    limit = distances[room - 1]
    return found


@njit(cache=True, nogil=True, fastmath=FAST)
def _surroundings(places, points, boxes, leaf, room, normals, spacing):  # type: ignore[no-untyped-def]  # as above
    nearest, distances = np.empty(room, dtype=np.int64), np.empty(room)
    space = (np.empty(STACK, dtype=np.int64), np.empty(STACK), np.empty(leaf))
    for index in range(len(places)):
        place = places[index]
        x, y, z = points[0, place], points[1, place], points[2, place]
        limit = _first_limit(points, (place // leaf) * leaf, leaf, room)
        while _neighbours(x, y, z, points, boxes, leaf, limit, nearest, distances, space) < room:
            limit *= 4.0
        spaced = min(room - 1, _SPACED_BY)
        for neighbour in range(1, spaced + 1):
            spacing[index] += np.sqrt(distances[neighbour]) / spaced
        sx = sy = sz = xx = xy = xz = yy = yz = zz = 0.0
        for neighbour in nearest:
            dx, dy, dz = points[0, neighbour] - x, points[1, neighbour] - y, points[2, neighbour] - z
            sx, sy, sz = sx + dx, sy + dy, sz + dz
            xx, xy, xz = xx + dx * dx, xy + dx * dy, xz + dx * dz
            yy, yz, zz = yy + dy * dy, yz + dy * dz, zz + dz * dz
        normals[index, 0], normals[index, 1], normals[index, 2] = _least_direction(
            xx - sx * sx / room,
            xy - sx * sy / room,
            xz - sx * sz / room,
            yy - sy * sy / room,
            yz - sy * sz / room,
            zz - sz * sz / room,
        )


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _first_limit(points, start, leaf, room):  # type: ignore[no-untyped-def]  # numba infers the types
    """Squared radius that would hold a few more than `room` points were the leaf that starts there a flat patch."""
    stop = min(start + leaf, points.shape[1])
    shortest, middle, longest = 0.0, 0.0, 0.0
    for axis in range(3):
        low = high = points[axis, start]
        for place in range(start + 1, stop):
            low, high = min(low, points[axis, place]), max(high, points[axis, place])
        extent = high - low
        shortest, middle, longest = (
            min(extent, shortest),
            max(min(extent, longest), min(max(extent, longest), middle)),
            max(extent, longest),
        )
    area = max(middle * longest, 1e-6 * longest * longest, 1e-300)
    return 1.5 * room * area / (np.pi * (stop - start))


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _least_direction(xx, xy, xz, yy, yz, zz):  # type: ignore[no-untyped-def]  # numba infers the types
    """Eigenvector of the smallest eigenvalue of a symmetric 3 x 3 matrix (Smith 1961): no call of LAPACK a matrix."""
    mean = (xx + yy + zz) / 3.0
    xx, yy, zz = xx - mean, yy - mean, zz - mean
    radius = np.sqrt((xx * xx + yy * yy + zz * zz + 2.0 * (xy * xy + xz * xz + yz * yz)) / 6.0)
    if radius <= 1e-15 * mean or radius == 0.0:
        return 0.0, 0.0, 1.0
    determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    cosine = min(max(0.5 * determinant / radius**3, -1.0), 1.0)
    smallest = 2.0 * radius * np.cos((np.arccos(cosine) + 2.0 * np.pi) / 3.0)
    xx, yy, zz = xx - smallest, yy - smallest, zz - smallest
    # The rows span the plane across the eigenvector: their longest product points along it.
    best, bx, by, bz = 0.0, 0.0, 0.0, 1.0
    for x, y, z in (
        (xy * yz - xz * yy, xz * xy - xx * yz, xx * yy - xy * xy),
        (yy * zz - yz * yz, yz * xz - xy * zz, xy * yz - yy * xz),
        (yz * xz - zz * xy, zz * xx - xz * xz, xz * xy - yz * xx),
    ):
        squared = x * x + y * y + z * z
        if squared > best:
            best, bx, by, bz = squared, x, y, z
    length = np.sqrt(best) if best > 0.0 else 1.0
    return bx / length, by / length, bz / length
