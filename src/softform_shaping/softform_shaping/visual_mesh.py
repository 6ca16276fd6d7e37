"""The visual mesh m^v: finer than the tetrahedra, and carried by their skin."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, identity, vstack

from softform_core.arrays import Array
from softform_core.surface.mesh import directed_edges

__all__ = ["VisualMesh"]


class VisualMesh:
    """Triangles of the skin, each parted in four as often as asked for.

    Args:
        skin: (P,) nodes of the mesh that lie on its outside.
        faces: (F, 3) triangles over those, outwards.
        nodes: Number of all nodes.
        levels: How often triangles are parted.

    Attributes:
        weights: (Q, V) of the mesh's nodes in the visual ones.
        faces: (4^levels F, 3) triangles over those.
        nearest: (Q,) node of the mesh that weighs most in each.
    """

    def __init__(self, skin: NDArray[np.int64], faces: NDArray[np.integer], nodes: int, levels: int) -> None:
        weights = identity(len(skin), format="csr")
        for _ in range(levels):
            edges = np.sort(directed_edges(faces).reshape(-1, 2), axis=1)
            unique, which = np.unique(edges, axis=0, return_inverse=True)
            middle = (len(weights.indptr) - 1 + which).reshape(-1, 3)
            weights = vstack([weights, 0.5 * (weights[unique[:, 0]] + weights[unique[:, 1]])]).tocsr()
            (a, b, c), (ab, bc, ca) = faces.T, middle.T
            parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
            faces = np.concatenate([np.stack(part, axis=1) for part in parts])
        spread = csr_matrix((np.ones(len(skin)), (np.arange(len(skin)), skin)), (len(skin), nodes))
        self.weights = csr_matrix(weights @ spread)
        self.faces = faces.astype(np.int32)
        self.nearest = np.asarray(self.weights.argmax(axis=1)).ravel()

    def places(self, nodes: Array) -> Array:
        """Visual nodes (Q, 3) m of nodes (V, 3) m."""
        return np.asarray(self.weights @ nodes)

    def normals(self, places: Array) -> Array:
        """Unit normals (Q, 3) of visual nodes (Q, 3), outwards."""
        a, b, c = (places[self.faces[:, corner]] for corner in range(3))
        across = np.cross(b - a, c - a)
        corners, thrice = self.faces.T.ravel(), np.tile(across, (3, 1))
        found = np.stack([np.bincount(corners, each, minlength=len(places)) for each in thrice.T], axis=1)
        return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300))
