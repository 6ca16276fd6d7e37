"""Which markers have moved as no marker on a continuous surface can: exchanged labels and jumps."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]

_NEIGHBOURS = 4


def exchanged_markers(positions: Array, expected: Array) -> NDArray[np.int64]:
    """Markers of one frame that fit better to the places of others: the best assignment moves them.

    Args:
        positions: (M, 3) m, NaN where missing.
        expected: (M, 3) m, where each is known to be nearly: on a simulated shape, or in an earlier frame.

    Returns:
        Their indices, rising. A missing marker's place is free: another's label may sit there.
    """
    visible = np.flatnonzero(np.isfinite(positions).all(axis=1))
    places = linear_sum_assignment(cdist(positions[visible], expected, "sqeuclidean"))[1]
    return visible[places != visible]


def neighbours_motion(displacement: Array, layout: Array) -> Array:
    """Median displacement of each marker's neighbours.

    Args:
        displacement: (..., M, 3) m, NaN where unknown.
        layout: (M, d) places that say who is whose neighbour.

    Returns:
        (..., M, 3) m, zero where nothing is known of any neighbour.
    """
    count = min(_NEIGHBOURS, len(layout) - 1)
    if count < 1:
        return np.zeros_like(displacement)
    around = displacement[..., cKDTree(layout).query(layout, k=count + 1)[1][:, 1:], :]
    unknown = ~np.isfinite(around).all(axis=-1).any(axis=-1)
    around[unknown] = 0.0
    return np.asarray(np.nanmedian(around, axis=-2))
