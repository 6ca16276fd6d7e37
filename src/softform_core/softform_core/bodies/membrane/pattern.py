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
        contact_slots: (C, 3c, 3c) as `slots`, of contacts.
    """

    order: NDArray[np.int64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    slots: NDArray[np.int32]
    constant: NDArray[np.float64]
    contact_slots: NDArray[np.int32]

    def matrix(self, values: NDArray[np.float64]) -> csc_matrix:
        """Sparse Hessian (m, m) of the stored entries."""
        return csc_matrix((values, self.indices, self.indptr), shape=(self.order.size, self.order.size))


def _fill_reducing_order(groups: list[NDArray[np.int32]], free: NDArray[np.int64], vertices: int) -> NDArray[np.int64]:
    """Free vertices in minimum-degree order of the graph in which the vertices of each group are joined."""
    graph = csr_matrix((vertices, vertices))
    for group in groups:
        count = group.shape[1]
        rows, columns = np.repeat(group, count, axis=1).ravel(), np.tile(group, (1, count)).ravel()
        graph = graph + csr_matrix((np.ones(rows.size), (rows, columns)), shape=(vertices, vertices))
    graph = graph[free][:, free]
    graph.data[:] = -1.0
    dominant = graph + diags(2.0 * np.diff(graph.indptr)) + eye(free.size)
    factor = splu(csc_matrix(dominant), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return free[np.argsort(factor.perm_c)]


def hessian_pattern(
    elements: NDArray[np.int32],
    fixed: NDArray[np.bool_],
    springs: csr_matrix,
    contacts: NDArray[np.int32] | None = None,
) -> HessianPattern:
    """Pattern for elements (E, n) of vertices, some of them fixed (V,), joined by springs (V, V) N/m.

    Args:
        elements: (E, n).
        fixed: (V,).
        springs: (V, V), entries within the elements.
        contacts: (C, c) vertices that each contact joins; none by default.
    """
    groups = [elements] if contacts is None else [elements, contacts]
    free = _fill_reducing_order(groups, np.flatnonzero(~fixed), fixed.size)
    order = (3 * free[:, None] + np.arange(3)).ravel()
    position = np.full(3 * fixed.size, -1, dtype=np.int64)
    position[order] = np.arange(order.size)

    keys = [_entries(position, group, order.size) for group in groups]
    stored = np.unique(np.concatenate([of_group[of_group >= 0] for of_group in keys]))
    slots = [np.where(of_group >= 0, np.searchsorted(stored, of_group), -1).astype(np.int32) for of_group in keys]
    starts = np.searchsorted(stored, np.arange(order.size + 1) * order.size)

    constant = np.zeros(stored.size)
    coupled = springs.tocoo()
    for axis in range(3):
        row, column = position[3 * coupled.row + axis], position[3 * coupled.col + axis]
        held = (row >= 0) & (column >= 0)
        constant[np.searchsorted(stored, column[held] * order.size + row[held])] += coupled.data[held]
    contact_slots = slots[1] if contacts is not None else np.zeros((0, 0, 0), dtype=np.int32)
    indices = (stored % order.size).astype(np.int32)
    return HessianPattern(order, indices, starts.astype(np.int32), slots[0], constant, contact_slots)


def _entries(position: NDArray[np.int64], group: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """Number of each entry (G, 3n, 3n), column by column, in the Hessian of `size` rows; -1 where one is fixed."""
    degrees = position[(3 * group[:, :, None] + np.arange(3)).reshape(len(group), -1)]
    rows, columns = degrees[:, :, None], degrees[:, None, :]
    return np.where((rows >= 0) & (columns >= 0), columns * size + rows, -1)
