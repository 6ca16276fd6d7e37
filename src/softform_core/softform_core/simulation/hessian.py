"""Symmetric Hessians of many small bodies or of one large one, factorised without pivoting.

H = L D L^T; by Sylvester's law of inertia H is positive definite exactly where all pivots D are positive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, diags
from scipy.sparse.linalg import SuperLU, splu

from softform_core.arrays import Array


class Factor(Protocol):
    """Factor L D L^T of n Hessians."""

    @property
    def pivots(self) -> Array:
        """D, (n, m); NaN or nil where the Hessian is singular."""

    def solve(self, load: Array) -> Array:
        """Solutions (n, m, k) for loads (n, m, k)."""


class Hessian(Protocol):
    """Hessians of n samples over m unknowns."""

    def part(self, chosen: NDArray[np.bool_]) -> "Hessian":
        """Hessians of the chosen samples (n,)."""

    def shifted(self, shift: Array) -> "Hessian":
        """With `shift` (n,) added to the diagonal."""

    def mean_diagonal(self) -> Array:
        """Mean absolute diagonal entry, (n,)."""

    def factorised(self) -> Factor:
        """The factor."""


@dataclass(frozen=True)
class BlockHessian:
    """Dense Hessians (n, b, w, w) of n samples; unknowns fall into b independent groups of w = m / b."""

    blocks: Array

    def part(self, chosen: NDArray[np.bool_]) -> "BlockHessian":
        """Hessians of the chosen samples (n,)."""
        return BlockHessian(self.blocks[chosen])

    def shifted(self, shift: Array) -> "BlockHessian":
        """With `shift` (n,) added to the diagonal."""
        return BlockHessian(self.blocks + shift[:, None, None, None] * np.eye(self.blocks.shape[-1]))

    def mean_diagonal(self) -> Array:
        """Mean absolute diagonal entry, (n,)."""
        return np.asarray(np.abs(np.diagonal(self.blocks, axis1=2, axis2=3)).mean(axis=(1, 2)))

    def factorised(self) -> "BlockFactor":
        """The factor."""
        return BlockFactor(*_factorise(self.blocks))


@dataclass(frozen=True)
class BlockFactor:
    """Factor of a `BlockHessian`: L (n, b, w, w) below the diagonal, and the diagonal D (n, b, w)."""

    lower: Array
    diagonal: Array

    @property
    def pivots(self) -> Array:
        """D, (n, m)."""
        return self.diagonal.reshape(len(self.diagonal), -1)

    def solve(self, load: Array) -> Array:
        """Solutions (n, m, k) for loads (n, m, k)."""
        solution = np.array(load, dtype=np.float64).reshape(*self.diagonal.shape, load.shape[-1])
        _solve(self.lower, self.diagonal, solution)
        return solution.reshape(load.shape)


@dataclass(frozen=True)
class SparseHessian:
    """Sparse Hessian (m, m) of one sample, in an order of little fill-in; SuperLU or another factorises it."""

    matrix: csc_matrix
    factoriser: "Callable[[csc_matrix], Factor] | None" = None

    def part(self, chosen: NDArray[np.bool_]) -> "SparseHessian":
        """The same: there is one sample."""
        return self

    def shifted(self, shift: Array) -> "SparseHessian":
        """With `shift` (1,) added to the diagonal."""
        shifted = csc_matrix(self.matrix + diags(np.full(self.matrix.shape[0], shift[0])))
        return SparseHessian(shifted, self.factoriser)

    def mean_diagonal(self) -> Array:
        """Mean absolute diagonal entry, (1,)."""
        return np.array([np.abs(self.matrix.diagonal()).mean()])

    def factorised(self) -> Factor:
        """The factor."""
        if self.factoriser is not None:
            return self.factoriser(self.matrix)
        try:
            factor = splu(self.matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:  # exactly singular
            factor = None
        return SparseFactor(self.matrix.shape[0], factor)


@dataclass(frozen=True)
class SparseFactor:
    """Factor of a `SparseHessian`; None if it is exactly singular."""

    size: int
    factor: SuperLU | None

    @cached_property
    def pivots(self) -> Array:
        """D, (1, m): in symmetric mode and without pivoting, SuperLU's factors are L and D L^T."""
        return np.zeros((1, self.size)) if self.factor is None else self.factor.U.diagonal()[None]

    def solve(self, load: Array) -> Array:
        """Solutions (1, m, k) for loads (1, m, k)."""
        if self.factor is None:
            return np.full(load.shape, np.nan)
        return np.asarray(self.factor.solve(np.asfortranarray(load[0]))[None])


@numba.njit(cache=True, nogil=True)
def _factorise(blocks):  # type: ignore[no-untyped-def]
    """L and D of every block; the trailing rows are updated along their own direction, which vectorises."""
    lower = blocks.copy()
    samples, groups, width = blocks.shape[0], blocks.shape[1], blocks.shape[2]
    pivots, column = np.empty((samples, groups, width)), np.empty(width)
    for s in range(samples):
        for b in range(groups):
            matrix = lower[s, b]
            for j in range(width):
                pivot = matrix[j, j]
                pivots[s, b, j] = pivot
                for i in range(j + 1, width):
                    column[i] = matrix[i, j]
                for i in range(j + 1, width):
                    share = column[i] / pivot if pivot != 0.0 else np.nan
                    matrix[i, j] = share
                    row = matrix[i]
                    for k in range(j + 1, i + 1):
                        row[k] -= share * column[k]
    return lower, pivots


@numba.njit(cache=True, nogil=True)
def _solve(lower, pivots, loads):  # type: ignore[no-untyped-def]
    """Solve in place for loads (n, b, w, k)."""
    samples, groups, width, count = loads.shape
    for s in range(samples):
        for b in range(groups):
            matrix, load = lower[s, b], loads[s, b]
            for i in range(width):
                for j in range(i):
                    for k in range(count):
                        load[i, k] -= matrix[i, j] * load[j, k]
            for i in range(width):
                for k in range(count):
                    load[i, k] = load[i, k] / pivots[s, b, i] if pivots[s, b, i] != 0.0 else np.nan
            for i in range(width - 1, -1, -1):
                for j in range(i):
                    for k in range(count):
                        load[j, k] -= matrix[i, j] * load[i, k]
