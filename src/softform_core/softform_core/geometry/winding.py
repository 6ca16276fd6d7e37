"""Which points lie within a closed surface of triangles."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array

_QUERIED_AT_ONCE = 500_000


def lies_within(corners: Array, points: Array) -> NDArray[np.bool_]:
    """Return which of (P, 3) points triangles (F, 3, 3) wind around: a winding number above one half."""
    chunk = max(1, _QUERIED_AT_ONCE // len(corners))
    parts = [_winding_number(corners, points[i : i + chunk]) for i in range(0, len(points), chunk)]
    return np.asarray(np.abs(np.concatenate([np.zeros(0), *parts])) > 0.5)


def _winding_number(corners: Array, points: Array) -> Array:
    """Return the winding number (Jacobson 2013) by the triangles' solid angles (van Oosterom and Strackee 1983)."""
    a, b, c = (corners[None, :, corner] - points[:, None] for corner in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
    volume = np.einsum("pfx,pfx->pf", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("pfx,pfx->pf", *pair) for pair in ((a, b), (b, c), (c, a)))
    angles = 2.0 * np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb)
    return np.asarray(angles.sum(axis=1) / (4.0 * np.pi))
