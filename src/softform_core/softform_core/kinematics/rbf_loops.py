"""Compiled inner loops of the RBF warp (paper 000, Eqs. 2 and 24-30), where a prediction spends most of its time.

Points lie along the last axis, (n, 3, P), so that the compiler takes as many of them at a time as a register holds.
Kernels, and what is summed over them, may be in single precision; sums of positions are in double.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LOWEST = -700.0
"""e^-700 is as good as nothing, and still a normal number."""

_BLOCK = 256
"""Points at a time: what belongs to them stays in the first cache."""

_FAST = {"contract", "nsz", "arcp"}
"""Rounding may differ by fused operations; the order of sums, NaN and infinity stay what they are."""

_ROUNDER = 1.5 * 2.0**52
"""A number added to this one is rounded to an integer, which then stands in the lowest bits."""

_EXPONENT_BIAS = 1023
_LOG2_E = 1.4426950408889634
_LN_2_HIGH, _LN_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@njit(cache=True, nogil=True, fastmath=_FAST)
def _kernel_of_points(px, py, pz, qx, qy, qz, width, out):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    """e^(-c |p - q|^2) of the points with one center. Exact to 1e-13 of each value above 1e-100.

    numpy's and numba's exp take one number at a time; this one has no branch and no table. e^x = 2^m e^r with an
    integer m and |r| <= ln(2) / 2: 2^m is written into the bits of the exponent, e^r is a Taylor polynomial.
    """
    for p in range(len(out)):
        dx, dy, dz = px[p] - qx, py[p] - qy, pz[p] - qz
        x = max(-width * (dx * dx + dy * dy + dz * dz), _LOWEST)
        rounded = x * _LOG2_E + _ROUNDER
        m = rounded - _ROUNDER
        r = x - m * _LN_2_HIGH - m * _LN_2_LOW
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
        middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
        high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
        power = np.int64((np.float64(rounded).view(np.int64) + _EXPONENT_BIAS) << 52).view(np.float64)
        out[p] = (low + r4 * middle + r4 * r4 * high) * power


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_kernel(values, bx, by, bz, wx, wy, wz, kept):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    for p in range(len(values)):
        value = values[p]
        kept[p] = value
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
    values = np.empty(_BLOCK)
    for shape in range(batch):
        for start in range(0, count, _BLOCK):
            block = slice(start, min(start + _BLOCK, count))
            px, py, pz = points[shape, 0, block], points[shape, 1, block], points[shape, 2, block]
            wx, wy, wz = warped[shape, 0, block], warped[shape, 1, block], warped[shape, 2, block]
            g = gamma[shape]
            for p in range(len(px)):
                wx[p] = g[0, 0] + g[1, 0] * px[p] + g[2, 0] * py[p] + g[3, 0] * pz[p]
                wy[p] = g[0, 1] + g[1, 1] * px[p] + g[2, 1] * py[p] + g[3, 1] * pz[p]
                wz[p] = g[0, 2] + g[1, 2] * px[p] + g[2, 2] * py[p] + g[3, 2] * pz[p]
            here = values[: len(px)]
            for i in range(kernels):
                qx, qy, qz = centers[shape, 0, i], centers[shape, 1, i], centers[shape, 2, i]
                _kernel_of_points(px, py, pz, qx, qy, qz, width, here)
                _add_kernel(here, g[4 + i, 0], g[4 + i, 1], g[4 + i, 2], wx, wy, wz, gaussian[shape, i, block])


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_jacobian(
    points: Array,
    points_jacobian: NDArray[np.floating],
    sums: NDArray[np.floating],
    gamma: Array,
    gamma_jacobian: NDArray[np.floating],
    width: float,
    out: Array,
) -> None:  # pragma: no cover - compiled
    """Derivative of Eq. 2 from its sums over the kernels, (n, P, 3, k); see `rbf_warp.warp_jacobian`.

    Args:
        points: (n, P, 3) mm.
        points_jacobian: (n, P, 3, k).
        sums: (n, P, 12 + 12 k): sums of e_i times beta_i, beta_i q_i, what moves with the actuation, beta_i 2c dq_i.
        gamma: (n, N + 4, 3).
        gamma_jacobian: (n, N + 4, 3, k).
        width: c, 1/mm^2.
        out: (n, P, 3, k).
    """
    batch, count, _, k = out.shape
    for shape in range(batch):
        for point in range(count):
            row = sums[shape, point]
            for x in range(3):
                for column in range(k):
                    out[shape, point, x, column] = row[12 + x * k + column] + gamma_jacobian[shape, 0, x, column]
                for y in range(3):
                    place = points[shape, point, y]
                    # Eq. 26: dp*/dp.
                    slope = gamma[shape, 1 + y, x] + 2.0 * width * (row[3 + 3 * x + y] - row[x] * place)
                    for column in range(k):
                        # Eqs. 23-25 (moving centers) and 29-30 (changing coefficients).
                        moved = row[12 + (3 + 3 * x + y) * k + column] + gamma_jacobian[shape, 1 + y, x, column]
                        out[shape, point, x, column] += slope * points_jacobian[shape, point, y, column] + place * moved


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_jacobian_along(
    points: Array,
    points_jacobian: NDArray[np.floating],
    directions: NDArray[np.floating],
    sums: NDArray[np.floating],
    own_sums: NDArray[np.floating],
    gamma: Array,
    gamma_jacobian: NDArray[np.floating],
    width: float,
    out: Array,
) -> None:  # pragma: no cover - compiled
    """Derivative of Eq. 2 along a direction of each point, (n, P, k); see `rbf_warp.warp_jacobian_along`.

    Args:
        points: (n, P, 3) mm.
        points_jacobian: (n, P, 3, k).
        directions: (n, P, 3).
        sums: (n, P, 4 + 3 k): sums of e_i d . beta_i times 1, q_i, and 2c dq_i.
        own_sums: (n, P, 3 k): sums of e_i times what moves with the actuation.
        gamma: (n, N + 4, 3).
        gamma_jacobian: (n, N + 4, 3, k).
        width: c, 1/mm^2.
        out: (n, P, k).
    """
    batch, count, k = out.shape
    for shape in range(batch):
        for point in range(count):
            row = sums[shape, point]
            out[shape, point] = 0.0
            for x in range(3):
                along = directions[shape, point, x]
                for column in range(k):
                    change = gamma_jacobian[shape, 0, x, column] + own_sums[shape, point, x * k + column]
                    out[shape, point, column] += along * change
            for y in range(3):
                place = points[shape, point, y]
                # Eq. 26: d . dp*/dp.
                slope = 2.0 * width * (row[1 + y] - row[0] * place)
                for x in range(3):
                    slope += directions[shape, point, x] * gamma[shape, 1 + y, x]
                for column in range(k):
                    # Eqs. 23-25 (moving centers) and 29-30 (changing coefficients).
                    moved = row[4 + y * k + column]
                    for x in range(3):
                        moved += directions[shape, point, x] * gamma_jacobian[shape, 1 + y, x, column]
                    out[shape, point, column] += slope * points_jacobian[shape, point, y, column] + place * moved
