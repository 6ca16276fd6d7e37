"""Metrics of a predicted surface S* against a captured one S^p (paper 000, Eqs. 18, 19 and 21); millimetres."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError

NORMAL_ERROR_CAP = 0.06
"""Upper end of histograms of normal errors, at an angle of just under 20 degrees (paper 000, Fig. 15)."""


def nearest_distances(points: Array, others: Array) -> Array:
    """Return the distance from each point (P, 3) to the nearest of the others (M, 3), (P,)."""
    for cloud in (points, others):
        if cloud.ndim != 2 or cloud.shape[1] != 3 or len(cloud) == 0 or not np.isfinite(cloud).all():
            raise SoftformError(
                f"Distances need finite points of shape (n, 3) with n > 0, got {cloud.shape}.",
                "Check what was captured.",
            )
    return np.asarray(cKDTree(others).query(points)[0], dtype=np.float64)


def hausdorff_distance(predicted: Array, captured: Array) -> float:
    """Return D_Haus of p* and x, (P, 3) and (M, 3) mm, Eq. 18: the larger of both largest distances, mm.

    Raises:
        SoftformError: If a set is empty or not finite.
    """
    return float(max(nearest_distances(predicted, captured).max(), nearest_distances(captured, predicted).max()))


def chamfer_distance(predicted: Array, captured: Array) -> float:
    """Return D_Cham of p* and x, (P, 3) and (M, 3) mm, Eq. 19: the sum of both mean squared distances, mm^2.

    Points are compared with points, so that even a perfect prediction keeps what the spacing of the samples leaves.

    Raises:
        SoftformError: If a set is empty or not finite.
    """
    forth, back = nearest_distances(predicted, captured), nearest_distances(captured, predicted)
    return float(np.mean(forth**2) + np.mean(back**2))


def normal_errors(normals: Array, captured_normals: Array) -> Array:
    """Return the normal error, Eq. 21: eta(p_j) = 1 - n(p_j) . n(c^p(p_j)), (P,), 0 for equal, 2 for opposite normals.

    Args:
        normals: (P, 3) unit normals of the predicted surface at p_j.
        captured_normals: (P, 3) unit normals of the captured cloud at the point closest to each p_j, c^p(p_j).
    """
    return np.asarray(1.0 - np.einsum("px,px->p", normals, captured_normals))


def folded_cells(points: Array, periodic: bool = False) -> NDArray[np.bool_]:
    """Return cells of a grid of surface points at which the normal du x dv flips: there the surface folds over itself.

    Between neighbouring cells of a smooth surface sampled densely the normal turns by a few degrees; where du x dv
    changes its sign it turns by more than 90.

    Args:
        points: (rows, columns, 3), first index along u.
        periodic: Whether the last row is followed by the first one, as around a tube.

    Returns:
        (rows - 1, columns - 1), or (rows, columns - 1) if periodic; true on both sides of a flip.
    """
    if periodic:
        folded = folded_cells(np.concatenate([points, points[:2]]))
        folded[0] |= folded[-1]  # the last row of cells is the first one again
        return folded[:-1]
    diagonal, other = points[1:, 1:] - points[:-1, :-1], points[:-1, 1:] - points[1:, :-1]
    normals = np.cross(diagonal, other)
    folded = np.zeros(normals.shape[:2], dtype=bool)
    along_u = np.einsum("ijx,ijx->ij", normals[1:], normals[:-1]) < 0.0
    along_v = np.einsum("ijx,ijx->ij", normals[:, 1:], normals[:, :-1]) < 0.0
    folded[1:] |= along_u
    folded[:-1] |= along_u
    folded[:, 1:] |= along_v
    folded[:, :-1] |= along_v
    return folded
