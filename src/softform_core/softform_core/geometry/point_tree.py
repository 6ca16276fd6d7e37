"""Nearest points of a cloud, and the planes through their surroundings; numba runs the searches without the GIL."""

from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.geometry.box_tree import (
    FAST,
    STACK,
    box_tree,
    guesses,
    push_children,
    push_children_within,
    push_siblings,
)

Indices = NDArray[np.int64]

_LEAF = 24

_SUM = FAST | {"reassoc"}
"""Compiler flags of sums, which may also be taken in another order, several terms at a time."""

_LEAST_PART, _MOST_PART = 0.4, 3.0
"""Limits of the points in a neighbourhood, over those asked for."""

_MOST_TRIALS = 30

_MEAN_DISTANCE = 0.98
"""Mean distance to the six nearest of points strewn at random in a plane, times the root of how many there are an
area: the k-th is Gamma(k + 1/2) / Gamma(k) / sqrt(pi) away."""


class PointTree:
    """A cloud (N, 3) that answers for its nearest points, which it names by their places in the order of the tree.

    Attributes:
        order: (N,) index, in the cloud as it was given, of the point at each place.
        points: (3, N), by place.
    """

    def __init__(self, points: Array) -> None:
        """Order the points; about a millisecond for 20 000."""
        points = np.ascontiguousarray(points, dtype=np.float64)
        self._tree = box_tree(points, points, _LEAF)
        self.order, self.points = self._tree.order, self._tree.centres
        self._last = np.zeros(0, dtype=np.int64)

    @cached_property
    def places(self) -> Indices:
        """Place of each point of the cloud as it was given, (N,)."""
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(places))
        return places

    def nearest(self, queries: Array) -> Indices:
        """Return places (M,) of the points nearest to others, (M, 3), finite."""
        places = guesses(self._last, len(queries))
        _nearest(np.ascontiguousarray(queries), self.points, self._tree.boxes, self._tree.leaf, places)
        self._last = places
        return places

    def surroundings(self, places: Indices, neighbours: int) -> tuple[Array, Array]:
        """Return planes through the surroundings of points of the cloud.

        Neighbours count the less the farther away they are, 1 - (distance / radius)^2: no search for the nearest few,
        and nothing jumps when one of them changes.

        Args:
            places: (M,) of the points.
            neighbours: About how many lie within the radius, itself included.

        Returns:
            Unit normals (M, 3), the direction of least variance, of either sign; and the spacing (M,): the mean
            distance to the six nearest in a surface as dense as the surroundings.
        """
        # The weights of points that are spread evenly over a disk sum up to half their number.
        wanted = 0.5 * min(neighbours, self.points.shape[1])
        normals, spacing = np.empty((len(places), 3)), np.empty(len(places))
        _surroundings(places, self.points, self._tree.boxes, self._tree.leaf, wanted, normals, spacing)
        return normals, spacing


@njit(cache=True, nogil=True, fastmath=FAST)
def _nearest(queries, points, boxes, leaf, found):  # type: ignore[no-untyped-def]  # numba infers the types
    """Replace the guesses in `found`, -1 where there is none, by the nearest."""
    inner, stack, bound, distances = len(boxes), np.empty(STACK, dtype=np.int64), np.empty(STACK), np.empty(4)
    for query in range(len(queries)):
        x, y, z = queries[query, 0], queries[query, 1], queries[query, 2]
        nearest = found[query]
        if nearest < 0:  # neighbouring queries follow each other
            nearest = found[query - 1] if query > 0 else 0
        best, nearest = _nearest_of_leaf(x, y, z, points, nearest // leaf * leaf, leaf, np.inf, nearest)
        # Upwards from that leaf: what lies beside the way is seldom near enough, and then nothing is put on the stack.
        seen = inner + nearest // leaf
        while seen > 0:
            depth = push_siblings(x, y, z, boxes, seen, best, stack, bound, distances)
            while depth > 0:
                depth -= 1
                node = stack[depth]
                if bound[depth] >= best:
                    continue
                if node < inner:
                    depth = push_children(x, y, z, boxes, node, best, stack, bound, depth)
                else:
                    best, nearest = _nearest_of_leaf(x, y, z, points, (node - inner) * leaf, leaf, best, nearest)
            seen = (seen - 1) // 4
        found[query] = nearest


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _nearest_of_leaf(x, y, z, points, start, leaf, best, nearest):  # type: ignore[no-untyped-def]  # as above
    """Return the lesser of `best` (squared) and the distance of a leaf's points, and its point."""
    for place in range(start, min(start + leaf, points.shape[1])):
        dx, dy, dz = points[0, place] - x, points[1, place] - y, points[2, place] - z
        distance = dx * dx + dy * dy + dz * dz
        if distance < best:
            best, nearest = distance, place
    return best, nearest


@njit(cache=True, nogil=True, fastmath=FAST)
def _surroundings(places, points, boxes, leaf, wanted, normals, spacing):  # type: ignore[no-untyped-def]  # as above
    stack = np.empty(STACK, dtype=np.int64)
    for index in range(len(places)):
        place = places[index]
        x, y, z = points[0, place], points[1, place], points[2, place]
        # Squared radius that holds what is wanted if the leaf of this point is a flat patch.
        limit = 2.0 * wanted / np.pi * _area_of_point(boxes, len(boxes) + place // leaf, leaf)
        grown = False
        for _ in range(_MOST_TRIALS):
            moments = _moments(x, y, z, points, boxes, leaf, limit, stack)
            if moments[0] < _LEAST_PART * wanted:
                # No point around it bounds the distance of the others yet.
                limit *= 16.0 if moments[0] < 1.5 else 3.0
                grown = True
            elif moments[0] > _MOST_PART * wanted and not grown:
                limit *= max(wanted / moments[0], 0.1)
            else:
                break
        weight, sx, sy, sz, xx, xy, xz, yy, yz, zz = moments
        normals[index, 0], normals[index, 1], normals[index, 2] = _least_direction(
            xx - sx * sx / weight,
            xy - sx * sy / weight,
            xz - sx * sz / weight,
            yy - sy * sy / weight,
            yz - sy * sz / weight,
            zz - sz * sz / weight,
        )
        around = max(weight - 1.0, 1e-3)
        spacing[index] = _MEAN_DISTANCE * np.sqrt(0.5 * np.pi * limit / around)


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _area_of_point(boxes, node, leaf):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the area of a leaf's box, without its shortest side, for each of its points."""
    box, child = boxes[(node - 1) // 4], (node - 1) % 4
    x, y, z = box[3, child] - box[0, child], box[4, child] - box[1, child], box[5, child] - box[2, child]
    longest, shortest = max(x, y, z), min(x, y, z)
    middle = x + y + z - longest - shortest
    return max(middle * longest, 1e-6 * longest * longest, 1e-300) / leaf


@njit(cache=True, nogil=True, fastmath=_SUM)
def _moments(x, y, z, points, boxes, leaf, limit, stack):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return weight, first and second moments of the points nearer to x, y, z than `limit` (squared)."""
    inner, count, inverse = len(boxes), points.shape[1], 1.0 / limit
    weight = sx = sy = sz = xx = xy = xz = yy = yz = zz = 0.0
    stack[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if node < inner:
            depth = push_children_within(x, y, z, boxes, node, limit, stack, depth)
            continue
        start = (node - inner) * leaf
        for place in range(start, min(start + leaf, count)):
            dx, dy, dz = points[0, place] - x, points[1, place] - y, points[2, place] - z
            here = max(1.0 - (dx * dx + dy * dy + dz * dz) * inverse, 0.0)
            wx, wy, wz = here * dx, here * dy, here * dz
            weight += here
            sx, sy, sz = sx + wx, sy + wy, sz + wz
            xx, xy, xz = xx + wx * dx, xy + wx * dy, xz + wx * dz
            yy, yz, zz = yy + wy * dy, yz + wy * dz, zz + wz * dz
    return weight, sx, sy, sz, xx, xy, xz, yy, yz, zz


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _least_direction(xx, xy, xz, yy, yz, zz):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the least eigenvalue's eigenvector of a symmetric 3 x 3 matrix (Smith 1961), without LAPACK."""
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
