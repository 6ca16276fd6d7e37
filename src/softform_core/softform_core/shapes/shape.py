"""A shape, asked for or captured: a triangle mesh or a point cloud, in metres."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.errors import SoftformError
from softform_core.shapes.validate import check_points

__all__ = ["Shape", "estimate_normals"]

NEIGHBOURS = 16
"""Points of a neighbourhood whose plane gives a cloud's normal."""


@dataclass(frozen=True)
class Shape:
    """A mesh (`faces` given) or a cloud (`faces` is None); a mesh's `points` are its vertices."""

    points: NDArray[np.float64]  # (N, 3) m
    normals: NDArray[np.float64] | None = None  # (N, 3) unit vectors; None if they are not known
    faces: NDArray[np.int64] | None = None  # (F, 3) indices into `points`

    @classmethod
    def from_mesh(cls, vertices: ArrayLike, faces: ArrayLike) -> "Shape":
        """Mesh, (V, 3) m and (F, 3), with area-weighted vertex normals, oriented as its faces are.

        Raises:
            SoftformError: On unusable vertices, faces that name a vertex that does not exist, or no area at all.
        """
        points = check_points(vertices, "mesh")
        triangles = np.asarray(faces)
        if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.shape[0] == 0:
            raise SoftformError(
                f"The faces of a mesh must be an (F, 3) array with F > 0, got shape {triangles.shape}.",
                "Give triangles, or give the points as a cloud.",
            )
        triangles = triangles.astype(np.int64)
        if triangles.min() < 0 or triangles.max() >= len(points):
            raise SoftformError(
                f"A face of the mesh names vertex {triangles.max()} of {len(points)}.", "Export the mesh again."
            )
        doubled_areas = _face_normals(points, triangles)
        if not np.linalg.norm(doubled_areas, axis=1).sum() > 0.0:
            raise SoftformError("The triangles of the mesh have no area.", "Give the points as a cloud instead.")
        normals = np.empty_like(points)
        for axis in range(3):
            normals[:, axis] = np.bincount(triangles.ravel(), np.repeat(doubled_areas[:, axis], 3), len(points))
        return cls(points, _unit(normals), triangles)

    @classmethod
    def from_cloud(cls, points: ArrayLike, normals: ArrayLike | None = None) -> "Shape":
        """Cloud (N, 3) m with the given normals, of any length but zero, or with none.

        Raises:
            SoftformError: On unusable points or normals.
        """
        checked = check_points(points, "cloud")
        if normals is None:
            return cls(checked)
        directions = np.asarray(normals, dtype=np.float64)
        if directions.shape != checked.shape or not np.isfinite(directions).all():
            raise SoftformError(
                f"The normals of a cloud of {len(checked)} points must be finite and of shape {checked.shape}, "
                f"got {directions.shape}.",
                "Leave the normals out; they are then estimated.",
            )
        return cls(checked, _unit(directions))

    @property
    def extent(self) -> NDArray[np.float64]:
        """Size of the axis-aligned bounding box, (3,) m."""
        return np.ptp(self.points, axis=0)

    @property
    def facing(self) -> NDArray[np.float64]:
        """Mean normal (3,), of a mesh by area; of length 1 if it is flat, 0 if it is closed or has no normals."""
        if self.faces is not None:
            doubled_areas = _face_normals(self.points, self.faces)
            return np.asarray(doubled_areas.sum(axis=0) / np.linalg.norm(doubled_areas, axis=1).sum())
        return np.zeros(3) if self.normals is None else np.asarray(self.normals.mean(axis=0))

    def sample(self, count: int, seed: int = 0) -> "Shape":
        """Cloud of points on this shape, the same for the same seed.

        A mesh is sampled uniformly by area, so `count` may exceed its vertices. Of a cloud a random subset is taken,
        at most all of it.

        Returns:
            A cloud, with normals if this shape has them.
        """
        generator = np.random.default_rng(seed)
        if self.faces is None:
            if count >= len(self.points):
                return self
            chosen = np.sort(generator.choice(len(self.points), count, replace=False))
            return Shape(self.points[chosen], None if self.normals is None else self.normals[chosen])
        doubled_areas = _face_normals(self.points, self.faces)
        cumulative = np.cumsum(np.linalg.norm(doubled_areas, axis=1))
        # Stratified choice of the triangles: fewer clumps than independent draws, still uniform by area.
        strata = (np.arange(count) + generator.random(count)) / count
        chosen = np.minimum(np.searchsorted(cumulative, strata * cumulative[-1], side="right"), len(self.faces) - 1)
        root = np.sqrt(generator.random(count))
        along = generator.random(count)
        barycentric = np.stack([1.0 - root, root * (1.0 - along), root * along], axis=1)
        corners = self.points[self.faces[chosen]]
        return Shape(np.einsum("nc,ncd->nd", barycentric, corners), _unit(doubled_areas[chosen]))

    def transformed(self, rotation: NDArray[np.float64], translation: NDArray[np.float64]) -> "Shape":
        """This shape moved rigidly: p -> R p + t, t in m."""
        return Shape(
            self.points @ rotation.T + translation,
            None if self.normals is None else self.normals @ rotation.T,
            self.faces,
        )


def estimate_normals(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit normals of a cloud (N, 3): the direction of least variance of each neighbourhood, turned towards +z.

    A cloud tells neither its sides nor what body it is of. That is the outside of a sheet, which bulges upwards; who
    knows that the body goes around turns them outwards by its surface.

    Raises:
        SoftformError: If Open3D is not installed, which the wheel leaves to its extra `scans`.
    """
    try:
        import open3d  # here, as it takes a second, and most that handle shapes need no normals of a cloud
    except ImportError as error:
        raise SoftformError(
            f"Open3D, which estimates the normals of a cloud, cannot be loaded: {error}.",
            "Install it: pip install softform-core[scans]",
        ) from error

    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    cloud.estimate_normals(open3d.geometry.KDTreeSearchParamKNN(NEIGHBOURS))
    return upwards(np.asarray(cloud.normals))


def upwards(normals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normals (N, 3) with the sign that makes z positive: a cloud does not tell its sides apart."""
    return np.where(normals[:, 2:] < 0.0, -normals, normals)


def _face_normals(points: NDArray[np.float64], faces: NDArray[np.int64]) -> NDArray[np.float64]:
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return np.cross(b - a, c - a)


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.tile([0.0, 0.0, 1.0], (len(vectors), 1)), where=lengths > 0.0)
