"""The radial-basis-function warp of sim-to-real and its derivatives (paper 000, Eqs. 2 and 23-30); millimetres."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.kinematics.mlp import MlpWeights

Array = NDArray[np.float64]

KERNEL_WIDTH = 3.0e-5
"""The paper's c of Eq. 2, 1/mm^2."""


@dataclass(frozen=True)
class SimToReal:
    """N_s2r: a warp whose coefficients a network predicts from the simulated shape (Eqs. 2-4).

    Attributes:
        kernel_uv: (N, 2) parameters of the kernel centers q_i on the unit square.
        coefficients: N_rbf, flattened control points (rows * cols * 3,) mm -> gamma ((N + 4) * 3,), Eq. 3; gamma in
            the order alpha_0, alpha_1, alpha_2, alpha_3, beta_1 ... beta_N.
        width: c of Eq. 2, 1/mm^2.
    """

    kernel_uv: Array
    coefficients: MlpWeights
    width: float = KERNEL_WIDTH

    def __post_init__(self) -> None:
        """Check that network and kernels fit together."""
        expected = (len(self.kernel_uv) + 4) * 3
        if self.coefficients.weights[-1].shape[0] != expected:
            raise SoftformError(
                f"N_rbf gives {self.coefficients.weights[-1].shape[0]} coefficients, "
                f"{len(self.kernel_uv)} kernels need {expected}.",
                "Use the network that was trained with these kernels.",
            )


def gaussians(points: Array, centers: Array, width: float) -> Array:
    """Kernels e^(-c |p - q_i|^2) of Eq. 2.

    Args:
        points: (n, P, 3) mm.
        centers: (n, N, 3) mm.
        width: c, 1/mm^2.

    Returns:
        (n, P, N).
    """
    exponent = (2.0 * width * points) @ centers.swapaxes(-1, -2)
    exponent -= width * np.einsum("npx,npx->np", points, points)[:, :, None]
    exponent -= width * np.einsum("nqx,nqx->nq", centers, centers)[:, None, :]
    # Rounding can leave a tiny positive exponent where a point lies on a center.
    np.minimum(exponent, 0.0, out=exponent)
    return np.exp(exponent, out=exponent)


def warp(points: Array, gaussian: Array, gamma: Array) -> Array:
    """Eq. 2: p* = alpha_0 + A p + sum_i beta_i e^(-c |p - q_i|^2).

    Args:
        points: (n, P, 3) mm.
        gaussian: (n, P, N), from `gaussians`.
        gamma: (n, N + 4, 3): alpha_0, the three columns of A, beta_1 ... beta_N.

    Returns:
        (n, P, 3) mm.
    """
    return gamma[:, :1] + points @ gamma[:, 1:4] + gaussian @ gamma[:, 4:]


def warp_tangents(points: Array, tangents: Array, centers: Array, gaussian: Array, gamma: Array, width: float) -> Array:
    """Eq. 2's derivative along tangents of the surface, the centers held: dp*/du = (dp*/dp) dp/du (Eq. 26).

    Args:
        points: (n, P, 3) mm.
        tangents: (n, P, 3), derivative of the points with respect to one surface parameter.
        centers: (n, N, 3) mm.
        gaussian: (n, P, N), from `gaussians`.
        gamma: (n, N + 4, 3).
        width: c, 1/mm^2.

    Returns:
        (n, P, 3).
    """
    along = np.einsum("npx,npx->np", points, tangents)[:, :, None] - tangents @ centers.swapaxes(-1, -2)
    return tangents @ gamma[:, 1:4] + (-2.0 * width * gaussian * along) @ gamma[:, 4:]


def warp_jacobian(
    points: Array,
    centers: Array,
    gaussian: Array,
    gamma: Array,
    points_jacobian: Array,
    centers_jacobian: Array,
    gamma_jacobian: Array,
    width: float,
) -> Array:
    """Derivative of Eq. 2 with respect to the actuation, the three terms of Eq. 17 with Eqs. 23-30.

    The kernels appear only in one product `gaussian @ columns`; no array of P x N x 3 is ever made.

    Args:
        points: (n, P, 3) mm.
        centers: (n, N, 3) mm.
        gaussian: (n, P, N), from `gaussians`.
        gamma: (n, N + 4, 3).
        points_jacobian: (n, P, 3, k) of the simulated points, dB/da.
        centers_jacobian: (n, N, 3, k) of the kernel centers, dQ/da.
        gamma_jacobian: (n, N + 4, 3, k), dgamma/da.
        width: c, 1/mm^2.

    Returns:
        (n, P, 3, k).
    """
    batch, count, _ = points.shape
    kernels, k = centers.shape[1], points_jacobian.shape[-1]
    beta = gamma[:, 4:]
    # Eqs. 24-27: d e_i = 2c e_i (q_i - p) . (dp - dq_i), split into factors of the point and factors of the kernel.
    beta_center = beta[:, :, :, None] * centers[:, :, None, :]
    center_motion = np.einsum("nix,nixk->nik", centers, centers_jacobian)
    own = gamma_jacobian[:, 4:] - 2.0 * width * beta[:, :, :, None] * center_motion[:, :, None, :]
    across = beta[:, :, :, None, None] * (2.0 * width * centers_jacobian)[:, :, None, :, :]
    columns = np.concatenate([part.reshape(batch, kernels, -1) for part in (beta, beta_center, own, across)], axis=2)
    sums = gaussian @ columns
    sum_beta, sum_beta_center = sums[..., :3], sums[..., 3:12].reshape(batch, count, 3, 3)
    sum_own = sums[..., 12 : 12 + 3 * k].reshape(batch, count, 3, k)
    sum_across = sums[..., 12 + 3 * k :].reshape(batch, count, 3, 3, k)

    # Eq. 26: dp*/dp.
    spatial = sum_beta_center - sum_beta[..., :, None] * points[..., None, :]
    spatial *= 2.0 * width
    spatial += gamma[:, None, 1:4].swapaxes(-1, -2)
    jacobian = spatial @ points_jacobian
    # Eqs. 23-25 (moving centers) and 29-30 (changing coefficients).
    jacobian += sum_own
    for axis in range(3):
        jacobian += points[..., axis, None, None] * sum_across[..., axis, :]
    linear = points @ gamma_jacobian[:, 1:4].reshape(batch, 3, 3 * k)
    jacobian += (linear + gamma_jacobian[:, 0].reshape(batch, 1, 3 * k)).reshape(batch, count, 3, k)
    return jacobian
