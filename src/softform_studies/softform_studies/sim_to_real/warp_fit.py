"""Least-squares fit of one RBF warp (paper 000, Eq. 2) to points that a shape should go to; millimetres."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.rbf_warp import gaussians
from softform_core.networks.sim_to_real import stable_directions

_SMALLEST = 1e-3
"""Directions that move the shape by less than this share of the strongest are left out."""


class WarpSpace:
    """All warps of a shape (P, 3) mm with kernels at (N, 3) mm, well-conditioned (`stable_directions`)."""

    def __init__(self, points: Array, centers: Array, width: float) -> None:
        self.points = points
        kernels = gaussians(points[None], centers[None], width)[0]
        basis = np.concatenate([np.ones((len(points), 1)), points, kernels], axis=1)
        self._columns = basis @ stable_directions(basis, centers, _SMALLEST)

    def nearest_warp(
        self,
        targets: Array,
        normals: Array,
        weights: Array,
        tangential: float = 0.01,
        ridge: float = 1e-4,
        index: NDArray[np.integer] | None = None,
    ) -> Array:
        """Warped shape p* that minimises mean w (((p* - t) . n)^2 + tangential |p* - t|^2) + ridge |amplitudes|^2.

        Args:
            targets: (M, 3) mm, t: where points should go.
            normals: (M, 3) unit normals of the surface there.
            weights: (M,) not negative.
            tangential: Weight of the full squared distance beside the point-to-plane one.
            ridge: Keeps what no target decides where it was; an amplitude of 1 moves the shape by 1 mm (RMS).
            index: (M,) which point of the shape each target is for; None if there is one for each in order.

        Returns:
            (P, 3) mm.
        """
        chosen = slice(None) if index is None else index
        columns, offsets = self._columns[chosen], targets - self.points[chosen]
        count, size = columns.shape
        metric = normals[:, :, None] * normals[:, None, :] + tangential * np.eye(3)
        metric *= (weights / count)[:, None, None]
        matrix = np.empty((3, size, 3, size))
        for axis in range(3):
            for other in range(axis, 3):
                block = columns.T @ (metric[:, axis, other, None] * columns)
                matrix[axis, :, other], matrix[other, :, axis] = block, block
        right = (columns.T @ np.einsum("pxy,py->px", metric, offsets)).T.ravel()
        normal_matrix = matrix.reshape(3 * size, 3 * size)
        normal_matrix[np.diag_indices(3 * size)] += ridge
        amplitudes = np.linalg.solve(normal_matrix, right).reshape(3, size).T
        return self.points + self._columns @ amplitudes
