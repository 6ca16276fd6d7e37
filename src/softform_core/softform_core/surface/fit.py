"""Control points of a deformed shape by least squares, with one factorisation for all shapes (paper 000, Sec. II-A).

Where vertices are sparse, least squares alone leave control points almost free: the surface passes through the vertices
and swings far off between them. A thin-plate term holds it there,

    C = argmin |B C - X|^2 + lambda trace(C^T G C),

with B of Eq. 1 and G of `bending_energy`, scaled to the trace of B^T B. The rule for lambda is the smallest for which
independent errors of the vertices are nowhere amplified more than tenfold: on a dense grid D over the unit square the
rows of D (B^T B + lambda G)^-1 B^T have norms of at most ten. It depends on the mesh at rest only. On an even mesh that
is finer than the control grid (a membrane's own: 1.5) it is zero, which is plain least squares.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, solve_triangular
from scipy.optimize import brentq
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.bspline import basis_matrix, knots_along


def bending_energy(rows: int, cols: int, degree: int = 3, periodic: bool = False) -> Array:
    """Return G of the thin-plate energy: the integral of |S_uu|^2 + 2 |S_uv|^2 + |S_vv|^2 du dv = trace(C^T G C).

    Arguments as of `basis_matrix`.

    Returns:
        (rows * cols, rows * cols), symmetric, positive semidefinite, for control points C (rows * cols, 3).

    Raises:
        SoftformError: If there are too few control points for the degree.
    """
    along_u = [_gram(rows, degree, order, periodic) for order in range(3)]
    along_v = [_gram(cols, degree, order, False) for order in range(3)]
    return np.kron(along_u[2], along_v[0]) + 2.0 * np.kron(along_u[1], along_v[1]) + np.kron(along_u[0], along_v[2])


def _gram(count: int, degree: int, order: int, periodic: bool) -> Array:
    """Return integrals over [0, 1] of products of the basis functions' derivatives of an order, (count, count)."""
    knots = knots_along(count, degree, periodic)
    ends = np.unique(knots[(knots >= 0.0) & (knots <= 1.0)])
    # Gauss-Legendre with degree + 1 nodes an interval is exact for polynomials up to 2 degree + 1.
    nodes, weights = np.polynomial.legendre.leggauss(degree + 1)
    half = np.diff(ends)[:, None] / 2.0
    at = (ends[:-1, None] + half + half * nodes).ravel()
    wrapped = np.eye(count)[np.arange(len(knots) - degree - 1) % count]
    values = BSpline(knots, wrapped, degree)(at, nu=order)
    return values.T @ ((half * weights).reshape(-1, 1) * values)


def shapes_of(vertices: int, shapes: ArrayLike) -> Array:
    """Return shapes (..., V, 3) as an array; a `SoftformError` if they do not have so many vertices."""
    values = np.asarray(shapes, dtype=np.float64)
    if values.ndim < 2 or values.shape[-2:] != (vertices, 3):
        raise SoftformError(
            f"Shapes of {values.shape} do not have the {vertices} vertices of the rest shape.",
            "Shapes must come from the mesh that was parametrised.",
        )
    return values


LARGEST_AMPLIFICATION = 10.0
"""Largest amplification of independent errors of the vertices, anywhere on the surface."""
_LAMBDA = 1e-14, 1e4
"""Range of lambda in which the rule looks, relative to the data term."""
_SAMPLES_PER_SPAN = 2


@dataclass(frozen=True)
class FitReport:
    """Distances between the vertices of each shape and its fitted surface at the same (u, v).

    Attributes:
        mean: (n,) mean over the vertices, in the unit of the vertices.
        max: (n,) largest over the vertices.
    """

    mean: Array
    max: Array


class SurfaceFitter:
    """Fits B-spline surfaces to shapes that share one parametrisation, that of the rest shape.

    Args:
        uv: (V, 2) parameters of the mesh's vertices, see `mean_value.parametrise`.
        rows, cols, degree, periodic: As of `basis_matrix`.

    Attributes:
        basis: (V, rows * cols), B.
        smoothing: lambda, relative to the data term; 0 where the vertices alone determine the surface well.

    Raises:
        SoftformError: If there are fewer vertices than control points, or they leave a part of the square empty.
    """

    def __init__(self, uv: ArrayLike, rows: int = 30, cols: int = 30, degree: int = 3, periodic: bool = False) -> None:
        self.rows, self.cols = rows, cols
        self.basis = basis_matrix(uv, rows, cols, degree, periodic)
        reached = np.asarray(uv)[:, 1:] if periodic else np.asarray(uv)
        if self.basis.shape[0] < rows * cols or reached.min(axis=0).any() or (reached.max(axis=0) < 1.0).any():
            raise self._undetermined()
        normal = (self.basis.T @ self.basis).toarray()
        bending = bending_energy(rows, cols, degree, periodic)
        bending *= np.trace(normal) / np.trace(bending)
        spans = (rows if periodic else rows - degree, cols - degree)
        line_u, line_v = (np.linspace(0.0, 1.0, _SAMPLES_PER_SPAN * count + 1) for count in spans)
        dense = basis_matrix(
            np.stack(np.meshgrid(line_u, line_v, indexing="ij"), axis=-1).reshape(-1, 2), rows, cols, degree, periodic
        )
        self.smoothing = self._smoothing(normal, bending, dense)
        self._factor = cho_factor(normal + self.smoothing * bending)

    def _smoothing(self, normal: Array, bending: Array, dense: csr_matrix) -> float:
        """Return the smallest lambda that keeps the amplification within its limit on the dense grid."""
        with suppress(LinAlgError):  # most often the vertices alone do, which takes a fraction of the decomposition
            root = cholesky(normal, lower=True)
            alone = solve_triangular(root, dense.T.toarray(), lower=True)
            if (alone**2).sum(axis=0).max() ** 0.5 <= LARGEST_AMPLIFICATION:
                return 0.0
        try:
            # W^T N W = diag(s) and W^T G W = diag(1 - s): the norms for any lambda follow from one decomposition.
            data, modes = eigh(normal, normal + bending)
        except LinAlgError as error:
            raise self._undetermined() from error
        data, squares = np.clip(data, 1e-150, 1.0), (dense @ modes) ** 2

        def excess(exponent: float) -> float:
            """Return the logarithm of the largest amplification at lambda = 10^exponent over its limit."""
            amplification = (squares @ (data / (data + 10.0**exponent * (1.0 - data)) ** 2)).max() ** 0.5
            return float(np.log(amplification / LARGEST_AMPLIFICATION))

        lowest, highest = np.log10(_LAMBDA)
        if excess(highest) > 0.0:
            raise self._undetermined()
        return 10.0 ** float(lowest if excess(lowest) <= 0.0 else brentq(excess, lowest, highest, xtol=1e-3))

    def _undetermined(self) -> SoftformError:
        return SoftformError(
            f"{self.basis.shape[0]} vertices do not determine {self.rows} x {self.cols} control points.",
            "Refine the mesh, or set `rows` and `columns` lower in `surfaces` of the robot's description.",
        )

    def fit(self, vertices: ArrayLike) -> Array:
        """Return control points (..., rows, cols, 3) near vertices (..., V, 3): (B^T B + lambda G)^-1 B^T X.

        Raises:
            SoftformError: If the vertices do not fit the parametrisation or are not finite.
        """
        shapes = self._checked(vertices)
        columns = shapes.reshape(-1, shapes.shape[-2], 3).transpose(1, 0, 2).reshape(shapes.shape[-2], -1)
        control = cho_solve(self._factor, self.basis.T @ columns)
        control = control.reshape(self.rows, self.cols, -1, 3).transpose(2, 0, 1, 3)
        return np.ascontiguousarray(control).reshape(*shapes.shape[:-2], self.rows, self.cols, 3)

    def report(self, vertices: ArrayLike, control_points: ArrayLike) -> FitReport:
        """Report the distance of fitted surfaces (n, rows, cols, 3) from the vertices (n, V, 3); errors as of `fit`."""
        shapes = self._checked(vertices)
        control = np.asarray(control_points, dtype=np.float64)
        if shapes.ndim != 3 or control.shape != (len(shapes), self.rows, self.cols, 3):
            raise SoftformError(
                f"Vertices {shapes.shape} and control points {control.shape} do not belong together.",
                f"Give (n, V, 3) and (n, {self.rows}, {self.cols}, 3).",
            )
        off = [self.basis @ points.reshape(-1, 3) - shape for points, shape in zip(control, shapes, strict=True)]
        distances = np.linalg.norm(off, axis=2)
        return FitReport(distances.mean(axis=1), distances.max(axis=1))

    def _checked(self, vertices: ArrayLike) -> Array:
        shapes = shapes_of(self.basis.shape[0], vertices)
        if not np.isfinite(shapes).all():
            raise SoftformError("A shape to fit holds NaN or infinity.", "Leave failed simulations out.")
        return shapes
