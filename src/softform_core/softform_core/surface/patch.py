"""Patches: a robot's surfaces as B-splines (paper 000, Eq. 1), a sheet with four sides or a tube with two ends.

The patch answers all that depends on the control grid, or on whether it is sheet or tube. A tube is periodic along u:
its seam is closed whatever control points a fit or a network gives, and a warp (Eq. 2), which moves points by where
they are, keeps it closed.
"""

import logging
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.bspline import evaluate
from softform_core.surface.fit import FitReport, SurfaceFitter, shapes_of
from softform_core.surface.mean_value import parametrise, parametrise_tube
from softform_core.surface.mesh_repair import repair


class Side(NamedTuple):
    """A part of a patch's border: where the parameter of an axis (0 is u, 1 is v) has the value `end`, 0 or 1."""

    axis: int
    end: int


class Patch(NamedTuple):
    """A B-spline surface over the unit square; unpacked, the last arguments of `bspline.basis_matrix`.

    Attributes:
        rows: Control points along u.
        cols: Control points along v.
        degree: Polynomial degree.
        periodic: Whether u runs around a tube.
    """

    rows: int = 30
    cols: int = 30
    degree: int = 3
    periodic: bool = False

    @property
    def sides(self) -> tuple[Side, ...]:
        """Borders of the patch: four sides, or the two ends of a tube."""
        ends_of_v = Side(1, 0), Side(1, 1)
        return ends_of_v if self.periodic else (Side(0, 0), Side(0, 1), *ends_of_v)

    def parametrised(self, vertices: ArrayLike, faces: ArrayLike) -> "ParametrisedMesh":
        """Return a rest mesh, repaired and flattened.

        Args:
            vertices: (V, 3), any unit.
            faces: (F, 3) indices of a mesh with the topology of a disk, or of a tube if periodic.

        Raises:
            SoftformError: If the mesh cannot be repaired or flattened: it is closed, has more outlines than the patch,
                is not manifold, is empty or holds NaN.
        """
        mesh = repair(vertices, faces)
        flat = (parametrise_tube if self.periodic else parametrise)(mesh.vertices, mesh.faces)
        repairs = mesh.repairs
        if flat.flips:
            repairs += (f"{flat.flips} edges between vertices of one side were flipped.",)
            logging.getLogger(__name__).warning("Mesh repaired: %s", repairs[-1])
        return ParametrisedMesh(self, flat.uv, flat.faces, mesh.kept, len(np.asarray(vertices)), repairs)

    def evaluate(self, control_points: ArrayLike, uv: ArrayLike) -> Array:
        """Return points (..., P, 3) of surfaces of control points (..., rows, cols, 3) at (P, 2), Eq. 1."""
        return evaluate(control_points, uv, self.degree, self.periodic)

    def samples(self, count: int) -> Array:
        """Return about `count` parameters spread evenly over the patch, borders included.

        Args:
            count: Wanted number of points, at least 4; the nearest square number is used.

        Returns:
            (P, 2), point i * sqrt(P) + j at the i-th u and the j-th v.
        """
        side = grid_side(count)
        line = np.linspace(0.0, 1.0, side)
        around = np.arange(side) / side if self.periodic else line
        return np.stack(np.meshgrid(around, line, indexing="ij"), axis=-1).reshape(-1, 2)

    def triangles(self, count: int) -> NDArray[np.int64]:
        """Return triangles over `samples(count)`, (F, 3), oriented like du x dv; those of a tube go around."""
        side = grid_side(count)
        start = np.arange(side if self.periodic else side - 1)
        corner = (start[:, None] * side + np.arange(side - 1)).ravel()
        beyond = ((start[:, None] + 1) % side * side + np.arange(side - 1)).ravel()
        lower = np.stack([corner, beyond, beyond + 1], axis=1)
        upper = np.stack([corner, beyond + 1, corner + 1], axis=1)
        return np.concatenate([lower, upper])

    def grid(self, values: Array) -> Array:
        """Return values (P, ...) over `samples(P)` as a grid (g, g, ...), first index along u.

        For a tube the first line is repeated at u = 1, (g + 1, g, ...), so that the grid is closed at the seam.
        """
        grid = self.square(values)
        return np.concatenate([grid, grid[:1]]) if self.periodic else grid

    def square(self, values: Array) -> Array:
        """Return values (P, ...) over `samples(P)` as (g, g, ...), first index along u."""
        side = grid_side(len(values))
        return values.reshape(side, side, *values.shape[1:])

    def grid_lines(self, count: int) -> tuple[Array, Array]:
        """Return values of u and of v on the lines of `grid` over `samples(count)`."""
        side = grid_side(count)
        return np.linspace(0.0, 1.0, side + 1 if self.periodic else side), np.linspace(0.0, 1.0, side)

    def unwrapped(self, corners: Array) -> Array:
        """Return parameters (F, n, 2) of faces' corners; around a tube, u may leave 0 ... 1 to stay with its face."""
        if not self.periodic:
            return corners
        u = corners[..., 0] - np.round(corners[..., 0] - corners[:, :1, 0])
        return np.stack([u, corners[..., 1]], axis=-1)

    def wrapped(self, uv: Array) -> Array:
        """Return parameters (P, 2) with u brought back to 0 ... 1 around a tube."""
        return np.stack([uv[:, 0] % 1.0, uv[:, 1]], axis=1) if self.periodic else uv

    def spacing(self, count: int) -> tuple[float, float]:
        """Return steps of u and v between the points of `samples(count)`."""
        side = grid_side(count)
        return 1.0 / (side if self.periodic else side - 1), 1.0 / (side - 1)

    def side_samples(self, count: int, side: Side) -> NDArray[np.int64]:
        """Return which of `samples(count)` lie on a side, without its corners; the whole circle of a tube's end."""
        number = grid_side(count)
        if side.axis == 1:
            along = np.arange(number) if self.periodic else np.arange(1, number - 1)
            return along * number + side.end * (number - 1)
        return side.end * (number - 1) * number + np.arange(1, number - 1)

    def kernels(self, count: int) -> Array:
        """Return parameters (N, 2) of kernels in the middle of equal cells: at a fixed rim they have little to do.

        Raises:
            SoftformError: If the number is not a square.
        """
        side = math.isqrt(count)
        if side**2 != count:
            raise SoftformError(f"{count} kernels form no square grid.", "Use 25, 36, 64, 100, ...")
        line = (np.arange(side) + 0.5) / side
        return np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)


@dataclass(frozen=True)
class ParametrisedMesh:
    """The rest mesh of a patch, flattened; fits surfaces to its deformed shapes.

    Attributes:
        patch: Patch that the mesh belongs to.
        uv: (W, 2) parameters of the vertices.
        faces: (F, 3).
        kept: (W,) which vertex of the original mesh each is.
        vertices: Number of vertices of the original mesh.
        repairs: Repairs made, one sentence each.
    """

    patch: Patch
    uv: Array
    faces: NDArray[np.int64]
    kept: NDArray[np.int64]
    vertices: int
    repairs: tuple[str, ...]

    @property
    def corners(self) -> Array:
        """Parameters (F, 3, 2) of the corners of each face; around a tube u may leave 0 ... 1 to stay with its face."""
        return self.patch.unwrapped(self.uv[self.faces])

    @cached_property
    def fitter(self) -> SurfaceFitter:
        """Least squares with one factorisation for all shapes.

        Raises:
            SoftformError: If the vertices do not determine the control points.
        """
        return SurfaceFitter(self.uv, *self.patch)

    def fit(self, shapes: ArrayLike) -> Array:
        """Fit control points (..., rows, cols, 3) to shapes (..., V, 3) of the original mesh by `SurfaceFitter.fit`."""
        return self.fitter.fit(self._kept(shapes))

    def report(self, shapes: ArrayLike, control_points: ArrayLike) -> FitReport:
        """Report the distance of fitted surfaces (n, rows, cols, 3) from the vertices of shapes (n, V, 3)."""
        return self.fitter.report(self._kept(shapes), control_points)

    def _kept(self, shapes: ArrayLike) -> Array:
        return shapes_of(self.vertices, shapes)[..., self.kept, :]


def grid_side(count: int) -> int:
    """Return points a side of the grid of `Patch.samples(count)`."""
    return max(2, round(math.sqrt(count)))
