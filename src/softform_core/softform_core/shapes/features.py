"""Feature points: places of the robot's surface, and where each is wanted (paper 002, Sec. II-B)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.patch_set import on_patches

MAX_FEATURES = 1000
"""More points than this are a shape: give a cloud or a mesh."""


@dataclass(frozen=True)
class FeaturePoints:
    """Sparse targets with correspondence; made by `of`, which checks them.

    Attributes:
        uv: (M, 2) surface parameters of the points, see `surface.patch_set`.
        positions: (M, 3) m, where each is wanted.
        weights: (M,) of each squared distance.
    """

    uv: Array
    positions: Array
    weights: Array

    @classmethod
    def of(cls, uv: ArrayLike, positions: ArrayLike, weights: ArrayLike | None = None) -> "FeaturePoints":
        """Check and keep feature points.

        Args:
            uv: (M, 2), M > 0; in the unit square, that of patch i further by 2 i in u.
            positions: (M, 3) m.
            weights: (M,) positive, or None for 1 each.

        Raises:
            SoftformError: On other sizes, NaN, parameters outside the unit square or weights that are not positive.
        """
        places, wanted = np.asarray(uv, dtype=np.float64), np.asarray(positions, dtype=np.float64)
        count = len(places) if places.ndim == 2 else 0
        if places.shape != (count, 2) or wanted.shape != (count, 3) or not 0 < count <= MAX_FEATURES:
            raise SoftformError(
                f"Feature points have {places.shape} surface parameters and {wanted.shape} positions.",
                f"Give one (u, v) and one position x, y, z for each of 1 to {MAX_FEATURES} points.",
            )
        if not (np.isfinite(places).all() and np.isfinite(wanted).all()):
            raise SoftformError("A feature point has NaN or infinite numbers.", "Leave out points that are not known.")
        if not on_patches(places).all():
            raise SoftformError(
                f"The surface parameters of feature points reach from {places.min():g} to {places.max():g}.",
                "Give u and v between 0 and 1: they are parameters of the robot's surface, not metres.",
            )
        shares = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
        if shares.shape != (count,) or not np.isfinite(shares).all() or not (shares > 0.0).all():
            raise SoftformError(
                f"The weights of {count} feature points have shape {shares.shape} and the values {shares}.",
                "Give one positive weight for each point, or none at all.",
            )
        return cls(places, wanted, shares)

    def __len__(self) -> int:
        """Number M of points."""
        return len(self.uv)
