"""Distances between predicted and captured surfaces of paper 000, Sec. V (Eqs. 18-21).

Predicted are p* of S*, (P, 3) mm, captured x of S^p, (M, 3) mm.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _nearest_distances(points: Array, others: Array) -> Array:
    """Return the least over x of |p - x|, for each p: (P, 3) and (M, 3) mm -> (P,) mm."""
    return np.asarray(np.linalg.norm(points[:, None] - others, axis=2).min(axis=1))


def hausdorff_distance(predicted: Array, captured: Array) -> float:
    """Eq. 18: D_Haus, mm, the larger of both largest distances to the nearest point."""
    return float(max(_nearest_distances(predicted, captured).max(), _nearest_distances(captured, predicted).max()))


def chamfer_distance(predicted: Array, captured: Array) -> float:
    """Eq. 19: D_Cham, mm^2, the sum of both means of squared distances to the nearest point."""
    forth, back = _nearest_distances(predicted, captured), _nearest_distances(captured, predicted)
    return float(np.mean(forth**2) + np.mean(back**2))


def direct_loss(predicted: Array, captured: Array) -> float:
    """Eq. 20: L_direct = D_Haus + 5 D_Cham, of direct learning without a simulator; the paper adds mm and mm^2."""
    return hausdorff_distance(predicted, captured) + 5.0 * chamfer_distance(predicted, captured)


def normal_errors(normals: Array, captured_normals: Array) -> Array:
    """Eq. 21: eta(p_j) = 1 - n(p_j) . n(c^p(p_j)), (P,).

    Args:
        normals: n(p_j), (P, 3) unit vectors.
        captured_normals: (P, 3) unit normals of the captured cloud at the point closest to each p_j.
    """
    return np.asarray(1.0 - np.sum(normals * captured_normals, axis=1))
