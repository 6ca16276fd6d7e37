"""Symmetric Hessians of many small bodies or of one large one, which few more terms may join far and wide.

H = L D L^T; by Sylvester's law of inertia H is positive definite exactly where all pivots D are positive.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import SuperLU, splu

from softform_core.arrays import Array
from softform_core.simulation.block_tridiagonal import BlockTridiagonalHessian
from softform_core.simulation.factor import Factor, LiftedFactor, UpdatedFactor


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
        """The factor; with what K had to be lifted by, if it had to be."""
        factor = self.sparse.factorised()
        if not isinstance(factor, LiftedFactor):
            return UpdatedFactor(factor, self.columns, self.weights)
        columns = np.concatenate([self.columns, factor.columns], axis=1)
        return LiftedFactor(factor.factor, columns, np.concatenate([self.weights, factor.weights]))


Hessian = BlockHessian | SparseHessian | BlockTridiagonalHessian | UpdatedHessian
"""Hessians of n samples over m unknowns; n is 1 of a sparse one."""
