"""Find markers that moved as none on a continuous surface can: exchanged labels and jumps."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from softform_core.arrays import Array

_NEIGHBOURS = 4
_FAR_NEARER = 0.5


def exchanged_markers(positions: Array, expected: Array) -> NDArray[np.int64]:
    """Return markers of one frame that sit where others belong: the best assignment of markers to places moves them.

    Args:
        positions: (M, 3) m, NaN where missing.
        expected: (M, 3) m, where each is known to be nearly: on a simulated shape, or in an earlier frame.

    Returns:
        Their indices, rising. Each is far nearer to the other's place than to its own, and that other is missing or
        exchanged too: one that has only jumped beside another is not among them.
    """
    visible = np.flatnonzero(np.isfinite(positions).all(axis=1))
    distance = cdist(positions[visible], expected)
    places = linear_sum_assignment(np.square(distance))[1]
    row = np.arange(len(visible))
    exchanged = np.zeros(len(positions), dtype=bool)
    exchanged[visible] = distance[row, places] < _FAR_NEARER * distance[row, visible]
    free = np.ones(len(positions), dtype=bool)
    free[visible] = False
    while True:
        stays = exchanged[visible] & ~(free | exchanged)[places]
        if not stays.any():
            return np.flatnonzero(exchanged)
        exchanged[visible[stays]] = False


def neighbours_motion(displacement: Array, layout: Array) -> Array:
    """Return the median shift (..., M, 3) m of each marker's neighbours by `layout` (M, d); zero if not known."""
    count = min(_NEIGHBOURS, len(layout) - 1)
    if count < 1:
        return np.zeros_like(displacement)
    around = displacement[..., cKDTree(layout).query(layout, k=count + 1)[1][:, 1:], :]
    unknown = ~np.isfinite(around).all(axis=-1).any(axis=-1)
    around[unknown] = 0.0
    return np.asarray(np.nanmedian(around, axis=-2))
