"""The radial-basis-function warp of sim-to-real and its derivatives (paper 000, Eqs. 2 and 23-30); millimetres."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.forward.rbf_loops import (
    fill_factors,
    fill_gaussians,
    fill_jacobian,
    fill_jacobian_along,
    fill_warp,
    fill_weights,
)
from softform_core.networks.mlp_weights import MlpWeights

Array = NDArray[np.float64]
Floats = NDArray[np.floating]

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
    out = np.empty((len(points), centers.shape[1], points.shape[1]))
    fill_gaussians(_coordinates(points), _coordinates(centers), width, out)
    return out.swapaxes(1, 2)


def warp_with_kernels(
    points: Array, centers: Array, gamma: Array, width: float, precision: type[np.floating]
) -> tuple[Array, Floats]:
    """Eq. 2 and the kernels that its derivatives need, in one pass.

    Args:
        points: (n, P, 3) mm.
        centers: (n, N, 3) mm.
        gamma: (n, N + 4, 3), see `warp`.
        width: c, 1/mm^2.
        precision: Of the kernels and of the displacement that is summed over them.

    Returns:
        (n, P, 3) mm, and (n, P, N) as `gaussians` gives them.
    """
    kernels = np.empty((len(points), centers.shape[1], points.shape[1]), dtype=precision)
    warped = np.empty((len(points), 3, points.shape[1]))
    fill_warp(_coordinates(points), _coordinates(centers), np.ascontiguousarray(gamma), width, kernels, warped)
    return np.ascontiguousarray(warped.swapaxes(1, 2)), kernels.swapaxes(1, 2)


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


@dataclass(frozen=True)
class WarpInputs:
    """What Eq. 2 takes, at one actuation each of a batch, and its derivatives by the actuation.

    Attributes:
        points: (n, P, 3) mm.
        centers: (n, N, 3) mm.
        gaussian: (n, P, N), from `gaussians`.
        gamma: (n, N + 4, 3).
        centers_jacobian: (n, k, 3, N) of the kernel centers, dQ/da.
        gamma_jacobian: (n, k, N + 4, 3), dgamma/da.
        width: c, 1/mm^2.
    """

    points: Array
    centers: Array
    gaussian: Floats
    gamma: Array
    centers_jacobian: Floats
    gamma_jacobian: Floats
    width: float


def warp_jacobian(at: WarpInputs, points_jacobian: Floats) -> Array:
    """Derivative of Eq. 2 with respect to the actuation, the three terms of Eq. 17 with Eqs. 23-30, (n, k, 3, P).

    The kernels appear only in one product with the columns that belong to them; no array of P x N x 3 is ever made. It
    is computed in the precision of the kernels and the three Jacobians.

    Args:
        at: Inputs and their derivatives.
        points_jacobian: (n, k, 3, P) of the simulated points, dB/da.
    """
    beta, moving, own = _kernel_factors(at)
    (batch, k), kernels = points_jacobian.shape[:2], beta.shape[2]
    parts = [beta[:, x, None] * moving[:, : 4 + 3 * k] for x in range(3)]
    factors = np.zeros((batch, _filled(3 * (4 + 3 * k) + 3 * k), kernels), beta.dtype)
    np.concatenate([*parts, own[:, : 3 * k]], axis=1, out=factors[:, : 3 * (4 + 3 * k) + 3 * k])
    sums: Floats = factors @ at.gaussian.swapaxes(1, 2)
    jacobian = np.empty(points_jacobian.shape)
    points, gamma = _points_and_gamma(at, sums.dtype)
    fill_jacobian(points, np.ascontiguousarray(points_jacobian), sums, gamma, at.gamma_jacobian, at.width, jacobian)
    return jacobian


def warp_jacobian_along(at: WarpInputs, directions: Array) -> tuple[Floats, Floats]:
    """`warp_jacobian` along a direction d of each point, d . dp*/da, but for its first term.

    The directions go into the kernels first, e_i d . beta_i: what moves with the centers then needs one column each
    instead of three.

    Args:
        at: Inputs and their derivatives.
        directions: (n, P, 3).

    Returns:
        The second and third term of Eq. 17, (n, k, P); and d . dp*/dp (n, 3, P), along which the motion of the
        simulated points is still to be added.
    """
    (batch, k), count = at.centers_jacobian.shape[:2], at.points.shape[1]
    kernels: Floats = np.ascontiguousarray(at.gaussian.swapaxes(1, 2))
    beta, moving, own = _kernel_factors(at)
    along: Floats = np.ascontiguousarray(directions.swapaxes(1, 2), dtype=beta.dtype)
    weights = np.empty_like(kernels)
    fill_weights(kernels, beta, along, weights)
    sums: Floats = moving @ weights
    own_sums: Floats = own @ kernels
    jacobian: Floats = np.empty((batch, k, count), beta.dtype)
    points, gamma = _points_and_gamma(at, beta.dtype)
    slope = np.empty_like(along)
    fill_jacobian_along(points, along, sums, own_sums, gamma, at.gamma_jacobian, at.width, slope, jacobian)
    return jacobian, slope


def _points_and_gamma(at: WarpInputs, dtype: np.dtype[np.floating]) -> tuple[Floats, Floats]:
    """Points (n, 3, P) and the affine part (n, 4, 3), as the loops take them."""
    return np.ascontiguousarray(at.points.swapaxes(1, 2), dtype=dtype), at.gamma[:, :4].astype(dtype)


def _kernel_factors(at: WarpInputs) -> tuple[Floats, Floats, Floats]:
    """What belongs to the kernels in Eqs. 24-30, in the precision of the derivatives.

    d e_i = 2c e_i (q_i - p) . (dp - dq_i) (Eqs. 24-27) is split into factors of the point and factors of the kernel.

    Returns:
        beta (n, 3, N); 1, the centers, and 2c dq (n, 4 + 3 k, N); and dbeta - beta 2c q . dq (n, 3 k, N), all that is
        multiplied with e_i alone. Rows of zeros are added to the last two.
    """
    dtype, (batch, k) = at.gaussian.dtype, at.centers_jacobian.shape[:2]
    beta: Floats = np.ascontiguousarray(at.gamma[:, 4:].swapaxes(1, 2), dtype=dtype)
    centers = np.ascontiguousarray(at.centers.swapaxes(1, 2), dtype=dtype)
    moving, own = (np.zeros((batch, _filled(rows), beta.shape[2]), dtype) for rows in (4 + 3 * k, 3 * k))
    fill_factors(beta, centers, at.centers_jacobian, at.gamma_jacobian, at.width, moving, own)
    return beta, moving, own


_LANES = 16
"""Products are quicker when a row more or less fills the registers."""


def _filled(rows: int) -> int:
    """So many rows, and those of zeros that are added."""
    return -(-rows // _LANES) * _LANES


def _coordinates(points: Array) -> Array:
    """(n, P, 3) as (n, 3, P), contiguous."""
    return np.ascontiguousarray(points.swapaxes(1, 2))
