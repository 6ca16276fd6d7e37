"""Compiled inner loops of the RBF warp (paper 000, Eqs. 2 and 24-30), where a prediction spends most of its time."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LOWEST = -700.0
"""e^-700 is as good as nothing, and still a normal number."""


_FAST = {"contract", "nsz", "arcp", "reassoc"}
"""Rounding may differ by the order of sums; NaN and infinity stay what they are."""


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_gaussians(points: Array, centers: Array, width: float, out: Array) -> None:  # pragma: no cover - compiled
    """e^(-c |p - q|^2) of points (n, P, 3) and centers (n, 3, N) into (n, P, N).

    Exact to 1e-12 of each value above 1e-100. numpy's and numba's exp take one number at a time; this one has no branch
    and no table, so the compiler takes as many numbers at a time as a register holds. The exponent is divided by 1024,
    a Taylor polynomial gives the exponential, and ten squarings take the division back.
    """
    batch, count, kernels = out.shape
    for shape in range(batch):
        for point in range(count):
            px, py, pz = points[shape, point, 0], points[shape, point, 1], points[shape, point, 2]
            for kernel in range(kernels):
                dx = px - centers[shape, 0, kernel]
                dy = py - centers[shape, 1, kernel]
                dz = pz - centers[shape, 2, kernel]
                x = max(-width * (dx * dx + dy * dy + dz * dz), _LOWEST) * (1.0 / 1024.0)
                value = 1.0 + x * (1.0 / 13.0)
                value = 1.0 + x * (1.0 / 12.0) * value
                value = 1.0 + x * (1.0 / 11.0) * value
                value = 1.0 + x * (1.0 / 10.0) * value
                value = 1.0 + x * (1.0 / 9.0) * value
                value = 1.0 + x * (1.0 / 8.0) * value
                value = 1.0 + x * (1.0 / 7.0) * value
                value = 1.0 + x * (1.0 / 6.0) * value
                value = 1.0 + x * (1.0 / 5.0) * value
                value = 1.0 + x * (1.0 / 4.0) * value
                value = 1.0 + x * (1.0 / 3.0) * value
                value = 1.0 + x * (1.0 / 2.0) * value
                value = 1.0 + x * value
                for _ in range(10):
                    value *= value
                out[shape, point, kernel] = value


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_jacobian(
    points: Array,
    points_jacobian: Array,
    sums: Array,
    gamma: Array,
    gamma_jacobian: Array,
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
