"""Control points of a deformed shape by least squares, with one factorisation for all shapes (paper 000, Sec. II-A)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from softform_core.errors import SoftformError
from softform_core.surface.bspline import basis_matrix

Array = NDArray[np.float64]

# Above this condition number of the normal equations, some control point hardly moves any vertex.
_LARGEST_CONDITION = 1e12


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
        rows: Control points along u.
        cols: Control points along v.
        degree: Polynomial degree.

    Raises:
        SoftformError: If the vertices do not determine all control points.
    """

    def __init__(self, uv: ArrayLike, rows: int = 30, cols: int = 30, degree: int = 3) -> None:
        """Factor the normal equations B^T B."""
        self.rows, self.cols = rows, cols
        self.basis = basis_matrix(uv, rows, cols, degree)
        normal = (self.basis.T @ self.basis).toarray()
        eigenvalues = np.linalg.eigvalsh(normal)
        if not eigenvalues[0] > eigenvalues[-1] / _LARGEST_CONDITION:
            raise SoftformError(
                f"{self.basis.shape[0]} vertices do not determine {rows} x {cols} control points.",
                "Refine the mesh, or set surface.rows and surface.columns of the robot lower.",
            )
        self._factor = cho_factor(normal)

    def fit(self, vertices: ArrayLike) -> Array:
        """Control points that minimise the squared distances to the vertices.

        Args:
            vertices: (..., V, 3).

        Returns:
            (..., rows, cols, 3), in the unit of the vertices.

        Raises:
            SoftformError: If the vertices do not fit the parametrisation or are not finite.
        """
        shapes = self._checked(vertices)
        columns = shapes.reshape(-1, shapes.shape[-2], 3).transpose(1, 0, 2).reshape(shapes.shape[-2], -1)
        control = cho_solve(self._factor, self.basis.T @ columns)
        control = control.reshape(self.rows, self.cols, -1, 3).transpose(2, 0, 1, 3)
        return np.ascontiguousarray(control).reshape(*shapes.shape[:-2], self.rows, self.cols, 3)

    def report(self, vertices: ArrayLike, control_points: ArrayLike) -> FitReport:
        """How far fitted surfaces (n, rows, cols, 3) are from the vertices (n, V, 3).

        Raises:
            SoftformError: If shapes do not fit each other.
        """
        shapes = self._checked(vertices)
        control = np.asarray(control_points, dtype=np.float64)
        if shapes.ndim != 3 or control.shape != (len(shapes), self.rows, self.cols, 3):
            raise SoftformError(
                f"Vertices {shapes.shape} and control points {control.shape} do not belong together.",
                f"Give (n, V, 3) and (n, {self.rows}, {self.cols}, 3).",
            )
        distances = np.stack(
            [
                np.linalg.norm(self.basis @ points.reshape(-1, 3) - shape, axis=1)
                for points, shape in zip(control, shapes, strict=True)
            ]
        )
        return FitReport(distances.mean(axis=1), distances.max(axis=1))

    def _checked(self, vertices: ArrayLike) -> Array:
        shapes = np.asarray(vertices, dtype=np.float64)
        if shapes.ndim < 2 or shapes.shape[-2:] != (self.basis.shape[0], 3):
            raise SoftformError(
                f"Shapes of {shapes.shape} do not have the {self.basis.shape[0]} vertices of the rest shape.",
                "Shapes must come from the mesh that was parametrised.",
            )
        if not np.isfinite(shapes).all():
            raise SoftformError("A shape to fit holds NaN or infinity.", "Leave failed simulations out.")
        return shapes
