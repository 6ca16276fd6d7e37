"""Sparsity pattern of the Hessian, ordered once for little fill-in."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags, eye
from scipy.sparse.linalg import splu


@dataclass(frozen=True)
class HessianPattern:
    """Where the entries of element Hessians go in the sparse Hessian of the free degrees of freedom.

    Attributes:
        order: (m,) degree of freedom 3 v + axis at each row of the sparse Hessian.
        indices: Row of each stored entry, compressed by columns.
        indptr: (m + 1,) start of each column.
        slots: (E, 3n, 3n) place of each element entry among the stored ones, -1 where a vertex is fixed.
        constant: Part of the stored entries that never changes, N/m: the springs of walls and clamp.
    """

    order: NDArray[np.int64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    slots: NDArray[np.int32]
    constant: NDArray[np.float64]

    def matrix(self, values: NDArray[np.float64]) -> csc_matrix:
        """Sparse Hessian (m, m) of the stored entries."""
        return csc_matrix((values, self.indices, self.indptr), shape=(self.order.size, self.order.size))


def _fill_reducing_order(elements: NDArray[np.int32], free: NDArray[np.int64], vertices: int) -> NDArray[np.int64]:
    """Free vertices in minimum-degree order of the mesh graph."""
    count = elements.shape[1]
    rows, columns = np.repeat(elements, count, axis=1).ravel(), np.tile(elements, (1, count)).ravel()
    graph = csr_matrix((np.ones(rows.size), (rows, columns)), shape=(vertices, vertices))[free][:, free]
    graph.data[:] = -1.0
    dominant = graph + diags(2.0 * np.diff(graph.indptr)) + eye(free.size)
    factor = splu(csc_matrix(dominant), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return free[np.argsort(factor.perm_c)]


def hessian_pattern(elements: NDArray[np.int32], fixed: NDArray[np.bool_], springs: csr_matrix) -> HessianPattern:
    """Pattern for elements (E, n) of vertices, some of them fixed (V,), joined by springs (V, V) N/m."""
    free = _fill_reducing_order(elements, np.flatnonzero(~fixed), fixed.size)
    order = (3 * free[:, None] + np.arange(3)).ravel()
    position = np.full(3 * fixed.size, -1, dtype=np.int64)
    position[order] = np.arange(order.size)

    degrees = position[(3 * elements[:, :, None] + np.arange(3)).reshape(len(elements), -1)]
    rows = np.broadcast_to(degrees[:, :, None], (*degrees.shape, degrees.shape[1]))
    columns = np.broadcast_to(degrees[:, None, :], rows.shape)
    keys = columns * order.size + rows
    inside = (rows >= 0) & (columns >= 0)
    stored, place = np.unique(keys[inside], return_inverse=True)
    slots = np.full(keys.shape, -1, dtype=np.int32)
    slots[inside] = place
    starts = np.searchsorted(stored, np.arange(order.size + 1) * order.size)

    constant = np.zeros(stored.size)
    coupled = springs.tocoo()
    for axis in range(3):
        row, column = position[3 * coupled.row + axis], position[3 * coupled.col + axis]
        held = (row >= 0) & (column >= 0)
        constant[np.searchsorted(stored, column[held] * order.size + row[held])] += coupled.data[held]
    return HessianPattern(order, (stored % order.size).astype(np.int32), starts.astype(np.int32), slots, constant)
