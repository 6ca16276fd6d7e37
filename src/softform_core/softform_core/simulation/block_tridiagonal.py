"""Block-tridiagonal Hessians of slender bodies meshed by layers, and their Cholesky factor.

Unknowns of layer l are joined with those of layers l - 1, l and l + 1 alone: H has blocks D_l (w, w) on its diagonal
and E_l below, rows of layer l + 1 and columns of layer l. With L_l lower triangular,

    L_l L_l^T  = D_l - S_(l-1) S_(l-1)^T,      S_l = E_l L_l^-T

The cost is that of layers times w^3, without any fill-in besides: of an arm of 19 nodes a layer it is a fifth of what
sparse solvers take that have to find an order themselves. LAPACK and BLAS are scipy's own, called from compiled code.

Where D_l - S_(l-1) S_(l-1)^T is not positive definite its negative eigenvalues v are lifted to |v|, and the few
products 2 v q q^T by which that alters H are known beside the factor: an arm that would buckle under the tensions of
its cables may well stand by the cables' stiffness, which comes as products, too.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.simulation.factor import Factor, LiftedFactor

__all__ = ["BlockTridiagonalFactor", "BlockTridiagonalHessian"]

ir = cgutils.ir  # the builder of numba's own compiler

_MOST_LIFTED, _LEAST_LIFT = 12, 1e-9
"""Eigenvalues that are lifted: a Hessian that has many below 0 is of no balance. Least height, of the largest one."""


@intrinsic
def _call(typing, address, arguments):  # type: ignore[no-untyped-def]  # numba infers the types
    """Call the Fortran function at an address with the addresses of its arguments.

    The address is a value, not a constant of the compiled code, so that numba can keep that code between processes.
    """

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        pointer, count = ir.IntType(8).as_pointer(), len(signature.args[1])
        kind = ir.FunctionType(ir.VoidType(), [pointer] * count)
        function = builder.inttoptr(given[0], kind.as_pointer())
        each = cgutils.unpack_tuple(builder, given[1], count)
        builder.call(function, [builder.inttoptr(one, pointer) for one in each])
        return context.get_dummy_value()

    return numba.types.void(address, arguments), generate


class _Fortran(NamedTuple):
    """Addresses of scipy's functions, and arrays that hold what they are given by address.

    Attributes:
        potrf, trsm, syrk, gemm, trsv, gemv: Addresses.
        letters: U, T, L, N.
        numbers: 1, -1.
        sizes: Unknowns of a layer, number of loads; what LAPACK answers; 1.
    """

    potrf: int
    trsm: int
    syrk: int
    gemm: int
    trsv: int
    gemv: int
    letters: NDArray[np.uint8]
    numbers: Array
    sizes: NDArray[np.int32]


_FUNCTIONS = [get_cython_function_address("scipy.linalg.cython_lapack", "dpotrf")] + [
    get_cython_function_address("scipy.linalg.cython_blas", name)
    for name in ("dtrsm", "dsyrk", "dgemm", "dtrsv", "dgemv")
]
_LETTERS, _NUMBERS = np.frombuffer(b"UTLN", dtype=np.uint8), np.array([1.0, -1.0])


def _fortran(width: int, columns: int = 1) -> _Fortran:
    sizes = np.array([width, columns, 0, 1], dtype=np.int32)
    potrf, trsm, syrk, gemm, trsv, gemv = _FUNCTIONS
    return _Fortran(potrf, trsm, syrk, gemm, trsv, gemv, _LETTERS, _NUMBERS, sizes)


# Fortran reads a row-major block as its transpose: lower is upper there, and S = E L^-T is L^-1 E^T. The arrays whose
# addresses are passed are arguments, so that they outlive the calls.
@numba.njit(cache=True, nogil=True)
def _factorise(fortran, diagonal, below, first):  # type: ignore[no-untyped-def]  # numba infers the types
    """Turn blocks (n, w, w) and (n - 1, w, w) into L and S in place from layer `first` on, before which they are so.

    Returns layers done, n if H is definite.
    """
    count, upper, one, w = (
        len(diagonal),
        fortran.letters.ctypes.data,
        fortran.numbers.ctypes.data,
        fortran.sizes.ctypes.data,
    )
    turned, left, plain, minus, info = upper + 1, upper + 2, upper + 3, one + 8, w + 8
    for layer in range(first, count):
        here = diagonal[layer].ctypes.data
        _call(fortran.potrf, (upper, w, here, w, info))
        if fortran.sizes[2] != 0:
            return layer
        if layer + 1 < count:
            under, after = below[layer].ctypes.data, diagonal[layer + 1].ctypes.data
            _call(fortran.trsm, (left, upper, turned, plain, w, w, one, here, w, under, w))
            _call(fortran.syrk, (upper, turned, w, w, minus, under, w, one, after, w))
    return count


@numba.njit(cache=True, nogil=True)
def _solve(fortran, diagonal, below, load):  # type: ignore[no-untyped-def]
    """Solve in place for loads (n, k, w)."""
    count, upper, one, w = (
        len(load),
        fortran.letters.ctypes.data,
        fortran.numbers.ctypes.data,
        fortran.sizes.ctypes.data,
    )
    turned, left, plain, minus, k = upper + 1, upper + 2, upper + 3, one + 8, w + 4
    for layer in range(count):
        here = load[layer].ctypes.data
        if layer:
            under, before = below[layer - 1].ctypes.data, load[layer - 1].ctypes.data
            _call(fortran.gemm, (turned, plain, w, k, w, minus, under, w, before, w, one, here, w))
        _call(fortran.trsm, (left, upper, turned, plain, w, k, one, diagonal[layer].ctypes.data, w, here, w))
    for layer in range(count - 1, -1, -1):
        here = load[layer].ctypes.data
        if layer + 1 < count:
            under, after = below[layer].ctypes.data, load[layer + 1].ctypes.data
            _call(fortran.gemm, (plain, plain, w, k, w, minus, under, w, after, w, one, here, w))
        _call(fortran.trsm, (left, upper, plain, plain, w, k, one, diagonal[layer].ctypes.data, w, here, w))


@numba.njit(cache=True, nogil=True)
def _solve_one(fortran, diagonal, below, load):  # type: ignore[no-untyped-def]
    """As `_solve` for one load (n, w), by functions for vectors: those for matrices copy the factor first."""
    count, upper, one, w = (
        len(load),
        fortran.letters.ctypes.data,
        fortran.numbers.ctypes.data,
        fortran.sizes.ctypes.data,
    )
    turned, plain, minus, unit = upper + 1, upper + 3, one + 8, w + 12
    for layer in range(count):
        here = load[layer].ctypes.data
        if layer:
            under, before = below[layer - 1].ctypes.data, load[layer - 1].ctypes.data
            _call(fortran.gemv, (turned, w, w, minus, under, w, before, unit, one, here, unit))
        _call(fortran.trsv, (upper, turned, plain, w, diagonal[layer].ctypes.data, w, here, unit))
    for layer in range(count - 1, -1, -1):
        here = load[layer].ctypes.data
        if layer + 1 < count:
            under, after = below[layer].ctypes.data, load[layer + 1].ctypes.data
            _call(fortran.gemv, (plain, w, w, minus, under, w, after, unit, one, here, unit))
        _call(fortran.trsv, (upper, plain, plain, w, diagonal[layer].ctypes.data, w, here, unit))


@dataclass(frozen=True)
class BlockTridiagonalFactor:
    """L and S of one Hessian; a Hessian that is not positive definite has none, and is known as such by its pivots.

    Attributes:
        diagonal: (n, w, w) L, in the lower triangles.
        below: (n - 1, w, w) S.
        done: Layers that could be factorised; n of a positive definite Hessian.
    """

    diagonal: Array
    below: Array
    done: int

    @cached_property
    def pivots(self) -> Array:
        """Squares of the diagonal of L, (1, n w); those from where the Hessian is not positive definite are -1."""
        found = np.diagonal(self.diagonal, axis1=1, axis2=2) ** 2
        found[self.done :] = -1.0
        return found.reshape(1, -1)

    def solve(self, load: Array) -> Array:
        """Solutions (1, m, k) for loads (1, m, k); NaN where the Hessian is not positive definite."""
        count, width = self.diagonal.shape[:2]
        if self.done < count:
            return np.full(load.shape, np.nan)
        if load.shape[2] == 1:
            single = load.reshape(count, width).copy()
            _solve_one(_fortran(width), self.diagonal, self.below, single)
            return single.reshape(load.shape)
        inner = np.ascontiguousarray(load[0].reshape(count, width, -1).swapaxes(1, 2))
        _solve(_fortran(width, inner.shape[1]), self.diagonal, self.below, inner)
        return inner.swapaxes(1, 2).reshape(load.shape)


@dataclass(frozen=True)
class BlockTridiagonalHessian:
    """Hessian of one sample by its blocks (n, w, w) on the diagonal and (n - 1, w, w) below it."""

    diagonal: Array
    below: Array

    def part(self, chosen: NDArray[np.bool_]) -> "BlockTridiagonalHessian":
        """The same: there is one sample."""
        return self

    def shifted(self, shift: Array) -> "BlockTridiagonalHessian":
        """With `shift` (1,) added to the diagonal."""
        return BlockTridiagonalHessian(self.diagonal + shift[0] * np.eye(self.diagonal.shape[1]), self.below)

    def mean_diagonal(self) -> Array:
        """Mean absolute diagonal entry, (1,)."""
        return np.array([np.abs(np.diagonal(self.diagonal, axis1=1, axis2=2)).mean()])

    def times(self, moves: Array) -> Array:
        """Products (1, m) with moves (1, m)."""
        x = moves.reshape(len(self.diagonal), -1, 1)
        found = self.diagonal @ x
        found[1:] += self.below @ x[:-1]
        found[:-1] += self.below.swapaxes(1, 2) @ x[1:]
        return found.reshape(moves.shape)

    def factorised(self) -> Factor:
        """The factor; lifted where the Hessian is not positive definite."""
        diagonal, below = self.diagonal.copy(), self.below.copy()
        count, width = diagonal.shape[:2]
        columns: list[Array] = []
        weights: list[float] = []
        fortran = _fortran(width)
        done = int(_factorise(fortran, diagonal, below, 0))
        while done < count and len(weights) < _MOST_LIFTED:
            left = self.diagonal[done] - (below[done - 1] @ below[done - 1].T if done else 0.0)
            if not np.isfinite(left).all():
                break
            values, vectors = np.linalg.eigh(left)
            lifted = np.where(values > 0.0, values, np.maximum(-values, _LEAST_LIFT * np.abs(values).max()))
            diagonal[done] = vectors * lifted @ vectors.T
            for which in np.flatnonzero(lifted != values):
                column = np.zeros((count, width))
                column[done] = vectors[:, which]
                columns.append(column.ravel())
                weights.append(values[which] - lifted[which])
            before, done = done, int(_factorise(fortran, diagonal, below, done))
            if done == before:
                break
        factor = BlockTridiagonalFactor(diagonal, below, done)
        if done < count or not weights:
            return factor
        return LiftedFactor(factor, np.stack(columns, axis=1), np.array(weights))
