"""Closest points by libraries alone: what the compiled searches of `softform_core.geometry` are measured against."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.inverse.closest_points import Matches, Rim, on_planes
from softform_core.inverse.inverse import Target
from softform_core.inverse.surface_target import SurfaceTarget
from softform_core.shapes.target import NEIGHBOURS, upwards
from softform_core.units import MM_PER_M

_SPACING_OF = 6
"""Nearest neighbours whose mean distance is a point's spacing."""


_ZERO_IN_SINGLE = 1e-6
"""Barycentric coordinates below this are zero in single precision."""

_NEAR_EDGE = 1e-4
"""Where a foot comes as near as this to an edge, single precision may have taken a neighbour of its triangle."""

_EDGES = (0, 1), (1, 2), (2, 0)


def scipy_tree(points: Array) -> Any:
    """Scipy's k-d tree, built as fast as it can be."""
    return cKDTree(points, balanced_tree=False, compact_nodes=False)


def library_search(
    target: Target, tree: Callable[[Array], Any] = scipy_tree, exact: bool = True
) -> "LibraryCloudSearch | LibraryMeshSearch":
    """The library's closest points on a target, m; arguments as of the two searches."""
    shape = target.as_mesh() if isinstance(target, SurfaceTarget) else target
    if shape.faces is None:
        return LibraryCloudSearch(MM_PER_M * shape.points, tree)
    return LibraryMeshSearch(MM_PER_M * shape.points, shape.faces, exact)


class LibraryCloudSearch:
    """`CloudSearch` by a given kind of k-d tree and numpy: the nearest of (N, 3) mm, moved within its tangent plane."""

    faces: None = None

    def __init__(self, points: Array, tree: Callable[[Array], Any] = scipy_tree) -> None:
        self.vertices = points
        self._tree = tree(points)
        self._normals, self._spacing = np.empty((len(points), 3)), np.empty(len(points))
        self._known = np.zeros(len(points), dtype=bool)

    def query(self, points: Array) -> Matches:
        """Closest point of each of (P, 3) mm."""
        places = self._tree.query(points)[1].astype(np.int64)
        self._look_around(np.unique(places[~self._known[places]]))
        return on_planes(points, self.vertices[places], self._normals[places], self._spacing[places])

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
        exact: Whether the foot on the triangle that was found is computed again in double precision, and where it lies
            at an edge those on all triangles around are as well.
    """

    def __init__(self, vertices: Array, faces: NDArray[np.integer], exact: bool = True) -> None:
        self._exact = exact
        tensor = import_module("open3d.core").Tensor
        self.vertices, self.faces, self._corners, self._tensor = vertices, faces, vertices[faces], tensor
        normals = np.cross(self._corners[:, 1] - self._corners[:, 0], self._corners[:, 2] - self._corners[:, 0])
        self._normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        self._rim = Rim(vertices, faces)
        self._scene = import_module("open3d.t.geometry").RaycastingScene(nthreads=1)
        self._scene.add_triangles(tensor(vertices.astype(np.float32)), tensor(faces.astype(np.uint32)))
        if exact:
            rows, columns = faces.ravel(), np.repeat(np.arange(len(faces)), 3)
            around = csr_array((np.ones(faces.size, dtype=bool), (rows, columns)), (len(vertices), len(faces)))
            self._around, self._first = around.indices, around.indptr

    def query(self, points: Array) -> Matches:
        """Closest point of each of (P, 3) mm."""
        found = self._scene.compute_closest_points(self._tensor(points.astype(np.float32)), nthreads=1)
        triangle = found["primitive_ids"].numpy()
        if self._exact:
            triangle, barycentric = self._improved(points, triangle)
            on_border = self._rim.holds(triangle, barycentric)
        else:
            along = found["primitive_uvs"].numpy().astype(np.float64)
            barycentric = np.column_stack([1.0 - along.sum(axis=1), along])
            on_border = self._rim.holds(triangle, barycentric, _ZERO_IN_SINGLE)
        closest = np.einsum("pc,pcx->px", barycentric, self._corners[triangle])
        return Matches(closest, self._normals[triangle], np.linalg.norm(points - closest, axis=1), on_border)

    def _improved(self, points: Array, triangle: NDArray[np.integer]) -> tuple[NDArray[np.integer], Array]:
        """The nearest of the triangles found (P,) and, of feet at an edge, those around; barycentrics (P, 3) on it."""
        barycentric = _barycentric(points, self._corners[triangle])
        near = np.flatnonzero(barycentric.min(axis=1) < _NEAR_EDGE)
        place, corner = np.nonzero(barycentric[near] > _NEAR_EDGE)  # the ends of the edge, or the corner itself
        vertices = self.faces[triangle[near[place]], corner]
        count = self._first[vertices + 1] - self._first[vertices]
        point = np.repeat(near[place], count)
        start = np.repeat(self._first[vertices] - (np.cumsum(count) - count), count)
        candidates = self._around[start + np.arange(len(point))]
        feet = _barycentric(points[point], self._corners[candidates])
        offset = points[point] - np.einsum("pc,pcx->px", feet, self._corners[candidates])
        order = np.lexsort((np.einsum("px,px->p", offset, offset), point))
        best = order[np.searchsorted(point[order], near)]
        triangle[near], barycentric[near] = candidates[best], feet[best]
        return triangle, barycentric


def _barycentric(points: Array, corners: Array) -> Array:
    """Barycentric coordinates (P, 3) of the feet of points (P, 3) on a triangle (P, 3, 3) each."""
    a, b, c = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0], points - corners[:, 0]
    aa, bb, ab = (np.einsum("px,px->p", *pair) for pair in ((a, a), (b, b), (a, b)))
    ac, bc = np.einsum("px,px->p", a, c), np.einsum("px,px->p", b, c)
    area = aa * bb - ab * ab
    v, w = (bb * ac - ab * bc) / area, (aa * bc - ab * ac) / area
    feet = np.column_stack([1.0 - v - w, v, w])
    outside = np.flatnonzero((feet < 0.0).any(axis=1))
    nearest = np.full(len(outside), np.inf)
    for start, end in _EDGES:  # beyond an edge the foot lies on one of the three
        edge = corners[outside, end] - corners[outside, start]
        offset = points[outside] - corners[outside, start]
        part = np.clip(np.einsum("px,px->p", offset, edge) / np.einsum("px,px->p", edge, edge), 0.0, 1.0)
        squared = np.square(offset - part[:, None] * edge).sum(axis=1)
        nearer = squared < nearest
        nearest[nearer] = squared[nearer]
        feet[outside[nearer]] = 0.0
        feet[outside[nearer], start], feet[outside[nearer], end] = 1.0 - part[nearer], part[nearer]
    return feet
