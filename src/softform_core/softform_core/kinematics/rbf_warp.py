"""The radial-basis-function warp of sim-to-real and its derivatives (paper 000, Eqs. 2 and 23-30); millimetres."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.kinematics.mlp import MlpWeights
from softform_core.kinematics.rbf_loops import fill_gaussians, fill_jacobian

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
    out = np.empty((*points.shape[:2], centers.shape[1]))
    fill_gaussians(np.ascontiguousarray(points), np.ascontiguousarray(centers.swapaxes(-1, -2)), width, out)
    return out


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
    jacobian = np.empty((batch, count, 3, k))
    parts = (points, points_jacobian, sums, gamma, gamma_jacobian)
    fill_jacobian(*(np.ascontiguousarray(part) for part in parts), width, jacobian)
    return jacobian
