"""Closest points c* on a target shape (Eq. 15): exact on meshes, by local tangent planes on clouds; millimetres."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.point_tree import PointTree
from softform_core.geometry.rigid import RigidTransform
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.shapes.shape import NEIGHBOURS, Shape, upwards
from softform_core.surface.mesh import border_edges, directed_edges, with_seams_joined
from softform_core.units import MM_PER_M

_NO_ROTATION = np.eye(3)
_ON_EDGE = 1e-9  # of barycentric coordinates: smaller ones are none

MAX_CLOUD_POINTS = 50_000
"""Most points of a cloud; a larger one is thinned: a 30 x 30 spline surface has no detail that needs more."""


@dataclass(frozen=True)
class Matches:
    """The closest point on the target of each query point.

    Attributes:
        points: (P, 3) mm.
        normals: (P, 3) unit normals of the target there.
        distances: (P,) mm.
        on_border: (P,) true where the closest point lies on the rim of the target or of a hole in it.
    """

    points: Array
    normals: Array
    distances: Array
    on_border: NDArray[np.bool_]

    def beyond_rim(self, points: Array, most_mm: float) -> NDArray[np.bool_]:
        """Return which query points (P, 3) mm lie beside the rim, off its normals by more than that; (P,)."""
        along_normal = np.einsum("px,px->p", points - self.points, self.normals)
        sideways = np.sqrt(np.maximum(self.distances**2 - along_normal**2, 0.0))
        return np.asarray(self.on_border & (sideways > most_mm))


class ClosestPoints(Protocol):
    """A target that answers closest-point queries; made by `closest_points_on`."""

    @property
    def vertices(self) -> Array:
        """Points that span the target, (N, 3) mm."""

    @property
    def faces(self) -> NDArray[np.integer] | None:
        """Triangles (F, 3) of a mesh's vertices; None of a cloud."""

    def query(self, points: Array) -> Matches:
        """Return the closest point of each of (P, 3) mm; SoftformError if one is not finite."""


def closest_points_on(target: Shape) -> ClosestPoints:
    """Search structure for a target in metres: `MeshSearch` if it has faces, else `CloudSearch`.

    Raises:
        SoftformError: If the target is empty, not finite, or has no area.
    """
    points = np.asarray(target.points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4:
        raise SoftformError(f"The target has points of shape {points.shape}.", "Give (N, 3) with at least 4 points.")
    if not np.isfinite(points).all():
        raise SoftformError("The target has NaN or infinite coordinates.", "Remove these points from the target.")
    if target.faces is not None:
        return MeshSearch(points * MM_PER_M, target.faces)
    cloud = Shape(points, target.normals).sample(MAX_CLOUD_POINTS)
    return CloudSearch(cloud.points * MM_PER_M, cloud.normals)


class CloudSearch:
    """Closest points on a cloud: the nearest point, moved within its tangent plane by at most its spacing.

    Without the plane the distance to a sparse cloud could not fall below its spacing; without the limit a hole or the
    rim would be bridged by a plane that was never measured. Planes are fitted when a point is the nearest for the first
    time: a query meets few of the points of a dense cloud.

    Args:
        points: (N, 3) mm.
        normals: (N, 3) unit vectors, of either sign, or None to take them from the points (`upwards`).
    """

    faces: None = None

    def __init__(self, points: Array, normals: Array | None = None) -> None:
        self.vertices = np.ascontiguousarray(points)
        self._tree = PointTree(self.vertices)
        self._given_normals = normals
        # By place in the tree: the point, the normal, the spacing; a query reads one line of memory for each.
        self._planes = np.empty((len(points), 8))
        self._known = np.zeros(len(points), dtype=bool)

    def query(self, points: Array) -> Matches:
        """Return the closest point of each of (P, 3) mm.

        Raises:
            SoftformError: If a point is not finite.
        """
        places = self._tree.nearest(_finite(points))
        self._look_around(places)
        planes = self._planes[places]
        return on_planes(points, planes[:, :3], planes[:, 3:6], planes[:, 6])

    def _look_around(self, places: NDArray[np.int64]) -> None:
        """Fit the planes that are not known yet."""
        known = self._known[places]
        if known.all():
            return
        new = places[~known]
        normals, self._planes[new, 6] = self._tree.surroundings(new, NEIGHBOURS)
        index = self._tree.order[new]
        self._planes[new, :3] = self.vertices[index]
        self._planes[new, 3:6] = upwards(normals) if self._given_normals is None else self._given_normals[index]
        # Last, so that another thread that shares this target never takes half of it.
        self._known[new] = True


def on_planes(points: Array, near: Array, normals: Array, spacing: Array) -> Matches:
    """Move points (P, 3) mm onto planes through `near` (P, 3), by no more than the spacing (P,) from there."""
    offset = points - near
    height = np.einsum("px,px->p", offset, normals)
    sideways = offset - height[:, None] * normals
    length = np.sqrt(np.einsum("px,px->p", sideways, sideways))
    beyond = length > spacing
    part = np.divide(spacing, length, out=np.ones_like(length), where=beyond)
    return Matches(near + part[:, None] * sideways, normals, np.hypot(height, (1.0 - part) * length), beyond)


class MeshSearch:
    """Exact closest points on a triangle mesh: vertices (V, 3) mm and faces (F, 3).

    Without a rim none of them is on a border.

    Raises:
        SoftformError: If no triangle has area.
    """

    def __init__(self, vertices: Array, faces: NDArray[np.integer], has_rim: bool = True) -> None:
        self.vertices, self.faces = vertices, faces
        corners = vertices[faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        doubled_area = np.linalg.norm(normals, axis=1)
        solid = doubled_area > 1e-12 * float(doubled_area.max(initial=0.0))
        if not solid.any():
            raise SoftformError("The triangles of the target have no area.", "Give its points as a cloud instead.")
        self._normals = normals[solid] / doubled_area[solid, None]
        self._rim, self._solid = Rim(vertices, faces) if has_rim else None, np.flatnonzero(solid)
        self._tree = TriangleTree(corners[solid])

    def query(self, points: Array) -> Matches:
        """Return the closest point of each of (P, 3) mm.

        Raises:
            SoftformError: If a point is not finite.
        """
        triangle, closest, barycentric = self._tree.query(_finite(points))
        offset = points - closest
        distances = np.sqrt(np.einsum("px,px->p", offset, offset))
        on_border = np.zeros(len(points), dtype=bool)
        if self._rim is not None:
            on_border = self._rim.holds(self._solid[triangle], barycentric)
        return Matches(closest, self._normals[triangle], distances, on_border)


def posed_query(target: ClosestPoints, pose: RigidTransform, points: Array) -> Matches:
    """Return the closest points R c* + t of (P, 3) mm on a target that `pose` has been applied to (Eq. 15)."""
    if not pose.translation.any() and (pose.rotation == _NO_ROTATION).all():
        return target.query(points)
    matches = target.query(pose.apply_inverse(points))
    return Matches(pose.apply(matches.points), pose.rotate(matches.normals), matches.distances, matches.on_border)


def _finite(points: Array) -> Array:
    if not np.isfinite(points).all():
        raise SoftformError(
            "The points to be matched with the target are not finite.", "Check the model: its prediction is not usable."
        )
    return points


class Rim:
    """Edges at which a mesh of vertices (V, 3) and faces (F, 3) ends, outside or at a hole; a seam is no end."""

    def __init__(self, points: Array, faces: NDArray[np.integer]) -> None:
        faces = with_seams_joined(points, faces)
        self._edges = border_edges(faces)
        vertices = np.zeros(len(points), dtype=bool)
        vertices[directed_edges(faces)[self._edges]] = True
        self._corners = vertices[faces]

    def holds(self, faces: NDArray[np.integer], barycentric: Array) -> NDArray[np.bool_]:
        """Return which points on faces (P,), by their barycentric coordinates (P, 3), lie on the rim, (P,).

        A triangle may touch the rim at a corner only: a point there lies on it, whichever of the triangles is named.
        """
        # A point lies on edge ab where the barycentric coordinate of c is zero, and so on.
        on_edge = (barycentric[:, [2, 0, 1]] < _ON_EDGE) & self._edges[faces]
        on_corner = (barycentric > 1.0 - 2.0 * _ON_EDGE) & self._corners[faces]
        return np.asarray((on_edge | on_corner).any(axis=1))
