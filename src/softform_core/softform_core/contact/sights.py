"""What is seen of a body that may be touched, markers on it or a scan of it: linear in its points where they are."""

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, kron

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree

__all__ = ["MarkerSight", "ScanSight", "Sight", "skin_normals"]

_FAR = 0.05
"""Distance of a scanned point from the model, over its size, beyond which it is no part of the body's surface."""


class Sight(Protocol):
    """What is seen of a body."""

    def missed(self, points: Array, faces: NDArray[np.int32]) -> tuple[csr_matrix, Array]:
        """Return how seen numbers (n,) change with the points of a skin, (n, 3 P), and by how much they differ, m.

        Args:
            points: (P, 3) m of the skin as the model has it.
            faces: (F, 3) of its triangles.
        """

    def against(self, free: Self, points: Array, faces: NDArray[np.int32]) -> Self:
        """Return this sight, corrected by how one of the body untouched, `free`, misses the model's points there."""


@dataclass(frozen=True, eq=False)
class MarkerSight:
    """Markers, each between points of the skin.

    Attributes:
        weights: (M, P) of the skin's points in each marker.
        places: (M, 3) m, as captured.
    """

    weights: csr_matrix
    places: Array

    def __post_init__(self) -> None:
        """Check that there are as many of both.

        Raises:
            SoftformError: If not.
        """
        if self.weights.shape[0] != len(self.places) or not len(self.places):
            raise SoftformError(
                f"{len(self.places)} markers do not fit weights of shape {self.weights.shape}.",
                "Give each marker the weights of the body's points that it lies between.",
            )

    def missed(self, points: Array, faces: NDArray[np.int32]) -> tuple[csr_matrix, Array]:
        """See `Sight`; three numbers a marker."""
        weights = self.weights[:, : len(points)]
        return csr_matrix(kron(weights, np.eye(3))), (self.places - weights @ points).ravel()

    def against(self, free: "MarkerSight", points: Array, faces: NDArray[np.int32]) -> "MarkerSight":
        """See `Sight`."""
        return replace(self, places=self.places - free.missed(points, faces)[1].reshape(-1, 3))


@dataclass(frozen=True, eq=False)
class ScanSight:
    """Points of a scan, whose places on the skin are not known: how far each is from it along its normal.

    Attributes:
        places: (N, 3) m, as scanned.
        offset: (P,) m along the normals, by which the skin's points were missed where nothing touched; none by default.
    """

    places: Array
    offset: Array | None = None

    def __post_init__(self) -> None:
        """Check the points.

        Raises:
            SoftformError: If there are none, or one is not finite.
        """
        if self.places.ndim != 2 or self.places.shape[1:] != (3,) or not len(self.places):
            raise SoftformError(f"A scan has points of shape {self.places.shape}.", "Give (N, 3) m, one at least.")
        if not np.isfinite(self.places).all():
            raise SoftformError("A scan has points that are no numbers.", "Leave them out.")

    def missed(self, points: Array, faces: NDArray[np.int32]) -> tuple[csr_matrix, Array]:
        """See `Sight`; a number for each point of the scan, 0 for those that are far from all of the skin."""
        triangle, closest, shares = TriangleTree(points[faces]).query(self.places)
        corners = faces[triangle]
        normals = np.einsum("nc,ncx->nx", shares, skin_normals(points, faces)[corners])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        off = np.einsum("nx,nx->n", self.places - closest, normals)
        if self.offset is not None:
            off = off - np.einsum("nc,nc->n", shares, self.offset[corners])
        off[np.linalg.norm(self.places - closest, axis=1) > _FAR * np.ptp(points, axis=0).max()] = 0.0
        values = (shares[:, :, None] * normals[:, None]).ravel()
        columns = (3 * corners[:, :, None] + np.arange(3)).ravel()
        rows = np.repeat(np.arange(len(off)), 9)
        return csr_matrix((values, (rows, columns)), (len(off), 3 * len(points))), off

    def against(self, free: "ScanSight", points: Array, faces: NDArray[np.int32]) -> "ScanSight":
        """See `Sight`: what the untouched body's scan is off by, spread over the points of the skin."""
        triangle, _, shares = TriangleTree(points[faces]).query(free.places)
        off = free.missed(points, faces)[1]
        total, weight = np.zeros(len(points)), np.zeros(len(points))
        np.add.at(total, faces[triangle], shares * off[:, None])
        np.add.at(weight, faces[triangle], shares)
        return replace(self, offset=total / np.maximum(weight, 1e-9))


def skin_normals(points: Array, faces: NDArray[np.int32]) -> Array:
    """Unit normals (P, 3) of a skin, outwards, weighted by area."""
    a, b, c = points[faces].swapaxes(0, 1)
    found = np.zeros_like(points)
    np.add.at(found, faces, np.cross(b - a, c - a)[:, None])
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300))
