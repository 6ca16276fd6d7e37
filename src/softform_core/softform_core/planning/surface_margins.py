"""The predicted whole surface with what it may be off: its uncertainty, and the triangles between its points.

The margin that is kept at a surface point, beside the clearance that was asked for, is

    allowance = SIGMAS * sigma + chord

with one standard deviation sigma of the prediction along the normal (`SurfaceUncertainty`) and the greatest distance
`chord` between the smooth surface and its triangles there. Millimetres.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SurfaceModel
from softform_core.forward.surface_uncertainty import SurfaceUncertainty

SIGMAS = 2.0
"""Margin in standard deviations of the prediction: 95 % of the points, were their errors Gaussian."""

UNCERTAINTY_SIDE = 20
"""Points a side at which the uncertainty is evaluated: it varies over chambers, which are three a side."""

_CHORD_FACTOR = 2.0
_CHORD_REACH = 5
"""Second differences miss detail finer than the grid, and the clamped rim: over the shapes of random and extreme
actuations the true distance is at most 1.6 times what those of the neighbourhood show."""


@dataclass(frozen=True)
class SurfaceStates:
    """Predicted surfaces at n actuations, (n, P, 3) mm over `PatchSet.samples(P)`, and their allowances, (n, P) mm."""

    points: Array
    allowance: Array


class MarginedSurface:
    """Surfaces of one model, exact where its uncertainty is not given; a newer model does not change it.

    Raises:
        SoftformError: If the pipeline's points are no even grids.
    """

    def __init__(self, pipeline: SurfaceModel, uncertainty: SurfaceUncertainty | None) -> None:
        self.pipeline, patches = pipeline, pipeline.patches
        count = len(pipeline.uv)
        self.side = round(float(np.sqrt(count / len(patches))))
        if not np.array_equal(pipeline.uv, patches.samples(count)):
            raise SoftformError(
                "The surface's points are no even grids.", "Make the pipeline over the samples of its patches."
            )
        self.faces = patches.triangles(count)
        self._coarse = (
            None if uncertainty is None else uncertainty.at(patches.samples(len(patches) * UNCERTAINTY_SIDE**2))
        )
        self._interpolation = patches.with_grids(UNCERTAINTY_SIDE, 1).basis(pipeline.uv)

    def at(self, actuation: Array) -> SurfaceStates:
        """Return surfaces at (n, k)."""
        points = self.pipeline.points(actuation)
        patches = self.pipeline.patches.patches
        parts = zip(np.split(points, len(patches), axis=1), patches, strict=True)
        allowance = np.concatenate([chords(own, self.side, patch.periodic) for own, patch in parts], axis=1)
        if self._coarse is not None:
            allowance += SIGMAS * (self._interpolation @ self._coarse.along_normals(actuation).T).T
        return SurfaceStates(points, allowance)


def chords(points: Array, side: int, periodic: bool = False) -> Array:
    """Return the distance (n, side²), mm, of a smooth surface from triangles around its points (n, side², 3).

    A triangle over half a cell of size h lies within h^2/8 (|p_uu| + 2 |p_uv| + |p_vv|) of the surface; the second
    derivatives are taken from differences over the grid.
    """
    grid = points.reshape(-1, side, side, 3)
    if periodic:
        grid = np.concatenate([grid[:, -1:], grid, grid[:, :1]], axis=1)
    bend = np.zeros(grid.shape[:3])
    bend[:, 1:-1] += np.linalg.norm(np.diff(grid, n=2, axis=1), axis=-1)
    bend[:, :, 1:-1] += np.linalg.norm(np.diff(grid, n=2, axis=2), axis=-1)
    bend[:, :-1, :-1] += 2.0 * np.linalg.norm(np.diff(np.diff(grid, axis=1), axis=2), axis=-1)
    modes = ("reflect", "wrap", "reflect") if periodic else "reflect"
    bend = bend[:, 1:-1] if periodic else bend
    around = maximum_filter(bend, size=(1, _CHORD_REACH, _CHORD_REACH), mode=modes)
    return np.asarray(_CHORD_FACTOR / 8.0 * around.reshape(len(grid), -1))
