"""Whether the learned confidence w_c finds the holes of the scans it was learned from (paper 000, Sec. III-A)."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.spatial import cKDTree
from scipy.stats import mannwhitneyu

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.training.trained_sim_to_real import TrainedSimToReal


def confidence_map(trained: TrainedSimToReal, control_points: Array, points: Array) -> Array:
    """w_c(p) = N_conf(p, S^c), mean over the members, (n, P), 0 … 1.

    Args:
        trained: Learned from scans.
        control_points: (n, rows * cols * 3) mm, simulated.
        points: (n, P, 3) mm, simulated.

    Raises:
        SoftformError: If there is no N_conf, as after learning from markers.
    """
    if not trained.confidence:
        raise SoftformError("This model was learned from markers: it has no confidence map.", "Learn from scans.")
    shape = torch.from_numpy(trained.shape_input.normalised(control_points)).float()
    with torch.no_grad():
        members = [member(torch.from_numpy(points).float(), shape) for member in trained.confidence]
    return torch.stack(members).mean(dim=0).double().numpy()


def holes_auc(confidence: Array, surface: Array, scans: Sequence[Array], reach: float) -> float:
    """Area under the ROC curve of w_c as a detector of points that a scan does not show.

    Args:
        confidence: (n, P), from `confidence_map`, of the frames that were learned from.
        surface: (n, P, 3) where these points really are, or are predicted to a fraction of the reach.
        scans: n whole scans (m_j, 3), before they were thinned, in the unit of the surface.
        reach: A point further than this from every scanned one was not seen.

    Returns:
        0.5 for chance, 1 for a perfect detector; NaN if the scans have no holes.
    """
    seen = np.array([cKDTree(scan).query(points)[0] <= reach for points, scan in zip(surface, scans, strict=True)])
    return area_under_curve(confidence[seen], confidence[~seen])


def area_under_curve(shown: Array, hidden: Array) -> float:
    """How often a shown point has the higher confidence of a pair (Mann-Whitney), ties by half; NaN without pairs."""
    if not len(shown) or not len(hidden):
        return float("nan")
    return float(mannwhitneyu(shown, hidden, method="asymptotic").statistic / (len(shown) * len(hidden)))
