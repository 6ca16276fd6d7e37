"""The RBF warp of paper 000, Sec. II-B and II-C (Eqs. 2-5).

gamma is (N + 4, 3): alpha_0, alpha_1, alpha_2, alpha_3, beta_1 ... beta_N; the matrix A has the columns alpha_1,
alpha_2, alpha_3. `points` are p, (P, 3) mm; `centers` the q_i, (N, 3) mm; `width` is c in 1/mm^2.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.equations.inverse_kinematics import simulated_control_points
from softform_core.equations.surface import surface_points

Array = NDArray[np.float64]
Network = Callable[[Array], Array]


def kernels(points: Array, centers: Array, width: float) -> Array:
    """Return the Gaussian kernels e^(-c |p - q_i|^2) of Eq. 2, (P, N)."""
    return np.asarray(np.exp(-width * np.sum((points[:, None] - centers) ** 2, axis=2)))


def warp(points: Array, centers: Array, gamma: Array, width: float) -> Array:
    """Eq. 2: p* = Phi(p) = alpha_0 + A p + sum_i beta_i e^(-c |p - q_i|^2), (P, 3) mm."""
    alpha_0, columns_of_a, beta = gamma[0], gamma[1:4], gamma[4:]
    return alpha_0 + points @ columns_of_a + kernels(points, centers, width) @ beta


def warp_coefficients(control_points: Array, n_rbf: Network) -> Array:
    """Eq. 3: gamma = N_rbf(S^c), (N + 4, 3).

    Args:
        control_points: S^c, (M_u, M_v, 3) mm.
        n_rbf: Network, flattened control points (M_u * M_v * 3,) mm -> flattened gamma ((N + 4) * 3,).
    """
    return n_rbf(control_points.ravel()).reshape(-1, 3)


def corrected_points(uv: Array, control_points: Array, n_rbf: Network, kernel_uv: Array, width: float) -> Array:
    """Eq. 4: p*_i = Phi_gamma(B(u_i, v_i, S^c)) with gamma = N_rbf(S^c), (P, 3) mm.

    Args:
        uv: (P, 2) in the unit square.
        control_points: S^c, (M_u, M_v, 3) mm.
        n_rbf: Network of Eq. 3.
        kernel_uv: (N, 2), where the kernels' centers q_i lie on the surface.
        width: c, 1/mm^2.
    """
    gamma = warp_coefficients(control_points, n_rbf)
    return warp(surface_points(uv, control_points), surface_points(kernel_uv, control_points), gamma, width)


def corrected_points_of_actuation(
    uv: Array, actuation: Array, n_fk: Network, n_rbf: Network, kernel_uv: Array, width: float, grid: tuple[int, int]
) -> Array:
    """Eq. 5: p* = N_s2r(B(u_p, v_p, S^c(a)), S^c(a), {B(u_q, v_q, S^c(a))}), (P, 3) mm.

    Args:
        uv: (P, 2) in the unit square.
        actuation: a, (k,) Pa.
        n_fk: Network of Eq. 14.
        n_rbf: Network of Eq. 3.
        kernel_uv: (N, 2), where the kernels' centers lie on the surface.
        width: c, 1/mm^2.
        grid: M_u and M_v.
    """
    return corrected_points(uv, simulated_control_points(actuation, n_fk, grid), n_rbf, kernel_uv, width)
