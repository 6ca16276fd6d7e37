"""How often a triangle mesh winds around points: once around what is inside of a closed one."""

import numpy as np

from softform_core.arrays import Array

__all__ = ["winding_numbers"]


def winding_numbers(corners: Array, points: Array) -> Array:
    """Return winding numbers (P,) (Jacobson 2013) by the triangles' solid angles (van Oosterom and Strackee 1983).

    Args:
        corners: (F, 3, 3) of the triangles.
        points: (P, 3).
    """
    a, b, c = (corners[None, :, corner] - points[:, None] for corner in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
    volume = np.einsum("pfx,pfx->pf", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("pfx,pfx->pf", *pair) for pair in ((a, b), (b, c), (c, a)))
    angles = 2.0 * np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb)
    return np.asarray(angles.sum(axis=1) / (4.0 * np.pi))
