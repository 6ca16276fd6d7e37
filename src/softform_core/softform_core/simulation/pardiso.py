"""MKL PARDISO for sparse Hessians, where `pypardiso` is installed: several times as fast as SuperLU on solids.

It is an extra, for MKL is large and not free software; SuperLU does the same work without it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from softform_core.arrays import Array
from softform_core.simulation.factor import Factor

_SYMMETRIC_INDEFINITE = -2
_ANALYSE, _FACTORISE, _SOLVE = 11, 22, 33
_NEGATIVE_PIVOTS = 23


def sparse_factoriser(indices: NDArray[np.int32], indptr: NDArray[np.int32]) -> Callable[[csc_matrix], Factor] | None:
    """What factorises matrices with entries at just these places, by columns; None without `pypardiso`."""
    try:
        from pypardiso import PyPardisoSolver
    except ImportError:
        return None
    return _Pardiso(PyPardisoSolver, indices, indptr)


class _Pardiso:
    """A solver that analyses the pattern once; the latest factor alone is valid."""

    def __init__(self, solver_class: Any, indices: NDArray[np.int32], indptr: NDArray[np.int32]) -> None:
        size = len(indptr) - 1
        column = np.repeat(np.arange(size), np.diff(indptr))
        self._kept = np.flatnonzero(indices >= column)  # the lower part by columns is the upper one by rows
        starts = np.concatenate([[0], np.cumsum(np.bincount(column[self._kept], minlength=size))])
        values = np.ones(len(self._kept))
        self._upper = csr_matrix((values, indices[self._kept], starts.astype(np.int32)), shape=(size, size))
        self._class = solver_class
        self._solver: Any = None

    def __call__(self, matrix: csc_matrix) -> "PardisoFactor":
        """Factor of a matrix."""
        self._upper.data[:] = matrix.data[self._kept]
        if self._solver is None:
            self._solver = self._class(mtype=_SYMMETRIC_INDEFINITE)
            self._run(_ANALYSE, np.zeros((len(self._upper.indptr) - 1, 1)))
        self._run(_FACTORISE, np.zeros((len(self._upper.indptr) - 1, 1)))
        return PardisoFactor(self, int(self._solver.get_iparm(_NEGATIVE_PIVOTS)), self._upper.shape[0])

    def solve(self, load: Array) -> Array:
        """Solutions (m, k) by the latest factor."""
        return self._run(_SOLVE, load)

    def _run(self, phase: int, load: Array) -> Array:
        self._solver.set_phase(phase)
        return np.asarray(self._solver._call_pardiso(self._upper, np.asfortranarray(load)))


@dataclass(frozen=True)
class PardisoFactor:
    """Factor of a sparse Hessian with its number of negative pivots, valid until the next one of the same pattern."""

    solver: _Pardiso
    negative: int
    size: int

    @property
    def pivots(self) -> Array:
        """Signs of D, (1, m): PARDISO tells how many are negative, not which."""
        return np.where(np.arange(self.size) < self.negative, -1.0, 1.0)[None]

    def solve(self, load: Array) -> Array:
        """Solutions (1, m, k) for loads (1, m, k)."""
        return self.solver.solve(load[0]).reshape(load.shape)
