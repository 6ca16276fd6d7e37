"""Compiled inner loops of the RBF warp (paper 000, Eqs. 2 and 24-30), where a prediction spends most of its time.

Points lie along the last axis, (n, 3, P), so that the compiler takes as many of them at a time as a register holds.
Kernels, and what is summed over them, may be in single precision; the affine part of the warp is in double.
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BLOCK = 256
"""Points at a time: what belongs to them stays in the first cache."""

_FAST = {"contract", "nsz", "arcp"}
"""Rounding may differ by fused operations; the order of sums, NaN and infinity stay what they are."""

_LOG2_E = 1.4426950408889634
_LN_2_HIGH, _LN_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

_SINGLE = np.float32
_LOG2_E_SINGLE = _SINGLE(_LOG2_E)
_LN_2_HIGH_SINGLE, _LN_2_LOW_SINGLE = _SINGLE(0.693359375), _SINGLE(-2.12194440e-4)
_TAYLOR_SINGLE = tuple(_SINGLE(1.0 / math.factorial(power)) for power in range(8))


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _exp_double(x):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    """e^x of x <= 0, exact to 1e-13 of each value above 1e-100.

    numpy's and numba's exp take one number at a time; this one has no branch and no table. e^x = 2^m e^r with an
    integer m and |r| <= ln(2) / 2: 2^m is written into the bits of the exponent, e^r is a Taylor polynomial.
    """
    x = max(x, -700.0)  # e^-700 is as good as nothing, and still a normal number
    # A number added to 1.5 * 2^52 is rounded to an integer, which then stands in the lowest bits.
    rounded = x * _LOG2_E + 1.5 * 2.0**52
    m = rounded - 1.5 * 2.0**52
    r = x - m * _LN_2_HIGH - m * _LN_2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
    middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
    high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
    power = np.int64((np.float64(rounded).view(np.int64) + 1023) << 52).view(np.float64)
    return (low + r4 * middle + r4 * r4 * high) * power


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _exp_single(x):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    """`_exp_double` in single precision, to 2e-7."""
    x = max(x, _SINGLE(-87.0))
    rounded = x * _LOG2_E_SINGLE + _SINGLE(1.5 * 2.0**23)
    m = rounded - _SINGLE(1.5 * 2.0**23)
    r = x - m * _LN_2_HIGH_SINGLE - m * _LN_2_LOW_SINGLE
    one, first, second, third, fourth, fifth, sixth, seventh = _TAYLOR_SINGLE
    r2 = r * r
    low = (one + r * first) + r2 * (second + r * third)
    high = (fourth + r * fifth) + r2 * (sixth + r * seventh)
    power = np.int32((np.float32(rounded).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (low + r2 * r2 * high) * power


def _exp(x: float) -> float:
    """e^x of x <= 0 in the precision of x; compiled code takes one of the two above."""
    return math.exp(x)


@overload(_exp, inline="always")
def _exp_of_type(x):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x: _exp_single(x)
    return lambda x: _exp_double(x)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _kernel_of_points(px, py, pz, qx, qy, qz, width, out):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    """e^(-c |p - q|^2) of the points with one center, all in one precision."""
    for p in range(len(out)):
        dx, dy, dz = px[p] - qx, py[p] - qy, pz[p] - qz
        out[p] = _exp(-width * (dx * dx + dy * dy + dz * dz))


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_kernel(values, bx, by, bz, wx, wy, wz):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    for p in range(len(values)):
        value = values[p]
        wx[p] += bx * value
        wy[p] += by * value
        wz[p] += bz * value


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_gaussians(points: Array, centers: Array, width: float, out: Array) -> None:  # pragma: no cover - compiled
    """e^(-c |p - q|^2) of points (n, 3, P) and centers (n, 3, N) into (n, N, P)."""
    batch, kernels, count = out.shape
    for shape in range(batch):
        for start in range(0, count, _BLOCK):
            block = slice(start, min(start + _BLOCK, count))
            px, py, pz = points[shape, 0, block], points[shape, 1, block], points[shape, 2, block]
            for i in range(kernels):
                qx, qy, qz = centers[shape, 0, i], centers[shape, 1, i], centers[shape, 2, i]
                _kernel_of_points(px, py, pz, qx, qy, qz, width, out[shape, i, block])


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_warp(
    points: Array, centers: Array, gamma: Array, width: float, gaussian: NDArray[np.floating], warped: Array
) -> None:  # pragma: no cover - compiled
    """Eq. 2, the kernels kept for its derivatives.

    Args:
        points: (n, 3, P) mm.
        centers: (n, 3, N) mm.
        gamma: (n, N + 4, 3).
        width: c, 1/mm^2.
        gaussian: (n, N, P), is filled, in its own precision.
        warped: (n, 3, P) mm, is filled.
    """
    batch, kernels, count = gaussian.shape
    near, moved = np.empty((3, _BLOCK), gaussian.dtype), np.empty((3, _BLOCK), gaussian.dtype)
    for shape in range(batch):
        g = gamma[shape]
        q, beta = centers[shape].astype(gaussian.dtype), g[4:].astype(gaussian.dtype)
        c = np.full(1, width).astype(gaussian.dtype)[0]
        for start in range(0, count, _BLOCK):
            block = slice(start, min(start + _BLOCK, count))
            p, size = points[shape, :, block], min(_BLOCK, count - start)
            near[:, :size] = p
            moved[:] = 0.0
            x, y, z = near[0, :size], near[1, :size], near[2, :size]
            wx, wy, wz = moved[0, :size], moved[1, :size], moved[2, :size]
            for i in range(kernels):
                kernel = gaussian[shape, i, block]
                _kernel_of_points(x, y, z, q[0, i], q[1, i], q[2, i], c, kernel)
                _add_kernel(kernel, beta[i, 0], beta[i, 1], beta[i, 2], wx, wy, wz)
            for axis in range(3):
                out = warped[shape, axis, block]
                for each in range(size):
                    affine = g[1, axis] * p[0, each] + g[2, axis] * p[1, each] + g[3, axis] * p[2, each]
                    out[each] = g[0, axis] + affine + moved[axis, each]


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_weights(
    gaussian: NDArray[np.floating], beta: NDArray[np.floating], directions: NDArray[np.floating], out: NDArray
) -> None:  # pragma: no cover - compiled
    """e_i d . beta_i of kernels (n, N, P), coefficients (n, 3, N) and directions (n, 3, P) into (n, N, P)."""
    batch, kernels, count = gaussian.shape
    for shape in range(batch):
        dx, dy, dz = directions[shape, 0], directions[shape, 1], directions[shape, 2]
        for i in range(kernels):
            bx, by, bz = beta[shape, 0, i], beta[shape, 1, i], beta[shape, 2, i]
            kernel, weight = gaussian[shape, i], out[shape, i]
            for p in range(count):
                weight[p] = kernel[p] * (bx * dx[p] + by * dy[p] + bz * dz[p])


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_factors(
    beta: NDArray[np.floating],
    centers: NDArray[np.floating],
    centers_jacobian: NDArray[np.floating],
    gamma_jacobian: NDArray[np.floating],
    width: float,
    moving: NDArray[np.floating],
    own: NDArray[np.floating],
) -> None:  # pragma: no cover - compiled
    """What is multiplied with each kernel in Eqs. 24-30; see `rbf_warp`.

    Args:
        beta: (n, 3, N).
        centers: (n, 3, N) mm.
        centers_jacobian: (n, k, 3, N).
        gamma_jacobian: (n, k, N + 4, 3).
        width: c, 1/mm^2.
        moving: (n, 4 + 3 k or more, N), is filled with 1, the centers, and 2c dq.
        own: (n, 3 k or more, N), is filled with dbeta - beta 2c q . dq.
    """
    batch, k, _, kernels = centers_jacobian.shape
    twice = np.full(1, 2.0 * width).astype(moving.dtype)[0]
    for shape in range(batch):
        moving[shape, 0] = 1.0
        for x in range(3):
            moving[shape, 1 + x] = centers[shape, x]
            for column in range(k):
                row, motion = moving[shape, 4 + x * k + column], centers_jacobian[shape, column, x]
                for i in range(kernels):
                    row[i] = twice * motion[i]
        for column in range(k):
            toward = centers[shape, 0] * moving[shape, 4 + column]
            for y in range(1, 3):
                center, motion = centers[shape, y], moving[shape, 4 + y * k + column]
                for i in range(kernels):
                    toward[i] += center[i] * motion[i]
            for x in range(3):
                row, weight = own[shape, x * k + column], beta[shape, x]
                for i in range(kernels):
                    row[i] = gamma_jacobian[shape, column, 4 + i, x] - weight[i] * toward[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_jacobian(
    points: NDArray[np.floating],
    points_jacobian: NDArray[np.floating],
    sums: NDArray[np.floating],
    gamma: NDArray[np.floating],
    gamma_jacobian: NDArray[np.floating],
    width: float,
    out: Array,
) -> None:  # pragma: no cover - compiled
    """Derivative of Eq. 2 from its sums over the kernels, (n, k, 3, P); see `rbf_warp.warp_jacobian`.

    Args:
        points: (n, 3, P) mm.
        points_jacobian: (n, k, 3, P).
        sums: (n, 3 (4 + 3 k) + 3 k or more, P): sums of e_i times 1, q_i, and 2c dq_i, for each coordinate of beta_i
            one after the other, and of e_i times what moves with the actuation.
        gamma: (n, N + 4, 3).
        gamma_jacobian: (n, k, N + 4, 3).
        width: c, 1/mm^2.
        out: (n, k, 3, P).
    """
    batch, k, _, count = out.shape
    twice = np.full(1, 2.0 * width).astype(gamma.dtype)[0]
    slope = np.empty((3, count), gamma.dtype)
    for shape in range(batch):
        g, place, own_sums = gamma[shape], points[shape], sums[shape, 3 * (4 + 3 * k) :]
        for x in range(3):
            row = sums[shape, x * (4 + 3 * k) :]
            for y in range(3):
                for p in range(count):
                    # Eq. 26: dp*/dp.
                    slope[y, p] = g[1 + y, x] + twice * (row[1 + y, p] - row[0, p] * place[y, p])
            for column in range(k):
                here, own, moving = out[shape, column, x], own_sums[x * k + column], points_jacobian[shape, column]
                change = gamma_jacobian[shape, column, 0, x]
                for p in range(count):
                    here[p] = own[p] + change
                for y in range(3):
                    # Eqs. 23-25 (moving centers) and 29-30 (changing coefficients).
                    moved, turn = row[4 + y * k + column], gamma_jacobian[shape, column, 1 + y, x]
                    for p in range(count):
                        here[p] += slope[y, p] * moving[y, p] + place[y, p] * (moved[p] + turn)


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_jacobian_along(
    points: NDArray[np.floating],
    directions: NDArray[np.floating],
    sums: NDArray[np.floating],
    own_sums: NDArray[np.floating],
    gamma: NDArray[np.floating],
    gamma_jacobian: NDArray[np.floating],
    width: float,
    slope: NDArray[np.floating],
    out: NDArray[np.floating],
) -> None:  # pragma: no cover - compiled
    """Derivative of Eq. 2 along a direction of each point, (n, k, P); see `rbf_warp.warp_jacobian_along`.

    Args:
        points: (n, 3, P) mm.
        directions: (n, 3, P).
        sums: (n, 4 + 3 k or more, P): sums of e_i d . beta_i times 1, q_i, and 2c dq_i.
        own_sums: (n, 3 k or more, P): sums of e_i times what moves with the actuation.
        gamma: (n, N + 4, 3).
        gamma_jacobian: (n, k, N + 4, 3).
        width: c, 1/mm^2.
        slope: (n, 3, P), is filled with d . dp*/dp.
        out: (n, k, P), is filled with the other two terms of Eq. 17.
    """
    batch, k, count = out.shape
    twice = np.full(1, 2.0 * width).astype(gamma.dtype)[0]
    for shape in range(batch):
        row, g, place, d = sums[shape], gamma[shape], points[shape], directions[shape]
        dx, dy, dz = d[0], d[1], d[2]
        for y in range(3):
            ax, ay, az = g[1 + y, 0], g[1 + y, 1], g[1 + y, 2]
            toward = slope[shape, y]
            for p in range(count):
                # Eq. 26: d . dp*/dp.
                kernels = twice * (row[1 + y, p] - row[0, p] * place[y, p])
                toward[p] = kernels + dx[p] * ax + dy[p] * ay + dz[p] * az
        for column in range(k):
            here, turn = out[shape, column], gamma_jacobian[shape, column]
            own_x, own_y, own_z = (
                own_sums[shape, column],
                own_sums[shape, k + column],
                own_sums[shape, 2 * k + column],
            )
            for p in range(count):
                along = dx[p] * (turn[0, 0] + own_x[p]) + dy[p] * (turn[0, 1] + own_y[p])
                here[p] = along + dz[p] * (turn[0, 2] + own_z[p])
            for y in range(3):
                # Eqs. 23-25 (moving centers) and 29-30 (changing coefficients).
                centers = row[4 + y * k + column]
                tx, ty, tz = turn[1 + y, 0], turn[1 + y, 1], turn[1 + y, 2]
                for p in range(count):
                    change = centers[p] + dx[p] * tx + dy[p] * ty + dz[p] * tz
                    here[p] += place[y, p] * change
