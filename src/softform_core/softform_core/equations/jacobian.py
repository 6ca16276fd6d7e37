"""Derivatives of the corrected surface by the actuation: paper 000, Eq. 17 and Appendix A-A (Eqs. 23-31).

Control points, kernel centers and coefficients are flattened point by point (x, y, z, x, …) where a derivative is taken
by all of them. Everywhere `points` are p, (P, 3) mm; `centers` the q_i, (N, 3) mm; `gamma` is (N + 4, 3), `width` c in
1/mm^2.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.equations.surface import basis_functions
from softform_core.equations.warp import kernels

Array = NDArray[np.float64]


def actuation_jacobian(
    by_point: Array,
    point_by_control: Array,
    by_coefficients: Array,
    coefficients_by_control: Array,
    by_centers: Array,
    centers_by_control: Array,
    control_by_actuation: Array,
) -> Array:
    """Eq. 17: dp*/da = (dN_s2r/dB dB/dN_fk + dN_s2r/dN_fk + dN_s2r/dQ dQ/dN_fk) dN_fk/da, (P, 3, k) mm/Pa.

    N_s2r depends on N_fk's output by the coefficients: dN_s2r/dN_fk = dp*/dgamma dgamma/dN_fk.

    Args:
        by_point: dN_s2r/dB of Eq. 26, (P, 3, 3).
        point_by_control: dB/dN_fk of Eq. 31, (P, 3, C) with C = M_u M_v 3.
        by_coefficients: dp*/dgamma of Eq. 29, (P, 3, 3 (N + 4)).
        coefficients_by_control: dgamma/dN_fk, (3 (N + 4), C) by back-propagation of N_rbf.
        by_centers: dN_s2r/dQ of Eq. 23, (P, 3, 3 N).
        centers_by_control: dQ/dN_fk of Eq. 31, (3 N, C).
        control_by_actuation: dN_fk/da, (C, k) mm/Pa by back-propagation of N_fk.
    """
    by_control = by_point @ point_by_control
    by_control = by_control + by_coefficients @ coefficients_by_control
    by_control = by_control + by_centers @ centers_by_control
    return np.asarray(by_control @ control_by_actuation)


def by_centers(points: Array, centers: Array, gamma: Array, width: float) -> Array:
    """Eq. 23: dN_s2r/dQ = [dp*/dq_1 | ... | dp*/dq_N], (P, 3, 3 N)."""
    blocks = by_center(points, centers, gamma, width)
    return blocks.transpose(0, 2, 1, 3).reshape(len(points), 3, -1)


def by_center(points: Array, centers: Array, gamma: Array, width: float) -> Array:
    """Eq. 24: dp*/dq_i = beta_i (de^(-c |p - q_i|^2)/dq_i)^T, (P, N, 3, 3)."""
    return gamma[4:, :, None] * kernel_by_center(points, centers, width)[:, :, None, :]


def kernel_by_center(points: Array, centers: Array, width: float) -> Array:
    """Eq. 25: de^(-c r^2)/dq_i = -(de^(-c r^2)/dr) (p - q_i) / r with r = |p - q_i|, (P, N, 3) 1/mm.

    As de^(-c r^2)/dr = -2 c r e^(-c r^2), r cancels, and this is 2 c e^(-c r^2) (p - q_i).
    """
    return 2.0 * width * kernels(points, centers, width)[:, :, None] * (points[:, None] - centers)


def by_point(points: Array, centers: Array, gamma: Array, width: float) -> Array:
    """Eq. 26: dN_s2r/dB = dp*/dp = A + sum_i beta_i (de^(-c |p - q_i|^2)/dp)^T, (P, 3, 3)."""
    return gamma[1:4].T + np.einsum("ix,piy->pxy", gamma[4:], kernel_by_point(points, centers, width))


def kernel_by_point(points: Array, centers: Array, width: float) -> Array:
    """Eq. 27: de^(-c |p - q_i|^2)/dp = -de^(-c |p - q_i|^2)/dq_i, (P, N, 3) 1/mm."""
    return -kernel_by_center(points, centers, width)


def by_coefficients(points: Array, centers: Array, width: float) -> Array:
    """Eq. 29: dp*/dgamma = [dp*/dalpha_0 | ... | dp*/dalpha_3 | dp*/dbeta_1 | ... | dp*/dbeta_N], (P, 3, 3 (N + 4))."""
    blocks = by_coefficient(points, centers, width)
    return blocks.transpose(0, 2, 1, 3).reshape(len(points), 3, -1)


def by_coefficient(points: Array, centers: Array, width: float) -> Array:
    """Eq. 30: dp*/dalpha_0 = I, dp*/dalpha_1 = p_x I, …, dp*/dbeta_i = e^(-c |p - q_i|^2) I, (P, N + 4, 3, 3)."""
    factors = np.concatenate([np.ones((len(points), 1)), points, kernels(points, centers, width)], axis=1)
    return factors[:, :, None, None] * np.eye(3)


def surface_by_control_points(uv: Array, grid: tuple[int, int], order: int = 4) -> Array:
    """Eq. 31: dB/dS^c_ij = N_{i,k}(u) N_{j,l}(v) I, (P, 3, M_u * M_v * 3), at uv (P, 2)."""
    along_u, along_v = (basis_functions(uv[:, axis], grid[axis], order) for axis in range(2))
    products = np.einsum("pi,pj->pij", along_u, along_v).reshape(len(uv), -1)
    return np.einsum("pc,xy->pxcy", products, np.eye(3)).reshape(len(uv), 3, -1)
