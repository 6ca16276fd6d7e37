"""Residuals of a captured cloud to a prediction along the predicted normals, and a smooth field of them.

The foot of a captured point on the predicted surface is exact, and its offset from there lies along the normal: the
pair is one sample of the displacement that the prediction lacks, without any correspondence. What the surface did along
itself stays unknown, as in any correspondence-free comparison. Parts of the surface that no captured point falls on (a
hole) give no samples; there the field is what smoothness makes of its surroundings, and decays to what was known
before. The other way round, from predicted to captured points, a hole would give false samples.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.linalg import block_diag
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.feet import feet_on
from softform_core.surface.patch import Patch
from softform_core.surface.patch_set import SHEET, PatchSet

SIDE = 20
"""Control values a side of the field: 17 mm apart on the 320 mm membrane, fine enough for the edge of a chamber."""

ROUGHNESS = 0.1
RIDGE = 0.02
"""Weights of the field's squared second differences and of its squared values, beside a sum over captured points. Of a
grid of 45 settings on validation actuations these are among the best; twice or half of each changes little."""

BEYOND_RIM_PART = 0.002
"""Distance sideways of the predicted rim, over the surface's size, beyond which a captured point has no foot."""

_FINE_SIDE = 97
"""Points a side of the refined grid: chords of a 10 mm grid lie up to 0.2 mm off the surface."""

_BEYOND_SEAM = 4
"""Lines of a tube's grid that are repeated on both sides of its seam before it is refined."""

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


def surface_residuals(predicted: Array, captured: Array, patches: PatchSet = SHEET) -> SurfaceResiduals:
    """Return feet of captured points (N, 3) mm on a surface (P, 3) mm over `PatchSet.samples`, and distances.

    Raises:
        SoftformError: If no captured point lies over the surface.
    """
    parts = zip(np.split(predicted, len(patches)), patches.patches, strict=True)
    feet = feet_on(np.concatenate([_refined(points, patch) for points, patch in parts]), patches, captured)
    size = float(np.linalg.norm(np.ptp(predicted, axis=0)))
    kept = feet.beyond_rim <= BEYOND_RIM_PART * size
    if not kept.any():
        raise SoftformError("No captured point lies over the predicted surface.", "Check the capture's registration.")
    return SurfaceResiduals(feet.uv[kept], feet.along_normal[kept])


def _refined(points: Array, patch: Patch) -> Array:
    """Refine a surface over `patch.samples(P)` by bicubic interpolation to an even grid, (_FINE_SIDE ** 2, 3) mm."""
    u, v = patch.grid_lines(len(points))
    grids = patch.grid(points)
    if patch.periodic:  # interpolated as smoothly across the seam as elsewhere
        u = np.concatenate([u[-1 - _BEYOND_SEAM : -1] - 1.0, u, u[1 : 1 + _BEYOND_SEAM] + 1.0])
        grids = np.concatenate([grids[-1 - _BEYOND_SEAM : -1], grids, grids[1 : 1 + _BEYOND_SEAM]])
    fine = patch.samples(_FINE_SIDE**2).reshape(_FINE_SIDE, _FINE_SIDE, 2)
    fine_u, fine_v = fine[:, 0, 0], fine[0, :, 1]
    parts = [RectBivariateSpline(u, v, grids[:, :, axis])(fine_u, fine_v).ravel() for axis in range(3)]
    return np.stack(parts, axis=1)


@dataclass(frozen=True)
class ResidualField:
    """A displacement along the normals as a function of (u, v): a penalised B-spline (Eilers and Marx 1996), mm.

    Attributes:
        coefficients: (n * SIDE * SIDE,) mm, of n patches.
        patches: Parametrisation of the surface; only which patches are tubes counts.
    """

    coefficients: Array
    patches: PatchSet = SHEET

    @classmethod
    def zero(cls, patches: PatchSet = SHEET) -> "ResidualField":
        """Return the field over the patches of a prediction that lacks nothing."""
        return cls(np.zeros(len(patches) * SIDE * SIDE), patches)

    def values(self, uv: Array) -> Array:
        """Return displacements at parameters (P, 2), (P,) mm."""
        return np.asarray(self._basis(uv) @ self.coefficients)

    def towards(self, residuals: SurfaceResiduals, gain: float = 1.0) -> "ResidualField":
        """Return this field moved towards residuals by a share `gain`; where there are none it stays as it is.

        Robust regression on what this field does not explain: Huber's weights, scaled by the median deviation, so that
        stray points count little.
        """
        basis = self._basis(residuals.uv)
        penalty = block_diag(*(_penalty(patch.periodic) for patch in self.patches.patches))
        unexplained = residuals.along_normal - basis @ self.coefficients
        weights = np.ones(len(unexplained))
        for _ in range(_REWEIGHTINGS):
            weighted = basis.multiply(weights[:, None]).T
            change = np.linalg.solve((weighted @ basis).toarray() + penalty, weighted @ unexplained)
            deviation = np.abs(unexplained - basis @ change)
            scale = max(1.4826 * float(np.median(deviation)), _ROUNDING_MM)
            weights = np.minimum(1.0, _HUBER * scale / np.maximum(deviation, _ROUNDING_MM))
        return ResidualField(self.coefficients + gain * change, self.patches)

    def _basis(self, uv: Array) -> csr_matrix:
        return self.patches.with_grids(SIDE).basis(uv)


@cache
def _penalty(periodic: bool) -> Array:
    """Return the thin-plate roughness of the control values, and a ridge, (SIDE ** 2, SIDE ** 2)."""
    unit = np.eye(SIDE)
    first, second = np.diff(unit, axis=0), np.diff(unit, n=2, axis=0)
    slope_u, bend_u = (
        (np.roll(unit, 1, 1) - unit, np.roll(unit, 1, 1) - 2.0 * unit + np.roll(unit, -1, 1))
        if periodic
        else (first, second)
    )
    roughness = (
        np.kron(bend_u.T @ bend_u, unit)
        + np.kron(unit, second.T @ second)
        + 2.0 * np.kron(slope_u.T @ slope_u, first.T @ first)
    )
    return ROUGHNESS * roughness + RIDGE * np.eye(SIDE * SIDE)
