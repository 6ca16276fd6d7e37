"""Meshes of finite elements as files hold them: points, triangles, and fields at the points."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array

_QUAD = [[0, 1, 2], [0, 2, 3]]
_CORNERS_OF_TRIANGLE = [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]]
_SPLITS = {
    3: [[0, 1, 2]],
    4: _QUAD,
    6: _CORNERS_OF_TRIANGLE,
    7: _CORNERS_OF_TRIANGLE,  # its middle node lies within
    8: [[0, 4, 7], [4, 1, 5], [5, 2, 6], [6, 3, 7], [4, 5, 6], [4, 6, 7]],
    9: [[q[i] for i in part] for q in ([0, 4, 8, 7], [4, 1, 5, 8], [8, 5, 2, 6], [7, 8, 6, 3]) for part in _QUAD],
}
"""Triangles of a surface element by its number of nodes: corners first, then the middles of its sides."""


@dataclass(frozen=True)
class ElementMesh:
    """A surface as a file holds it.

    Attributes:
        points: (V, 3) in the unit of the file.
        faces: (F, 3).
        fields: Vectors at the points by name, (V, 3) each.
        left_out: What the file has beside the surface, one sentence each.
    """

    points: Array
    faces: NDArray[np.int64]
    fields: dict[str, Array] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def triangles(elements: NDArray[np.integer]) -> NDArray[np.int64]:
    """Triangles (F, 3) of surface elements (E, n) of 3, 4, 6, 7, 8 or 9 nodes each."""
    split = np.array(_SPLITS[elements.shape[1]])
    return np.asarray(elements, dtype=np.int64)[:, split].reshape(-1, 3)
