"""All patches of a robot's surface as one: control points, samples, triangles and kernels of all, one after the other.

A parameter (u, v) says which patch it belongs to: u of patch i lies in 2 i ... 2 i + 1. The gap between two patches
keeps their borders apart, as empty tiles in a texture map do. One patch alone has the unit square.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import block_diag, csr_matrix

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.bspline import apply, basis_matrix, checked_uv, derivative_matrices
from softform_core.surface.fit import FitReport
from softform_core.surface.patch import ParametrisedMesh, Patch, grid_side

APART = 2.0
"""Difference of u from one patch to the next."""


def on_patches(uv: Array) -> NDArray[np.bool_]:
    """Return which parameters (P, 2) belong to a patch, (P,)."""
    u, v = uv.T
    return np.asarray((u >= 0.0) & (u < np.inf) & (u % APART <= 1.0) & (v >= 0.0) & (v <= 1.0))


@dataclass(frozen=True)
class PatchSet:
    """B-spline surfaces over one unit square each.

    Attributes:
        patches: The patches, at least one, in the order of the robot's description.
    """

    patches: tuple[Patch, ...]

    @classmethod
    def of(cls, rows: int = 30, cols: int = 30, degree: int = 3, periodic: bool = False) -> "PatchSet":
        """Return one patch alone; arguments as `Patch`."""
        return cls((Patch(rows, cols, degree, periodic),))

    def __len__(self) -> int:
        """Return the number n of patches."""
        return len(self.patches)

    def __str__(self) -> str:
        """Return the control grids, such as 30 x 30."""
        return " + ".join(f"{patch.rows} x {patch.cols}" for patch in self.patches)

    @property
    def has_tube(self) -> bool:
        """Whether a patch is a tube."""
        return any(patch.periodic for patch in self.patches)

    @property
    def only(self) -> Patch:
        """The one patch.

        Raises:
            SoftformError: If there are several.
        """
        if len(self) > 1:
            raise SoftformError(f"The surface has {len(self)} patches ({self}).", "This is made for robots of one.")
        return self.patches[0]

    @property
    def control_points(self) -> int:
        """Number C of control points of all patches."""
        return sum(patch.rows * patch.cols for patch in self.patches)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first control point of each patch, (n,)."""
        return np.cumsum([0, *(patch.rows * patch.cols for patch in self.patches[:-1])])

    def with_grids(self, side: int, degree: int = 3) -> "PatchSet":
        """Return the same patches with control grids of `side` x `side`."""
        return PatchSet(tuple(Patch(side, side, degree, patch.periodic) for patch in self.patches))

    def control_grids(self, control_points: Array) -> list[Array]:
        """Return the control points (..., C, 3) as the grid (..., rows, cols, 3) of each patch."""
        parts = np.split(control_points, self.starts[1:], axis=-2)
        return [
            part.reshape(*part.shape[:-2], patch.rows, patch.cols, 3)
            for part, patch in zip(parts, self.patches, strict=True)
        ]

    def parametrised(
        self, vertices: ArrayLike, faces: ArrayLike, parts: Sequence[NDArray[np.bool_]] = ()
    ) -> "ParametrisedSurface":
        """Repair and flatten a rest mesh, (V, 3) and (F, 3), patch by patch (`parts`: faces of each, else all).

        Raises:
            SoftformError: For the reasons of `Patch.parametrised`.
        """
        points, triangles = np.asarray(vertices, dtype=np.float64), np.asarray(faces)
        meshes = []
        for patch, part in zip(self.patches, parts or [np.ones(len(triangles), dtype=bool)] * len(self), strict=True):
            if part.all():
                meshes.append(patch.parametrised(points, triangles))
                continue
            used, own = np.unique(triangles[part], return_inverse=True)
            mesh = patch.parametrised(points[used], own.reshape(-1, 3))
            meshes.append(replace(mesh, kept=used[mesh.kept], vertices=len(points)))
        return ParametrisedSurface(tuple(meshes))

    def split(self, uv: ArrayLike) -> tuple[NDArray[np.int64], Array]:
        """Return the patch (P,) of parameters (P, 2), and the parameters (P, 2) in its unit square.

        Raises:
            SoftformError: If uv is not (P, 2) finite numbers, or one lies in no patch.
        """
        values = np.asarray(uv, dtype=np.float64)
        if len(self) == 1 or values.ndim != 2 or values.shape[1] != 2 or not np.isfinite(values).all():
            values = checked_uv(values)
            return np.zeros(len(values), dtype=np.int64), values
        place = np.clip(values[:, 0] // APART, 0, len(self) - 1).astype(np.int64)
        return place, checked_uv(values - self._offsets[place])

    def joined(self, place: NDArray[np.integer] | int, uv: Array) -> Array:
        """Return parameters (P, 2) of the surface from those in the unit square of a patch; the reverse of `split`."""
        return uv + self._offsets[place] if np.any(place) else uv

    def basis(self, uv: ArrayLike) -> csr_matrix:
        """Return `bspline.basis_matrix` of all patches: points = basis @ control_points, (P, C).

        Raises:
            SoftformError: For the reasons of `split`, and if a grid is too small.
        """
        place, local = self.split(uv)
        return self._stacked(place, local, lambda own, patch: (basis_matrix(own, *patch),))[0]

    def derivatives(self, uv: ArrayLike) -> tuple[csr_matrix, csr_matrix]:
        """Return derivatives of `basis` along u and along v; errors as there."""
        place, local = self.split(uv)
        along_u, along_v = self._stacked(place, local, lambda own, patch: derivative_matrices(own, *patch))
        return along_u, along_v

    def evaluate(self, control_points: ArrayLike, uv: ArrayLike) -> Array:
        """Return points (..., P, 3) of surfaces with control points (..., C, 3) at parameters (P, 2), Eq. 1."""
        return apply(self.basis(uv), np.asarray(control_points, dtype=np.float64)[..., None, :, :])

    def samples(self, count: int) -> Array:
        """Return about `count` parameters spread evenly, the same number on each patch: (P, 2), see `Patch.samples`."""
        return np.concatenate(
            [self.joined(i, patch.samples(count // len(self))) for i, patch in enumerate(self.patches)]
        )

    def triangles(self, count: int) -> NDArray[np.int64]:
        """Return triangles over the points of `samples(count)`, (F, 3); none reaches from one patch to another."""
        own = count // len(self)
        starts = np.arange(len(self)) * grid_side(own) ** 2
        return np.concatenate([patch.triangles(own) + start for patch, start in zip(self.patches, starts, strict=True)])

    def grids(self, values: Array) -> list[Array]:
        """Return values (P, ...) over `samples(P)` as the closed grid of each patch, see `Patch.grid`."""
        return [patch.grid(own) for patch, own in zip(self.patches, np.split(values, len(self)), strict=True)]

    def kernels(self, count: int) -> Array:
        """Return parameters (N, 2) of about `count` kernels, the same number on each patch, see `Patch.kernels`.

        Raises:
            SoftformError: If there is one patch and the number is not a square.
        """
        own = count if len(self) == 1 else round((count / len(self)) ** 0.5) ** 2
        return np.concatenate([self.joined(i, patch.kernels(own)) for i, patch in enumerate(self.patches)])

    def coarse(self) -> Array:
        """Return about a hundred parameters for first steps of a solve: the centres of equal cells, and all corners.

        Means over them are means over the surface, which a small grid with its many points on the rim would not give;
        and they span it.
        """
        corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        return np.concatenate([self.kernels(100), *(self.joined(i, corners) for i in range(len(self)))])

    @property
    def _offsets(self) -> Array:
        return np.arange(len(self))[:, None] * np.array([APART, 0.0])

    def _stacked(
        self, place: NDArray[np.int64], local: Array, matrices: Callable[[Array, Patch], tuple[csr_matrix, ...]]
    ) -> tuple[csr_matrix, ...]:
        """Stack matrices of each patch at its parameters as one of all, rows in the order of the parameters."""
        if len(self) == 1:
            return matrices(local, self.patches[0])
        own = [np.flatnonzero(place == number) for number in range(len(self))]
        # No matrix can be made of no parameters: one is added, and its row left out.
        parts = [
            [matrix[1:] for matrix in matrices(np.concatenate([[[0.0, 0.0]], local[rows]]), patch)]
            for rows, patch in zip(own, self.patches, strict=True)
        ]
        order = np.argsort(np.concatenate(own))
        return tuple(block_diag(of_all, "csr")[order] for of_all in zip(*parts, strict=True))


SHEET = PatchSet.of()
"""A sheet with the control grid of paper 000."""


@dataclass(frozen=True)
class ParametrisedSurface:
    """The rest meshes of all patches, flattened; fits surfaces to their deformed shapes."""

    meshes: tuple[ParametrisedMesh, ...]

    @property
    def patches(self) -> PatchSet:
        """The patches that the meshes belong to."""
        return PatchSet(tuple(mesh.patch for mesh in self.meshes))

    def fit(self, shapes: ArrayLike) -> Array:
        """Return the control points (..., C, 3) of shapes (..., V, 3) of the original mesh, see `SurfaceFitter.fit`."""
        grids = [mesh.fit(shapes) for mesh in self.meshes]
        return np.concatenate([grid.reshape(*grid.shape[:-3], -1, 3) for grid in grids], axis=-2)

    def report(self, shapes: ArrayLike, control_points: Array) -> FitReport:
        """Report the distance of fitted surfaces (n, C, 3) from the vertices of shapes (n, V, 3)."""
        grids = self.patches.control_grids(control_points)
        own = [mesh.report(shapes, grid) for mesh, grid in zip(self.meshes, grids, strict=True)]
        mean = np.average([one.mean for one in own], axis=0, weights=[len(mesh.uv) for mesh in self.meshes])
        return FitReport(mean, np.max([one.max for one in own], axis=0))
