"""Losses of sim-to-real learning of paper 000, Sec. III (Eqs. 6-13).

For frame j, p* of S*_j, (P, 3) mm, are predicted, x of S^p_j, (M, 3) mm, are captured, and w_c(p), (P,), weights a
predicted point. A sum over frames takes a sequence with an entry a frame; gamma is as in `warp`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _squared_distances(points: Array, others: Array) -> Array:
    """Return |p - x|^2, (P, M) mm^2, of (P, 3) and (M, 3) mm."""
    return np.asarray(np.sum((points[:, None] - others) ** 2, axis=2))


def weighted_chamfer(predicted: Array, captured: Array, confidence: Array) -> float:
    """Eq. 6: D~ = mean over p* of w_c(p) min_x |p* - x|^2, plus the mean over x of min_p* |x - p*|^2, mm^2."""
    squared = _squared_distances(predicted, captured)
    return float(np.mean(confidence * squared.min(axis=1)) + np.mean(squared.min(axis=0)))


def chamfer_loss(distances: Sequence[float]) -> float:
    """Eq. 7: L_cd = sum over the frames of D~ (Eq. 6; of markers Eq. 13), mm^2."""
    return float(np.sum(distances))


def confidence_regularization(confidences: Sequence[Array]) -> float:
    """Eq. 8: L_cr = sum over the frames and their points of (1 - w_c(p))^2."""
    return float(sum(np.sum((1.0 - confidence) ** 2) for confidence in confidences))


def normal_compatibility(
    predicted: Sequence[Array], normals: Sequence[Array], captured: Sequence[Array], captured_normals: Sequence[Array]
) -> float:
    """Eq. 9: L_nc = sum over the frames and their x of 1 - n(x) . n(c(x)), with c(x) the p* that is closest to x."""
    total = 0.0
    for points, along, cloud, of_cloud in zip(predicted, normals, captured, captured_normals, strict=True):
        closest = _squared_distances(points, cloud).argmin(axis=0)
        total += float(np.sum(1.0 - np.sum(of_cloud * along[closest], axis=1)))
    return total


def compatibility_conditions(gamma: Array, centers: Array) -> Array:
    """Eq. 10: sum_i beta_i, and sum_i beta_i q_i for x, y and z, (4, 3), all of which shall be zero; q_i (N, 3) mm."""
    beta = gamma[4:]
    return np.concatenate([beta.sum(axis=0)[None], centers.T @ beta])


def geometric_regularization(gammas: Sequence[Array], centers: Sequence[Array]) -> float:
    """Eq. 11: L_gr = sum over the frames of the squares of what Eq. 10 wants to be zero."""
    return float(sum(np.sum(compatibility_conditions(*each) ** 2) for each in zip(gammas, centers, strict=True)))


def total_loss(
    chamfer: float, confidence: float, normal: float, geometric: float, weights: tuple[float, float, float]
) -> float:
    """Eq. 12: L_total = L_cd + omega_cr L_cr + omega_nc L_nc + omega_gr L_gr."""
    return chamfer + float(np.dot(weights, (confidence, normal, geometric)))


def marker_distance(predicted: Array, markers: Array, confidence: Array) -> float:
    """Eq. 13: D~ = mean over the markers of w_c(p_i) |p*_i - x_i|^2, (n, 3) mm each, mm^2."""
    return float(np.mean(confidence * np.sum((predicted - markers) ** 2, axis=1)))
