"""Sparsity of the Hessian of a body with three unknowns at each free node, ordered once for little fill-in."""

from dataclasses import dataclass

import numpy as np
import pymetis
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix


@dataclass(frozen=True)
class BlockPattern:
    """Blocks of 3 x 3 entries, stored by columns of the scalar matrix.

    Attributes:
        order: (f,) the free nodes as the matrix has them.
        indices: Row of each stored entry.
        indptr: (3 f + 1,) start of each column.
        diagonal: (3 f,) place of each diagonal entry.
        block_keys: (b,) column times f plus row of each block, rising.
        position: (V,) place of each node in `order`, -1 if it is not free.
    """

    order: NDArray[np.int64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    diagonal: NDArray[np.int64]
    block_keys: NDArray[np.int64]
    position: NDArray[np.int64]

    @property
    def unknowns(self) -> NDArray[np.int64]:
        """Degree of freedom 3 v + axis of each unknown, (3 f,)."""
        return (3 * self.order[:, None] + np.arange(3)).ravel()

    def matrix(self, values: NDArray[np.float64]) -> csc_matrix:
        """Sparse Hessian of the stored entries."""
        size = len(self.indptr) - 1
        return csc_matrix((values, self.indices, self.indptr), shape=(size, size))

    def entries(self, elements: NDArray[np.int32]) -> NDArray[np.int64]:
        """Place of each entry (node a, axis i, node b, axis k) of elements (E, n), flat; the end where one is fixed."""
        place, axis = self.position[elements], np.arange(3)
        rows, columns = np.broadcast_arrays(place[:, :, None], place[:, None, :])
        free = (rows >= 0) & (columns >= 0)
        block = np.searchsorted(self.block_keys, columns[free] * len(self.order) + rows[free])
        first, following = (  # blocks of the column and of the next one
            np.searchsorted(self.block_keys, (columns[free] + more) * len(self.order)) for more in (0, 1)
        )
        stride = 3 * (following - first)
        slots = 9 * first + 3 * (block - first)
        found = np.full((*free.shape, 3, 3), len(self.indices))
        found[free] = slots[:, None, None] + axis[:, None] + stride[:, None, None] * axis
        return found.swapaxes(2, 3).ravel()

    def add(self, values: NDArray[np.float64], entries: NDArray[np.int64], blocks: NDArray[np.float64]) -> None:
        """Add blocks (E, n, 3, n, 3) at their `entries` to the values of the stored entries."""
        values += np.bincount(entries, blocks.ravel(), minlength=len(values) + 1)[:-1]


def block_pattern(groups: list[NDArray[np.int32]], is_fixed: NDArray[np.bool_]) -> BlockPattern:
    """Pattern for nodes (V,), of which those of each element of each group (E, n) are joined."""
    rows: list[NDArray[np.int32]] = []
    columns: list[NDArray[np.int32]] = []
    for elements in groups:
        count = elements.shape[1]
        rows.append(np.repeat(elements, count, axis=1).ravel())
        columns.append(np.tile(elements, (1, count)).ravel())
    row, column = np.concatenate(rows), np.concatenate(columns)
    graph = csr_matrix((np.ones(row.size), (row, column)), shape=(is_fixed.size,) * 2)
    used = np.zeros(is_fixed.size, dtype=bool)
    used[row] = True
    free = np.flatnonzero(used & ~is_fixed)
    graph = csr_matrix(graph[free][:, free])
    order = free[_nested_dissection(graph)]
    position = np.full(is_fixed.size, -1, dtype=np.int64)
    position[order] = np.arange(order.size)
    joined = graph.tocoo()
    keys = np.unique(position[free[joined.col]] * order.size + position[free[joined.row]])
    block_row, block_column = keys % order.size, keys // order.size
    counts = np.bincount(block_column, minlength=order.size)
    indptr = np.concatenate([[0], np.cumsum(np.repeat(3 * counts, 3))])
    rows_of_column = np.split((3 * block_row[:, None] + np.arange(3)).ravel(), indptr[3:-1:3] // 3)
    indices = np.concatenate([np.tile(rows, 3) for rows in rows_of_column]).astype(np.int32)
    diagonal = np.flatnonzero(indices == np.repeat(np.arange(3 * order.size), np.diff(indptr)))
    return BlockPattern(order, indices, indptr.astype(np.int32), diagonal, keys, position)


def _nested_dissection(graph: csr_matrix) -> NDArray[np.int64]:
    """Order by METIS; by minimum degree SuperLU takes up to four times as long, for dense parts that are smaller."""
    neighbours = graph.copy()
    neighbours.setdiag(0)
    neighbours.eliminate_zeros()
    order, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(neighbours.indptr, neighbours.indices))
    return np.asarray(order, dtype=np.int64)
