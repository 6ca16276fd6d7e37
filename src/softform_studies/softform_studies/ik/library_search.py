"""Closest points by libraries alone: what the compiled searches of `softform_core.geometry` are measured against."""

from importlib import import_module

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.inverse.closest_points import Matches, border_edges
from softform_core.inverse.inverse import Target
from softform_core.inverse.surface_target import SurfaceTarget
from softform_core.shapes.target import NEIGHBOURS, upwards
from softform_core.units import MM_PER_M

_SPACING_OF = 6
"""Nearest neighbours whose mean distance is a point's spacing."""


_ON_EDGE = 1e-6
"""Barycentric coordinates below this are zero in single precision."""


def library_search(target: Target) -> "LibraryCloudSearch | LibraryMeshSearch":
    """The library's closest points on a target, m."""
    shape = target.as_mesh() if isinstance(target, SurfaceTarget) else target
    if shape.faces is None:
        return LibraryCloudSearch(MM_PER_M * shape.points)
    return LibraryMeshSearch(MM_PER_M * shape.points, shape.faces)


class LibraryCloudSearch:
    """`CloudSearch` by scipy's k-d tree and numpy: the nearest point, moved within its tangent plane.

    Args:
        points: (N, 3) mm.
    """

    def __init__(self, points: Array) -> None:
        self.vertices = points
        self._tree = cKDTree(points, balanced_tree=False, compact_nodes=False)
        self._normals, self._spacing = np.empty((len(points), 3)), np.empty(len(points))
        self._known = np.zeros(len(points), dtype=bool)

    def query(self, points: Array) -> Matches:
        """Closest point of each of (P, 3) mm."""
        places = self._tree.query(points)[1]
        self._look_around(np.unique(places[~self._known[places]]))
        near, normals, spacing = self.vertices[places], self._normals[places], self._spacing[places]
        offset = points - near
        height = np.einsum("px,px->p", offset, normals)
        sideways = offset - height[:, None] * normals
        length = np.linalg.norm(sideways, axis=1)
        beyond = length > spacing
        part = np.where(beyond, spacing / np.maximum(length, 1e-300), 1.0)
        distances = np.hypot(height, (1.0 - part) * length)
        return Matches(near + part[:, None] * sideways, normals, distances, beyond)

    def _look_around(self, new: NDArray[np.int64]) -> None:
        """Fit the planes through the surroundings of points that are nearest for the first time."""
        if len(new) == 0:
            return
        distances, neighbours = self._tree.query(self.vertices[new], NEIGHBOURS)
        around = self.vertices[neighbours]
        offsets = around - around.mean(axis=1, keepdims=True)
        self._normals[new] = upwards(np.linalg.eigh(offsets.swapaxes(1, 2) @ offsets)[1][:, :, 0])
        self._spacing[new] = distances[:, 1 : 1 + _SPACING_OF].mean(axis=1)
        self._known[new] = True


class LibraryMeshSearch:
    """`MeshSearch` by Open3D's RaycastingScene, which computes in single precision.

    Args:
        vertices: (V, 3) mm.
        faces: (F, 3) indices of triangles with area.
    """

    def __init__(self, vertices: Array, faces: NDArray[np.integer]) -> None:
        tensor = import_module("open3d.core").Tensor
        self.vertices, self._corners, self._tensor = vertices, vertices[faces], tensor
        normals = np.cross(self._corners[:, 1] - self._corners[:, 0], self._corners[:, 2] - self._corners[:, 0])
        self._normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        self._border = border_edges(faces)
        self._scene = import_module("open3d.t.geometry").RaycastingScene(nthreads=1)
        self._scene.add_triangles(tensor(vertices.astype(np.float32)), tensor(faces.astype(np.uint32)))

    def query(self, points: Array) -> Matches:
        """Closest point of each of (P, 3) mm; the foot is taken in double precision."""
        found = self._scene.compute_closest_points(self._tensor(points.astype(np.float32)), nthreads=1)
        triangle, along = found["primitive_ids"].numpy(), found["primitive_uvs"].numpy().astype(np.float64)
        barycentric = np.column_stack([1.0 - along.sum(axis=1), along])
        closest = np.einsum("pc,pcx->px", barycentric, self._corners[triangle])
        on_border = ((barycentric[:, [2, 0, 1]] < _ON_EDGE) & self._border[triangle]).any(axis=1)
        return Matches(closest, self._normals[triangle], np.linalg.norm(points - closest, axis=1), on_border)
