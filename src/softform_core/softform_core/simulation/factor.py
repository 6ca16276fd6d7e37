"""Factors of symmetric Hessians, and of sums of one and a few products that join unknowns far and wide."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from softform_core.arrays import Array

__all__ = ["Factor", "LiftedFactor", "UpdatedFactor"]


class Factor(Protocol):
    """Factor L D L^T of n Hessians."""

    @property
    def pivots(self) -> Array:
        """D, (n, m); NaN or nil where the Hessian is singular."""

    def solve(self, load: Array) -> Array:
        """Solutions (n, m, k) for loads (n, m, k)."""


@dataclass(frozen=True)
class UpdatedFactor:
    """Factor of K + G C G^T by that of K (Woodbury's identity); C is diagonal, r weights.

    By Haynsworth's inertia additivity the sum has as many negative eigenvalues as K and C have, less those of the small
    matrix C^-1 + G^T K^-1 G.

    Attributes:
        factor: Of K.
        columns: (m, r) G.
        weights: (r,) of C, none of them 0.
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
    def negatives(self) -> int:
        """Number of negative eigenvalues; that of K where the small matrix is no number."""
        below, small = int((np.asarray(self.factor.pivots) < 0.0).sum()), self._small[1]
        if not np.isfinite(small).all():
            return below
        return below + int((self.weights < 0.0).sum()) - int((np.linalg.eigvalsh(small) < 0.0).sum())

    @cached_property
    def pivots(self) -> Array:
        """D of K, (1, m), but for signs: as many are negative as of the sum."""
        pivots = np.array(self.factor.pivots)
        if self.negatives != (pivots < 0.0).sum():
            pivots = np.abs(pivots)
            lowest = np.argsort(pivots[0])[: self.negatives]
            pivots[0, lowest] *= -1.0
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


@dataclass(frozen=True)
class LiftedFactor(UpdatedFactor):
    """Factor of a Hessian that only some of its products make positive definite, such as stiff cables a body in them.

    K has been lifted until it was positive definite, and products of negative weight take that back. Where the sum is
    not positive definite it has no solutions.
    """

    def solve(self, load: Array) -> Array:
        """Solutions (1, m, k) for loads (1, m, k); NaN where the Hessian is not positive definite."""
        found = super().solve(load)
        return np.full(load.shape, np.nan) if self.negatives else found

    @property
    def lifted(self) -> Factor:
        """Factor of what is positive definite: the Hessian as it was lifted."""
        kept = self.weights > 0.0
        return UpdatedFactor(self.factor, self.columns[:, kept], self.weights[kept]) if kept.any() else self.factor
