"""What a captured cloud shows beyond a prediction: residuals along the predicted normals, and a smooth field of them.

The foot of a captured point on the predicted surface is exact, and its offset from there lies along the normal: the
pair is one sample of the displacement that the prediction lacks, without any correspondence. What the surface did along
itself stays unknown, as in any correspondence-free comparison. Parts of the surface that no captured point falls on (a
hole) give no samples; there the field is what smoothness makes of its surroundings, and decays to what was known
before. The other way round, from predicted to captured points, a hole would give false samples.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RectBivariateSpline

from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.surface.bspline import basis_matrix
from softform_core.surface.patch import SHEET

Array = NDArray[np.float64]

SIDE = 20
"""Control values a side of the field: 17 mm apart on the 320 mm membrane, fine enough for the edge of a chamber."""

ROUGHNESS = 0.1
RIDGE = 0.02
"""Weights of the field's squared second differences and of its squared values, beside a sum over captured points. Of a
grid of 45 settings on validation actuations these are among the best; twice or half of each changes little."""

BEYOND_RIM_PART = 0.002
"""A captured point sideways of the predicted rim by more than this part of the surface's size has no foot."""

_FINE_SIDE = 97
"""The predicted grid is refined to so many points a side: chords of a 10 mm grid lie up to 0.2 mm off the surface."""

_REWEIGHTINGS = 4
_HUBER = 2.0
_ROUNDING_MM = 1e-6


@dataclass(frozen=True)
class SurfaceResiduals:
    """Captured points seen from the predicted surface.

    Attributes:
        uv: (m, 2) surface parameters of their feet.
        along_normal: (m,) mm from the foot to the point, positive along du x dv.
    """

    uv: Array
    along_normal: Array


def surface_residuals(predicted: Array, captured: Array) -> SurfaceResiduals:
    """Feet of captured points on a predicted surface, and how far the points lie from them.

    Args:
        predicted: (P, 3) mm over `Patch.samples(P)`.
        captured: (N, 3) mm, finite.

    Raises:
        SoftformError: If no captured point lies over the surface.
    """
    fine, uv = _refined(predicted), SHEET.samples(_FINE_SIDE**2)
    faces = SHEET.triangles(_FINE_SIDE**2)
    corners = fine[faces]
    triangle, feet, barycentric = TriangleTree(corners).query(captured)
    a, b, c = (corners[triangle, corner] for corner in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    offset = captured - feet
    along = np.einsum("nx,nx->n", offset, normals)
    sideways = np.linalg.norm(offset - along[:, None] * normals, axis=1)
    places = np.einsum("nc,ncx->nx", barycentric, uv[faces[triangle]])
    on_rim = ((places <= 1e-9) | (places >= 1.0 - 1e-9)).any(axis=1)
    size = float(np.linalg.norm(np.ptp(predicted, axis=0)))
    kept = ~(on_rim & (sideways > BEYOND_RIM_PART * size))
    if not kept.any():
        raise SoftformError("No captured point lies over the predicted surface.", "Check the capture's registration.")
    return SurfaceResiduals(np.clip(places[kept], 0.0, 1.0), along[kept])


def _refined(points: Array) -> Array:
    """A surface over `Patch.samples(P)` on a finer even grid, by bicubic interpolation, (_FINE_SIDE ** 2, 3) mm."""
    side = round(float(np.sqrt(len(points))))
    coarse, fine = np.linspace(0.0, 1.0, side), np.linspace(0.0, 1.0, _FINE_SIDE)
    grids = points.reshape(side, side, 3)
    parts = [RectBivariateSpline(coarse, coarse, grids[:, :, axis])(fine, fine).ravel() for axis in range(3)]
    return np.stack(parts, axis=1)


@dataclass(frozen=True)
class ResidualField:
    """A displacement along the normals as a function of (u, v): a penalised B-spline (Eilers and Marx 1996), mm.

    Attributes:
        coefficients: (SIDE * SIDE,) mm.
    """

    coefficients: Array

    @classmethod
    def zero(cls) -> "ResidualField":
        """The field of a prediction that lacks nothing."""
        return cls(np.zeros(SIDE * SIDE))

    def values(self, uv: Array) -> Array:
        """Displacements at parameters (P, 2), (P,) mm."""
        return np.asarray(basis_matrix(uv, SIDE, SIDE) @ self.coefficients)

    def towards(self, residuals: SurfaceResiduals, gain: float = 1.0) -> "ResidualField":
        """This field moved towards residuals; where there are none it stays as it is.

        Robust regression on what this field does not explain: Huber's weights, scaled by the median deviation, so that
        stray points count little.

        Args:
            residuals: What was captured.
            gain: Share of the way, 0 … 1.
        """
        basis = basis_matrix(residuals.uv, SIDE, SIDE)
        unexplained = residuals.along_normal - basis @ self.coefficients
        weights = np.ones(len(unexplained))
        for _ in range(_REWEIGHTINGS):
            weighted = basis.multiply(weights[:, None]).T
            change = np.linalg.solve((weighted @ basis).toarray() + _PENALTY, weighted @ unexplained)
            deviation = np.abs(unexplained - basis @ change)
            scale = max(1.4826 * float(np.median(deviation)), _ROUNDING_MM)
            weights = np.minimum(1.0, _HUBER * scale / np.maximum(deviation, _ROUNDING_MM))
        return ResidualField(self.coefficients + gain * change)


def _penalty() -> Array:
    """Thin-plate roughness of the control values, and a ridge, (SIDE ** 2, SIDE ** 2)."""
    unit = np.eye(SIDE)
    first, second = np.diff(unit, axis=0), np.diff(unit, n=2, axis=0)
    bending = second.T @ second
    roughness = np.kron(bending, unit) + np.kron(unit, bending) + 2.0 * np.kron(first.T @ first, first.T @ first)
    return ROUGHNESS * roughness + RIDGE * np.eye(SIDE * SIDE)


_PENALTY = _penalty()
