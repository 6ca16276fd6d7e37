"""Find parts of a robot and of a target without a counterpart, by footprint and distance.

A sheet and its target are laid flat onto the plane in which the sheet rests. A point of the robot, predicted or
scanned, has no counterpart where the target laid flat does not come near it, however the target's rim climbs, and
whatever walls and seams it has. An arm lies over itself when it is laid flat: of a robot that is no sheet what lies
beside the target's own rim has no counterpart. A part of a target lies beside the robot where it comes down beside the
resting surface. Millimetres, but for shapes, which are in metres.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import ClosestPoints, CloudSearch, Matches, MeshSearch, closest_points_on
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

BESIDE_PART = 0.002
"""Distance sideways from which a point lies beside, over the resting robot's size."""

_FREE_PART = 0.25
"""Reach of an arm's shapes beyond its resting end as it grows longer, as a share of the size."""

_PLANE_PART = 0.02
"""Largest roughness of a plane over its size; a sheet at rest is one, by a learned model, too."""
_SAMPLES = 20_000
_JUDGED = 2000  # vertices that tell whether a target lies or stands


class RestingSurface:
    """A robot's surface at rest.

    Args:
        shape: Mesh, or points spread over the surface, m.

    Attributes:
        shape: The target as given.
        size: Diagonal of its box, mm.
        normal: Unit normal (3,) of the plane in which a sheet rests; None of another surface.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.size = float(np.linalg.norm(shape.extent)) * MM_PER_M
        spreads, axes = np.linalg.eigh(np.cov(shape.points.T * MM_PER_M))
        self.normal = axes[:, 0] if spreads[0] <= (_PLANE_PART * self.size) ** 2 else None


class Footprint:
    """Place of a target over a resting surface at any pose; kept while it changes by no more than the margin.

    Args:
        rest: The resting surface.
        target: The target before the pose.
    """

    def __init__(self, rest: RestingSurface, target: ClosestPoints) -> None:
        self._rest, self._target = rest, target
        columns = np.ascontiguousarray(target.vertices.T)  # numpy takes extents of rows ten times as fast
        box = np.stack([columns.min(axis=1), columns.max(axis=1)], axis=1)
        self._corners = np.stack(np.meshgrid(*box), axis=-1).reshape(-1, 3)
        self._laid: tuple[Array, ClosestPoints | None] | None = None

    def lacks(self, points: Array, matches: Matches, pose: RigidTransform) -> NDArray[np.bool_]:
        """Return which points (P, 3) of the robot have no counterpart on the target, (P,).

        Args:
            points: Points of the robot, in its frame.
            matches: Their closest points on the target at the pose.
            pose: Applied to the target.
        """
        margin, normal = BESIDE_PART * self._rest.size, self._rest.normal
        if normal is None:
            return matches.beyond_rim(points, margin)
        lacking = matches.distances > margin
        # Laid flat, the closest point lies as near: the target need not be asked.
        lacking[lacking] = np.linalg.norm(_flat((points - matches.points)[lacking], normal), axis=1) > margin
        if lacking.any():
            laid = self._laid_flat(pose, normal, margin)
            lacking[lacking] = False if laid is None else laid.query(_flat(points[lacking], normal)).distances > margin
        return lacking

    def _laid_flat(self, pose: RigidTransform, normal: Array, margin: float) -> ClosestPoints | None:
        """Lay the target flat; None if it stands on the plane rather than lies, and has no footprint to speak of."""
        corners, target = pose.apply(self._corners), self._target
        if self._laid is None or np.abs(corners - self._laid[0]).max() > 0.5 * margin:
            posed = pose.apply(target.vertices)
            flat = _flat(posed, normal)
            laid: ClosestPoints | None = None
            few = slice(None, None, len(flat) // _JUDGED + 1)
            if _spread(posed[few] @ normal) <= _width(flat[few]):
                try:
                    laid = CloudSearch(flat) if target.faces is None else MeshSearch(flat, target.faces, has_rim=False)
                except SoftformError:  # walls alone: no triangle has area
                    laid = CloudSearch(flat)
            self._laid = corners, laid
        return self._laid[1]


def _flat(points: Array, normal: Array) -> Array:
    """Return points (N, 3) moved along a normal (3,) onto the plane through the origin."""
    return np.asarray(points - np.outer(points @ normal, normal))


def _width(flat: Array) -> float:
    """Return the width of points (N, 3) in a plane where they are narrowest, mm."""
    return _spread(flat @ np.linalg.eigh(np.cov(flat.T))[1][:, 1])


def _spread(values: Array) -> float:
    """Return limits between which most of the values (N,) lie; strays do not count."""
    low, high = np.percentile(values, [5.0, 95.0])
    return float(high - low)


def beside_share(target: Shape, rest_surface: Shape, pose: RigidTransform) -> float:
    """Return the share of a target, by area or points, beside the footprint of the resting robot, 0 … 1.

    Args:
        target: m.
        rest_surface: The resting robot's surface as a mesh, m, in its frame.
        pose: (R, t) in m, applied to the target.
    """
    return float(lies_beside(pose.apply(target.sample(_SAMPLES).points), rest_surface).mean())


def lies_beside(points: Array, rest_surface: Shape) -> NDArray[np.bool_]:
    """Return which points (N, 3) m of a target lie beside the footprint of the resting robot's mesh, (N,)."""
    rest, points = RestingSurface(rest_surface), points * MM_PER_M
    margin = rest.size * (BESIDE_PART if rest.normal is not None else _FREE_PART)
    return closest_points_on(rest_surface).query(points).beyond_rim(points, margin)
