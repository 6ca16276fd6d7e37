"""Polygons of mesh files, convex or not, cut into triangles."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError

MOST_CORNERS = 500

_AT_ONCE = 1_000_000  # pairs of corners
_FLAT = 1e-9  # area over the square of the size


def triangulated(points: Array, polygons: NDArray[np.integer]) -> NDArray[np.int64]:
    """Triangles (P (n - 2), 3) of P polygons (P, n) over points (V, 3), turned as those are, by clipping ears.

    A quadrilateral is cut from its first corner to its third, as all programs do, unless that lies outside it: shapes
    of one mesh keep one set of triangles. From others the best-shaped ear is clipped first.

    Raises:
        SoftformError: If a corner is no vertex, or there are more than `MOST_CORNERS`.
    """
    count, corners = polygons.shape
    if polygons.size and (polygons.min() < 0 or polygons.max() >= len(points)):
        raise SoftformError(
            f"A face names a vertex that is not there; the vertices are {len(points)}.",
            "The file is truncated or damaged: export it again.",
        )
    if corners > MOST_CORNERS:
        raise SoftformError(
            f"A face has {corners} corners; at most {MOST_CORNERS} are read.", "Export the mesh as triangles."
        )
    if corners == 3:
        return polygons.astype(np.int64)
    step = max(1, _AT_ONCE // corners**2)
    parts = [_clipped(points, polygons[first : first + step].astype(np.int64)) for first in range(0, count, step)]
    return np.concatenate(parts)


def cut_alike(points: Array, polygons: NDArray[np.integer]) -> NDArray[np.int64]:
    """Triangles (P (n - 2), 3) as `triangulated` gives them, but from the first corner to all others where it can be.

    Bent polygons of one mesh so keep one set of triangles, whatever its shape; raises as `triangulated` does.
    """
    fans = polygons[:, [[0, corner, corner + 1] for corner in range(1, polygons.shape[1] - 1)]].astype(np.int64)
    spokes = np.diff(points[fans], axis=2)
    normals = np.cross(spokes[:, :, 0], spokes[:, :, 1])
    is_fan = (np.einsum("pnc,pc->pn", normals, normals.sum(axis=1)) > 0.0).all(axis=1)
    if is_fan.all():
        return fans.reshape(-1, 3)
    fans[~is_fan] = triangulated(points, polygons[~is_fan]).reshape(-1, *fans.shape[1:])
    return fans.reshape(-1, 3)


def _clipped(points: Array, left: NDArray[np.int64]) -> NDArray[np.int64]:
    triangles, row = [], np.arange(len(left))
    plane = _in_their_planes(points[left])
    while left.shape[1] > 3:
        corners = left.shape[1]
        before, after = np.roll(plane, 1, axis=1), np.roll(plane, -1, axis=1)
        areas = _cross(plane - before, after - plane)
        sides = [abs(plane - before) ** 2, abs(after - plane) ** 2, abs(before - after) ** 2]
        size = np.maximum(np.sum(sides, axis=0), np.finfo(float).tiny)
        inside = np.ones((len(left), corners, corners), dtype=bool)
        for start, end in ((before, plane), (plane, after), (after, before)):
            away = plane[:, None] - start[:, :, None]
            # A vertex on the ear's open side would be cut off, so the border counts; the corners do not.
            inside &= (_cross((end - start)[:, :, None], away) >= -_FLAT * size[:, :, None]) & (away != 0.0)
        quality = np.where((areas > _FLAT * size) & ~inside.any(axis=2), areas / size, -1.0)
        if corners == 4:
            # The ear at the second corner leaves the triangle of the fourth, which must not be turned over.
            quality = np.where(np.minimum(quality, np.roll(quality, 2, axis=1)) > 0.0, [[1.0, 2.0, 1.0, 2.0]], -1.0)
        ear = quality.argmax(axis=1)
        triangles.append(np.stack([left[row, ear - 1], left[row, ear], left[row, (ear + 1) % corners]], axis=1))
        keeps = np.arange(corners) != ear[:, None]
        left, plane = left[keeps].reshape(-1, corners - 1), plane[keeps].reshape(-1, corners - 1)
    return np.stack([*triangles, left], axis=1).reshape(-1, 3)


def _in_their_planes(corners: Array) -> NDArray[np.complex128]:
    """Corners (P, n, 3) of polygons in the plane of each, (P, n), counter-clockwise."""
    centred = corners - corners.mean(axis=1, keepdims=True)
    normals = np.cross(centred, np.roll(centred, -1, axis=1)).sum(axis=1)
    across = np.cross(normals, np.eye(3)[np.abs(normals).argmin(axis=1)])
    along = np.cross(normals, across)
    right, up = (
        axis / np.maximum(np.linalg.norm(axis, axis=1), np.finfo(float).tiny)[:, None] for axis in (across, along)
    )
    return np.asarray(np.einsum("pnc,pc->pn", centred, right) + 1j * np.einsum("pnc,pc->pn", centred, up))


def _cross(a: NDArray[np.complex128], b: NDArray[np.complex128]) -> Array:
    return np.asarray((a.conj() * b).imag)
