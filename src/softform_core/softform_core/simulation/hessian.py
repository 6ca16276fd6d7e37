"""Symmetric Hessians of many small bodies or of one large one, which few more terms may join far and wide.

H = L D L^T; by Sylvester's law of inertia H is positive definite exactly where all pivots D are positive.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import SuperLU, splu

from softform_core.arrays import Array
from softform_core.simulation.block_tridiagonal import BlockTridiagonalHessian


class Factor(Protocol):
    """Factor L D L^T of n Hessians."""

    @property
    def pivots(self) -> Array:
        """D, (n, m); NaN or nil where the Hessian is singular."""

    def solve(self, load: Array) -> Array:
        """Solutions (n, m, k) for loads (n, m, k)."""


@dataclass(frozen=True)
class BlockHessian:
    """Dense Hessians (n, b, w, w) of n samples; unknowns fall into b independent groups of w = m / b.

    LAPACK solves with them as they are: each is its own factor.
    """

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

    def times(self, moves: Array) -> Array:
        """Products (n, m) with moves (n, m)."""
        return (self.blocks @ moves.reshape(*self.blocks.shape[:3], 1)).reshape(moves.shape)

    def factorised(self) -> Factor:
        """The factor."""
        return self

    @cached_property
    def pivots(self) -> Array:
        """D, (n, m); where a Hessian is indefinite the eigenvalues of all, of which as many are positive."""
        try:
            found = np.diagonal(np.linalg.cholesky(self.blocks), axis1=2, axis2=3) ** 2
        except np.linalg.LinAlgError:
            finite = np.isfinite(self.blocks).all(axis=(1, 2, 3))
            found = np.full(self.blocks.shape[:3], np.nan)
            found[finite] = np.linalg.eigvalsh(self.blocks[finite])
        return np.asarray(found).reshape(len(found), -1)

    def solve(self, load: Array) -> Array:
        """Solutions (n, m, k) for loads (n, m, k); NaN where a block is exactly singular."""
        loads = load.reshape(*self.blocks.shape[:3], load.shape[-1])
        try:
            solution: Array = np.asarray(np.linalg.solve(self.blocks, loads))
        except np.linalg.LinAlgError:
            solution = np.full(loads.shape, np.nan)
            for place in np.ndindex(*self.blocks.shape[:2]):
                with suppress(np.linalg.LinAlgError):
                    solution[place] = np.linalg.solve(self.blocks[place], loads[place])
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
        shifted = self.matrix.copy()  # a sum would drop entries that are zero just now, and the factoriser's pattern
        shifted.setdiag(self.matrix.diagonal() + shift[0])
        return SparseHessian(shifted, self.factoriser)

    def mean_diagonal(self) -> Array:
        """Mean absolute diagonal entry, (1,)."""
        return np.array([np.abs(self.matrix.diagonal()).mean()])

    def times(self, moves: Array) -> Array:
        """Products (1, m) with moves (1, m)."""
        return np.asarray((self.matrix @ moves.T).T)

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


@dataclass(frozen=True)
class UpdatedHessian:
    """A sparse Hessian K and r products, K + sum c_i g_i g_i^T: of what joins nodes that are far from each other.

    Assembled, each product would fill a dense block over all that it joins, and those of a block-tridiagonal K the
    whole matrix.

    Attributes:
        sparse: K.
        columns: (m, r) g.
        weights: (r,) c, above 0.
    """

    sparse: SparseHessian | BlockTridiagonalHessian
    columns: Array
    weights: Array

    def part(self, chosen: NDArray[np.bool_]) -> "UpdatedHessian":
        """The same: there is one sample."""
        return self

    def shifted(self, shift: Array) -> "UpdatedHessian":
        """With `shift` (1,) added to the diagonal."""
        return UpdatedHessian(self.sparse.shifted(shift), self.columns, self.weights)

    def mean_diagonal(self) -> Array:
        """Mean absolute diagonal entry of K, (1,)."""
        return self.sparse.mean_diagonal()

    def times(self, moves: Array) -> Array:
        """Products (1, m) with moves (1, m)."""
        return self.sparse.times(moves) + (self.weights * (moves @ self.columns)) @ self.columns.T

    def factorised(self) -> Factor:
        """The factor."""
        return UpdatedFactor(self.sparse.factorised(), self.columns, self.weights)


@dataclass(frozen=True)
class UpdatedFactor:
    """Factor of an `UpdatedHessian` by that of K (Woodbury's identity).

    By Haynsworth's inertia additivity the sum has as many negative eigenvalues fewer than K as the small matrix
    C^-1 + G^T K^-1 G has.
    """

    factor: Factor
    columns: Array
    weights: Array

    @cached_property
    def _small(self) -> tuple[Array, Array]:
        """K^-1 G (m, r), and the small matrix (r, r)."""
        return self._small_of(self.factor.solve(self.columns[None])[0])

    def _small_of(self, solved: Array) -> tuple[Array, Array]:
        return solved, np.diag(1.0 / self.weights) + self.columns.T @ solved

    @property
    def by_products(self) -> Array:
        """Solutions (m, r) for the loads c_i g_i, by what is known already: K^-1 G (C^-1 + G^T K^-1 G)^-1."""
        solved, small = self._small
        if not np.isfinite(small).all():
            return np.full(solved.shape, np.nan)
        return np.asarray(np.linalg.solve(small, solved.T).T)

    @cached_property
    def pivots(self) -> Array:
        """D of K, (1, m), of which as many are turned positive as the products make so."""
        pivots, small = np.array(self.factor.pivots), self._small[1]
        if np.isfinite(small).all():
            lifted = int((np.linalg.eigvalsh(small) < 0.0).sum())
            lowest = np.argsort(pivots[0])[:lifted]
            pivots[0, lowest] = np.abs(pivots[0, lowest])
        return pivots

    def solve(self, load: Array) -> Array:
        """Solutions (1, m, k) for loads (1, m, k)."""
        if "_small" not in self.__dict__:  # at once, which a factor does for little more than one of them
            both = self.factor.solve(np.concatenate([load, self.columns[None]], axis=2))
            first = both[..., : load.shape[2]]
            self.__dict__["_small"] = self._small_of(both[0, :, load.shape[2] :])
        else:
            first = self.factor.solve(load)
        solved, small = self._small
        if not np.isfinite(small).all():
            return np.full(load.shape, np.nan)
        return first - (solved @ np.linalg.solve(small, self.columns.T @ first[0]))[None]


Hessian = BlockHessian | SparseHessian | BlockTridiagonalHessian | UpdatedHessian
"""Hessians of n samples over m unknowns; n is 1 of a sparse one."""
