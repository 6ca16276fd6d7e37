"""Sim-to-real in numpy: the correction of the actuation, and the radial-basis-function warp with its derivatives.

Paper 000, Eqs. 2 and 23-30; the correction is not in it. Millimetres. The kernels and what is summed over them are
matrix products. Points lie along the last axis, where BLAS wants them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.networks.mlp_weights import MlpWeights, chained


@dataclass(frozen=True)
class ActuationCorrection:
    """The actuation a' of the simulation that explains a commanded one a.

    It stands for gain and offset of sensors, for how stiff the body is, and for actuators that act on one another.

    Attributes:
        layers: (k,) -> (k,), both in the unit of the actuation.
        memory: Comes first where the commands before are known; None if the body has none, or it was not learned.
    """

    layers: MlpWeights
    memory: PrandtlIshlinskii | None = None

    def effective(self, actuation: Array) -> Array:
        """Return the simulation's actuation (..., k) for commanded ones (..., k), or effective ones where known."""
        return self.layers.forward(actuation)

    def after(self, first: "ActuationCorrection") -> "ActuationCorrection":
        """Return both as one: a memory, then the layers of `first`, and this one's.

        `first` was fitted on what this one's memory leaves in effect; where this one has none, it may bring one.
        """
        return ActuationCorrection(
            chained(first.layers, self.layers), first.memory if self.memory is None else self.memory
        )

    def before(self, network: MlpWeights) -> MlpWeights:
        """Return the network that takes a in place of a', of the same input range, with this correction before it."""
        both = chained(self.layers, network)
        offset, scale = network.input_offset, network.input_scale
        first = both.weights[0] / both.input_scale
        bias = both.biases[0] + first @ (offset - both.input_offset)
        return replace(
            both,
            weights=[first * scale, *both.weights[1:]],
            biases=[bias, *both.biases[1:]],
            input_offset=offset,
            input_scale=scale,
        )


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
        actuation: Comes before N_fk; None if the simulated shapes are those of the commanded actuations.
    """

    kernel_uv: Array
    coefficients: MlpWeights
    width: float = KERNEL_WIDTH
    actuation: ActuationCorrection | None = None

    def __post_init__(self) -> None:
        """Check that network and kernels fit together."""
        expected = (len(self.kernel_uv) + 4) * 3
        if self.coefficients.weights[-1].shape[0] != expected:
            raise SoftformError(
                f"N_rbf gives {self.coefficients.weights[-1].shape[0]} coefficients, "
                f"{len(self.kernel_uv)} kernels need {expected}.",
                "Use the network that was trained with these kernels.",
            )

    @property
    def memory(self) -> PrandtlIshlinskii | None:
        """Memory between commands and what the body feels, applied before all else; None if it was not learned."""
        return None if self.actuation is None else self.actuation.memory

    def effective_after(self, past: Array | None, actuation: Array) -> Array:
        """Return the effective actuation (..., k) at one (..., k) after others (..., h, k), oldest first, if known."""
        return actuation if self.memory is None or past is None else self.memory.effective_after(past, actuation)


def gaussians(points: Array, centers: Array, width: float, precision: type[np.floating] = np.float64) -> Floats:
    """Return kernels e^(-c |p - q_i|^2) of Eq. 2, with -c |p - q|^2 = 2c p . q - c |p|^2 - c |q|^2 as one product.

    Args:
        points: (n, P, 3) mm.
        centers: (n, N, 3) mm.
        width: c, 1/mm^2.
        precision: Type of the result.

    Returns:
        (n, P, N), a view of (n, N, P).
    """
    # About a center the squares are smaller, and so is what rounding takes of their difference.
    origin = centers[:, centers.shape[1] // 2, None]
    p, q = (points - origin).swapaxes(1, 2), centers - origin
    of_point, of_center = -width * (p * p).sum(axis=1, keepdims=True), -width * (q * q).sum(axis=2, keepdims=True)
    left = np.concatenate([2.0 * width * q, np.ones_like(of_center), of_center], axis=2)
    right = np.concatenate([p, of_point, np.ones_like(of_point)], axis=1)
    exponent = left.astype(precision, copy=False) @ right.astype(precision, copy=False)
    # Rounding may lift the exponent of a point at a center above zero.
    return np.exp(np.minimum(exponent, 0.0, out=exponent), out=exponent).swapaxes(1, 2)


def warp(points: Array, gaussian: Floats, gamma: Array) -> Array:
    """Eq. 2: p* = alpha_0 + A p + sum_i beta_i e^(-c |p - q_i|^2), (n, P, 3) mm.

    Args:
        points: (n, P, 3) mm.
        gaussian: (n, P, N), from `gaussians`; in its precision the kernels are summed.
        gamma: (n, N + 4, 3): alpha_0, the three columns of A, beta_1 ... beta_N.
    """
    return gamma[:, :1] + points @ gamma[:, 1:4] + gaussian @ gamma[:, 4:].astype(gaussian.dtype, copy=False)


def warp_tangents(
    points: Array, tangents: Array, centers: Array, gaussian: Floats, gamma: Array, width: float
) -> Array:
    """Eq. 2's derivative along tangents of the surface, the centers held: dp*/du = (dp*/dp) dp/du (Eq. 26), (n, P, 3).

    Args:
        points: (n, P, 3) mm.
        tangents: (n, P, 3), derivative of the points with respect to one surface parameter.
        centers: (n, N, 3) mm.
        gaussian: (n, P, N), from `gaussians`.
        gamma: (n, N + 4, 3).
        width: c, 1/mm^2.
    """
    along = np.einsum("npx,npx->np", points, tangents)[:, :, None] - tangents @ centers.swapaxes(-1, -2)
    return tangents @ gamma[:, 1:4] + (-2.0 * width * gaussian * along) @ gamma[:, 4:]


@dataclass(frozen=True)
class WarpInputs:
    """Inputs of Eq. 2 for a batch, at one actuation each, and their derivatives by the actuation.

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

    @cached_property
    def beta_motion(self) -> Floats:
        """Displacement of the points by the changing beta_i, sum_i dbeta_i/da e_i (Eq. 30), (n, k, 3, P)."""
        kernels = self.gaussian.swapaxes(1, 2)
        batch, k = self.gamma_jacobian.shape[:2]
        change = self.gamma_jacobian[:, :, 4:].astype(kernels.dtype, copy=False).swapaxes(2, 3)
        return (change.reshape(batch, 3 * k, -1) @ kernels).reshape(batch, k, 3, -1)


def warp_jacobian_along(at: WarpInputs, directions: Floats) -> tuple[Floats, Floats]:
    """Return Eq. 2's derivative by the actuation along a direction d of each point, but for its first term.

    With e_i the kernels, de_i = 2c e_i (p - q_i) . (dq_i - dp) (Eqs. 24-27). The directions go into the kernels first,
    e_i d . beta_i, so that what moves with the centers needs one column each instead of three.

    Args:
        at: Inputs and their derivatives; it is computed in the precision of the kernels.
        directions: (n, 3, P).

    Returns:
        The second and third term of Eq. 17, (n, k, P); and d . dp*/dp (n, 3, P), along which the motion of the
        simulated points is still to be added.
    """
    kernels = at.gaussian.swapaxes(1, 2)
    dtype, (batch, k), count = kernels.dtype, at.centers_jacobian.shape[:2], kernels.shape[2]
    points, centers, gamma, along = (
        np.asarray(each, dtype) for each in (at.points.swapaxes(1, 2), at.centers, at.gamma, directions)
    )
    motion = 2.0 * dtype.type(at.width) * at.centers_jacobian
    toward = np.einsum("nkxi,nix->nki", motion, centers)
    weights = kernels * (gamma[:, 4:] @ along)
    rows = [np.ones_like(toward[:, :1]), centers.swapaxes(1, 2), motion.reshape(batch, 3 * k, -1), toward]
    sums = np.concatenate(rows, axis=1) @ weights
    # Eq. 26: A^T d + 2c sum_i e_i (d . beta_i) (q_i - p).
    slope = gamma[:, 1:4] @ along + 2.0 * dtype.type(at.width) * (sums[:, 1:4] - sums[:, :1] * points)
    # Eqs. 29-30, changing coefficients: first what belongs to alpha, then to beta.
    change = at.gamma_jacobian[:, :, :4].astype(dtype, copy=False)
    alpha = (change.reshape(batch, 4 * k, 3) @ along).reshape(batch, k, 4, count)
    jacobian = alpha[:, :, 0] + np.einsum("nkxp,nxp->nkp", at.beta_motion, along)
    # Eqs. 23-25, moving centers, and what alpha_1 ... alpha_3 change, both times p.
    moved = sums[:, 4 : 4 + 3 * k].reshape(batch, k, 3, count) + alpha[:, :, 1:]
    jacobian += np.einsum("nkxp,nxp->nkp", moved, points) - sums[:, 4 + 3 * k :]
    return jacobian, slope


def warp_jacobian(simulated: Floats, at: WarpInputs | None) -> Floats:
    """Return Eq. 17, (n, k, 3, P), from the simulated points' derivative (n, k, 3, P); without a warp that is it.

    Args:
        simulated: mm per unit of the actuation.
        at: Inputs of the warp and their derivatives.
    """
    if at is None:
        return simulated
    shape = (*simulated.shape[:1], 3, simulated.shape[3])
    axes = (np.broadcast_to(axis[:, None], shape) for axis in np.eye(3, dtype=simulated.dtype))
    return np.stack([jacobian_along(simulated, at, axis) for axis in axes], axis=2)


def jacobian_along(simulated: Floats, at: WarpInputs | None, directions: Floats) -> Floats:
    """Return Eq. 17 along directions (n, 3, P), (n, k, P); arguments as of `warp_jacobian`."""
    if at is None:
        return np.einsum("nkxp,nxp->nkp", simulated, directions)
    jacobian, slope = warp_jacobian_along(at, directions)
    return jacobian + np.einsum("nkxp,nxp->nkp", simulated, slope)
