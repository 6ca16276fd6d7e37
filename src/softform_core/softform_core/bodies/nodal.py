"""Problems whose unknowns are the places of a mesh's free nodes, and the sparsity of their Hessians.

A Hessian has blocks of three unknowns at each free node, ordered once for little fill-in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pymetis
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags, eye
from scipy.sparse.linalg import splu

from softform_core.arrays import Array


@dataclass(frozen=True)
class HessianPattern:
    """Blocks of 3 x 3 entries, stored by columns of the scalar matrix.

    Attributes:
        free: (f,) the free nodes as the matrix has them.
        indices: Row of each stored entry.
        indptr: (3 f + 1,) start of each column.
        block_keys: (b,) column times f plus row of each block, rising.
        position: (V,) place of each node in `free`, -1 if it is not free.
    """

    free: NDArray[np.int64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    block_keys: NDArray[np.int64]
    position: NDArray[np.int64]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Degree of freedom 3 v + axis of each unknown, (3 f,)."""
        return (3 * self.free[:, None] + np.arange(3)).ravel()

    def matrix(self, values: NDArray[np.float64]) -> csc_matrix:
        """Sparse Hessian of the stored entries."""
        size = len(self.indptr) - 1
        return csc_matrix((values, self.indices, self.indptr), shape=(size, size))

    def entries(self, elements: NDArray[np.integer]) -> NDArray[np.int64]:
        """Place (E, n, 3, n, 3) of each entry of elements (E, n) by nodes and axes; the end where one is fixed."""
        place, axis = self.position[elements], np.arange(3)
        rows, columns = np.broadcast_arrays(place[:, :, None], place[:, None, :])
        free = (rows >= 0) & (columns >= 0)
        block = np.searchsorted(self.block_keys, columns[free] * len(self.free) + rows[free])
        first = self.indptr[3 * columns[free]].astype(np.int64)  # entry of the column
        stride = self.indptr[3 * columns[free] + 1] - first
        slots = first + 3 * block - first // 3
        found = np.full((*free.shape, 3, 3), len(self.indices))
        found[free] = slots[:, None, None] + axis[:, None] + stride[:, None, None] * axis
        return found.swapaxes(2, 3)

    def slots(self, elements: NDArray[np.integer]) -> NDArray[np.int32]:
        """As `entries`, (E, 3n, 3n); -1 where one is fixed."""
        places, size = self.entries(elements), 3 * elements.shape[1]
        return np.where(places < len(self.indices), places, -1).astype(np.int32).reshape(-1, size, size)

    def sums(self, entries: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The stored entries, to each of which the values (…) at its place in `entries` (…) add up."""
        found = np.bincount(entries.ravel(), values.ravel(), minlength=len(self.indices) + 1)[:-1]
        return np.asarray(found, dtype=np.float64)  # of nothing, integers

    def alike(self, springs: csr_matrix) -> NDArray[np.float64]:
        """The stored entries of springs (V, V) within the elements that act alike along each axis."""
        joined, axis = springs.tocoo(), np.arange(3)
        places = self.entries(np.stack([joined.row, joined.col], axis=1))[:, 0, axis, 1, axis]
        return self.sums(places, joined.data.repeat(3))


def hessian_pattern(
    groups: Sequence[NDArray[np.integer]],
    is_fixed: NDArray[np.bool_],
    ordering: Callable[[csr_matrix], NDArray[np.int64]],
) -> HessianPattern:
    """Pattern for nodes (V,), of which those of each element of each group (E, n) are joined.

    Args:
        groups: Nodes of elements.
        is_fixed: (V,).
        ordering: Order of the free nodes by the graph that joins them: `nested_dissection` or `minimum_degree`.
    """
    row = np.concatenate([np.repeat(elements, elements.shape[1], axis=1).ravel() for elements in groups])
    column = np.concatenate([np.tile(elements, (1, elements.shape[1])).ravel() for elements in groups])
    graph = csr_matrix((np.ones(row.size), (row, column)), shape=(is_fixed.size,) * 2)
    used = np.zeros(is_fixed.size, dtype=bool)
    used[row] = True
    free = np.flatnonzero(used & ~is_fixed)
    graph = csr_matrix(graph[free][:, free])
    order = free[ordering(graph)]
    position = np.full(is_fixed.size, -1, dtype=np.int64)
    position[order] = np.arange(order.size)
    joined = graph.tocoo()
    keys = np.unique(position[free[joined.col]] * order.size + position[free[joined.row]])
    block_row, block_column = keys % order.size, keys // order.size
    counts = np.bincount(block_column, minlength=order.size)
    indptr = np.concatenate([[0], np.cumsum(np.repeat(3 * counts, 3))])
    rows_of_column = np.split((3 * block_row[:, None] + np.arange(3)).ravel(), indptr[3:-1:3] // 3)
    indices = np.concatenate([np.tile(rows, 3) for rows in rows_of_column]).astype(np.int32)
    return HessianPattern(order, indices, indptr.astype(np.int32), keys, position)


def nested_dissection(graph: csr_matrix) -> NDArray[np.int64]:
    """Order by METIS, of solids; by minimum degree SuperLU takes up to four times as long, for smaller dense parts."""
    neighbours = graph.copy()
    neighbours.setdiag(0)
    neighbours.eliminate_zeros()
    order, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(neighbours.indptr, neighbours.indices))
    return np.asarray(order, dtype=np.int64)


def minimum_degree(graph: csr_matrix) -> NDArray[np.int64]:
    """Order by minimum degree, of sheets."""
    graph = graph.copy()
    graph.data[:] = -1.0
    dominant = graph + diags(2.0 * np.diff(graph.indptr)) + eye(graph.shape[0])
    factor = splu(csc_matrix(dominant), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return np.argsort(factor.perm_c)


_RUNAWAY = 3.0  # a node further away than this many extents of the body has run away


class NodalProblem:
    """A `SimulatedBody` less its energy; its unknowns are the places of the free nodes, m, in the pattern's order.

    Args:
        rest: (V, 3) m, nodes at rest.
        pattern: Sparsity of the Hessian; its free nodes are the problem's.
        extent: Largest extent at rest, m.
    """

    batch = 1
    frames: dict[str, int] = {}
    is_slack = False

    def __init__(self, rest: Array, pattern: HessianPattern, extent: float) -> None:
        self._resting, self._extent, self._order = rest, extent, pattern.order

    @cached_property
    def rest(self) -> Array:
        """Unknowns (m,) of the nodes at rest."""
        return self.unknowns(self._resting)[0]

    def nodes(self, unknowns: Array) -> Array:
        """Nodes (V, 3) m of unknowns (m,)."""
        nodes = self._resting.copy()
        nodes.reshape(-1)[self._order] = unknowns
        return nodes

    def unknowns(self, nodes: Array) -> Array:
        """Unknowns (1, m) of nodes (V, 3) m."""
        return np.asarray(nodes, dtype=np.float64).reshape(-1)[self._order][None]

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m of the surface for unknowns (n, m)."""
        return self._on_surface(np.stack([self.nodes(one) for one in unknowns]))

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, P, 3, k) m; what is held stays."""
        moved = np.zeros((len(moves), self._resting.size, moves.shape[2]))
        moved[:, self._order] = moves
        return self._on_surface(moved.reshape(len(moves), -1, 3, moves.shape[2]))

    def _on_surface(self, values: Array) -> Array:
        """Values (n, P, …) at the points of the surface, of those (n, V, …) at all nodes; all by default."""
        return values

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) a node has moved by several extents of the body."""
        moved = np.abs(unknowns - self.unknowns(self._resting)).max(axis=1)
        return np.asarray(moved > _RUNAWAY * self._extent)
