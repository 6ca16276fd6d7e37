"""N_rbf, the warp whose coefficients it predicts, and N_conf (paper 000, Eqs. 2-5 and Sec. III-A); millimetres."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import block_diag, null_space, svd
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.networks.layers import perceptron
from softform_core.networks.mlp_weights import MlpWeights


def identity_coefficients(kernels: int, motion: RigidTransform | None = None) -> Array:
    """Return gamma (kernels + 4, 3) of the warp that moves no point, or moves all alike; the motion in mm."""
    motion = motion or RigidTransform()
    return np.vstack([motion.translation[None], motion.rotation.T, np.zeros((kernels, 3))])


def kernels(points: Tensor, centers: Tensor, width: float) -> Tensor:
    """Return kernels e^(-c |p - q_i|^2) of Eq. 2 of points (n, P, 3), centers (n, N, 3), mm, c in 1/mm^2; (n, P, N).

    With |p - q|^2 = |p|^2 - 2 p . q + |q|^2 they are a matrix product; about a center its terms round less.
    """
    origin = centers[:, :1]
    p, q = points - origin, centers - origin
    squared = p.square().sum(-1)[:, :, None] + q.square().sum(-1)[:, None] - 2.0 * p @ q.transpose(1, 2)
    return torch.exp(-width * squared.clamp(min=0.0))


def warp_basis(points: Tensor, centers: Tensor, width: float) -> Tensor:
    """Eq. 2 in matrix form: p* = warp_basis @ gamma, rows [1, p, e^(-c |p - q_1|^2), ...].

    Args:
        points: (n, P, 3) mm.
        centers: (n, N, 3) mm, q_i on the same simulated surfaces.
        width: c, 1/mm^2.

    Returns:
        (n, P, N + 4), for gamma in the order alpha_0, alpha_1, alpha_2, alpha_3, beta_1 ... beta_N.
    """
    gaussian = kernels(points, centers, width)
    return torch.cat([torch.ones_like(points[..., :1]), points, gaussian], dim=2)


def warp_basis_slope(points: Tensor, tangents: Tensor, centers: Tensor, width: float) -> Tensor:
    """Return the slope of `warp_basis` along tangents dp/du (n, P, 3), centers held: dp*/du = slope @ gamma."""
    along = (points * tangents).sum(-1)[:, :, None] - tangents @ centers.transpose(1, 2)
    slope = -2.0 * width * kernels(points, centers, width) * along
    return torch.cat([torch.zeros_like(points[..., :1]), tangents, slope], dim=2)


def stable_directions(basis: Array, centers: Array, smallest: float) -> Array:
    """Return well-conditioned directions of gamma; each moves the surface by 1 mm in the root mean square.

    Wide Gaussians nearly depend on each other: steps in gamma itself then move the surface by anything between nothing
    and metres. The compatibility conditions of Eq. 10 are built in at the shape given: the betas of every direction
    lie in their null space. A singular-value decomposition of what is left orders the directions.

    Args:
        basis: (P, N + 4), `warp_basis` of a typical shape.
        centers: (N, 3) mm, of the same shape.
        smallest: Directions whose singular value is below this share of the largest are left out.

    Returns:
        (N + 4, r).
    """
    conditions = np.vstack([np.ones(len(centers)), centers.T])
    compatible = block_diag(np.eye(4), null_space(conditions))
    # Affine columns are scaled to the size of the kernels' ones, or they alone would decide what is small.
    column_size = np.linalg.norm(basis, axis=0)
    affine_scale = np.ones(len(column_size))
    affine_scale[:4] = np.median(column_size[4:]) / column_size[:4]
    compatible = affine_scale[:, None] * compatible
    _, singular, right = np.linalg.svd(basis @ compatible, full_matrices=False)
    kept = singular > smallest * singular[0]
    return np.sqrt(len(basis)) * compatible @ (right[kept].T / singular[kept])


@dataclass(frozen=True)
class ShapeInput:
    """Scaling of control points for the networks: (basis (S^c - mean)) / scale.

    Attributes:
        mean: (rows * cols * 3,) mm.
        basis: (r, rows * cols * 3) principal components, or None for the control points themselves.
        scale: (r,) mm.
    """

    mean: Array
    basis: Array | None
    scale: Array

    @classmethod
    def of(cls, control_points: Array, components: int | None) -> "ShapeInput":
        """Fit to typical simulated shapes, (n, rows * cols * 3) mm."""
        mean = control_points.mean(axis=0)
        offsets = control_points - mean
        if components is None:
            return cls(mean, None, np.full(len(mean), max(float(offsets.std()), 1e-9)))
        if components > min(offsets.shape):
            raise SoftformError(
                f"{components} components of {len(offsets)} shapes cannot be found.", "Ask for fewer components."
            )
        try:
            basis = np.linalg.svd(offsets, full_matrices=False)[2][:components]
        except np.linalg.LinAlgError:  # LAPACK's divide and conquer, which is faster, gives up on some shapes
            basis = svd(offsets, full_matrices=False, lapack_driver="gesvd")[2][:components]
        return cls(mean, basis, np.maximum((offsets @ basis.T).std(axis=0), 1e-9))

    def normalised(self, control_points: Array) -> Array:
        """Return the input of the networks, (n, rows * cols * 3) mm -> (n, r)."""
        offsets = control_points - self.mean
        return (offsets if self.basis is None else offsets @ self.basis.T) / self.scale


class FunctionPrediction(nn.Module):
    """N_rbf (Eq. 3) between fixed linear maps: shape -> coordinates -> amplitudes along `directions` -> gamma.

    It starts as the identity, its last layer at zero: from a random start the warp is far from it and training
    diverges.

    Args:
        inputs: r of the `ShapeInput`.
        directions: (N + 4, d), from `stable_directions`, or the unit matrix for gamma itself.
        hidden: Widths of the hidden layers; 2 or 3 of 24 or 64 (Table II).
        activation: `relu` or `tanh`.
        scaling: (3 d, 3 d) from coordinates to amplitudes, invertible; None if they are the same.
        motion: Initial motion in place of the identity, mm.
    """

    directions: Tensor
    identity: Tensor
    scaling: Tensor

    def __init__(
        self,
        inputs: int,
        directions: Array,
        hidden: Sequence[int] = (24, 24),
        activation: str = "relu",
        scaling: Array | None = None,
        motion: RigidTransform | None = None,
    ) -> None:
        """Lay the layers; torch's seed decides all but the last."""
        super().__init__()
        self.activation = activation
        self.layers = perceptron((inputs, *hidden, directions.shape[1] * 3), activation)
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.register_buffer("directions", torch.from_numpy(directions).float())
        identity = identity_coefficients(len(directions) - 4, motion)
        self.register_buffer("identity", torch.from_numpy(identity).float())
        scaling = np.eye(3 * directions.shape[1]) if scaling is None else scaling
        self.register_buffer("scaling", torch.from_numpy(scaling).float())

    def amplitudes(self, shape: Tensor) -> Tensor:
        """Return amplitudes (n, d, 3) along the directions, from normalised shapes (n, r)."""
        return (self.layers(shape) @ self.scaling.T).reshape(len(shape), -1, 3)

    def forward(self, shape: Tensor) -> Tensor:
        """Return coefficients gamma (n, N + 4, 3), from normalised shapes (n, r)."""
        return self.identity + self.directions @ self.amplitudes(shape)

    def weights(self, shape_input: ShapeInput) -> MlpWeights:
        """Return the map from control points in mm to flattened gamma, fixed maps folded into the layers (exact)."""
        linear = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
        weights = [layer.weight.detach().double().numpy() for layer in linear]
        biases = [layer.bias.detach().double().numpy() for layer in linear]
        weights[0] = weights[0] / shape_input.scale
        if shape_input.basis is not None:
            weights[0] = weights[0] @ shape_input.basis
        unfold = self._unfold()
        weights[-1], biases[-1] = unfold @ weights[-1], unfold @ biases[-1]
        identity = self.identity.double().numpy().ravel()
        inputs = len(shape_input.mean)
        return MlpWeights(
            weights, biases, self.activation, shape_input.mean, np.ones(inputs), identity, np.ones(len(identity))
        )

    def _unfold(self) -> Array:
        """Map coordinates to flattened gamma, (3 (N + 4), 3 d)."""
        return np.kron(self.directions.double().numpy(), np.eye(3)) @ self.scaling.double().numpy()

    def load_weights(self, weights: MlpWeights, shape_input: ShapeInput) -> None:
        """Take over what `weights` gave, of a network of the same layers and fixed maps (exact).

        Raises:
            SoftformError: If layers or fixed maps differ.
        """
        linear = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
        matrices, biases = list(weights.weights), list(weights.biases)
        if matrices[0].shape[1] == len(shape_input.mean) and matrices[-1].shape[0] == 3 * len(self.directions):
            if shape_input.basis is not None:
                matrices[0] = matrices[0] @ shape_input.basis.T
            matrices[0] = matrices[0] * shape_input.scale
            fold_back = np.linalg.pinv(self._unfold())
            matrices[-1], biases[-1] = fold_back @ matrices[-1], fold_back @ biases[-1]
        if [matrix.shape for matrix in matrices] != [tuple(layer.weight.shape) for layer in linear]:
            raise SoftformError(
                "The earlier sim-to-real model has other layers or kernels than this recipe's.",
                "Train without it, or with the recipe that it was trained with.",
            )
        with torch.no_grad():
            self.identity.copy_(torch.from_numpy(weights.output_offset.reshape(self.identity.shape)))
            for layer, matrix, bias in zip(linear, matrices, biases, strict=True):
                layer.weight.copy_(torch.from_numpy(matrix))
                layer.bias.copy_(torch.from_numpy(bias))


class Confidence(nn.Module):
    """N_conf: how likely a simulated point has a counterpart on the scan, w_c(p) = N_conf(p, S^c) (Sec. III-A).

    Three layers of 128 neurons and a sigmoid. The first layer acts on point and shape apart and sums, which is a layer
    on both together, without repeating the shape for each point. Points are divided by `point_scale`, mm.
    """

    def __init__(self, inputs: int, point_scale: float) -> None:
        super().__init__()
        self._point_scale = point_scale
        self.of_shape = nn.Linear(inputs, 128)
        self.of_point = nn.Linear(3, 128, bias=False)
        self.layers = nn.Sequential(
            nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
        )

    def forward(self, points: Tensor, shape: Tensor) -> Tensor:
        """Return the confidence (n, P) in 0 … 1 of simulated points (n, P, 3) mm on normalised shapes (n, r)."""
        first = self.of_point(points / self._point_scale) + self.of_shape(shape)[:, None]
        return torch.sigmoid(self.layers(first)[..., 0])
