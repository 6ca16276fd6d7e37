"""Algorithm 1 in torch, differentiated automatically, with which `bench ik` compares ours."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.rbf_warp import SimToReal
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real import warp_basis
from softform_core.surface.decoder import SurfaceDecoder
from softform_core.surface.patch_set import SHEET, PatchSet


@dataclass(frozen=True)
class AutogradState:
    """One evaluation: its graph leads from the actuation (1, k) to the output (1, P, 3) mm."""

    points: Array
    actuation: Tensor
    output: Tensor


class TorchPerceptron(nn.Module):
    """A perceptron as torch runs it, of the weights that kinematics uses."""

    def __init__(self, mlp: MlpWeights, dtype: torch.dtype = torch.float32) -> None:
        """Copy the weights in the precision in which they were trained."""
        super().__init__()

        def copied(values: Array) -> Tensor:
            return torch.tensor(values, dtype=dtype)

        last = len(mlp.weights) - 1
        layers: list[nn.Module] = []
        for place, (weight, bias) in enumerate(zip(mlp.weights, mlp.biases, strict=True)):
            linear = nn.Linear(weight.shape[1], weight.shape[0])
            linear.weight, linear.bias = (nn.Parameter(copied(part), requires_grad=False) for part in (weight, bias))
            layers.append(linear)
            if place < last:
                layers.append(nn.ReLU() if mlp.activation == "relu" else nn.Tanh())
        self._layers = nn.Sequential(*layers)
        self._offset, self._scale = copied(mlp.input_offset), copied(mlp.input_scale)
        self._output_offset, self._output_scale = copied(mlp.output_offset), copied(mlp.output_scale)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the network, (n, in) -> (n, out)."""
        y: Tensor = self._layers((x - self._offset) / self._scale)
        return self._output_offset + self._output_scale * y


class AutogradPipeline(ForwardModel):
    """The networks as they were trained (float32); gradients by back-propagation through the whole of Algorithm 1.

    Args:
        forward_kinematics: N_fk, (k,) -> flattened control points (rows * cols * 3,) mm.
        uv: (P, 2) surface parameters.
        sim_to_real: N_s2r, or None for the simulated shape itself.
        patches: The robot's surface, of one patch.
    """

    def __init__(
        self, forward_kinematics: MlpWeights, uv: Array, sim_to_real: SimToReal | None = None, patches: PatchSet = SHEET
    ) -> None:
        self._forward_kinematics, self._sim_to_real, self._patches = forward_kinematics, sim_to_real, patches
        corrected = None if sim_to_real is None else sim_to_real.actuation
        network = forward_kinematics if corrected is None else corrected.before(forward_kinematics)
        self._network, self._count = TorchPerceptron(network), len(uv)
        self._coefficients = None if sim_to_real is None else TorchPerceptron(sim_to_real.coefficients)
        sampled = uv if sim_to_real is None else np.concatenate([uv, sim_to_real.kernel_uv])
        self._decoder = SurfaceDecoder(patches.basis(sampled))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the k inputs."""
        return tuple(f"actuation_{number + 1}" for number in range(self._forward_kinematics.weights[0].shape[1]))

    @cached_property
    def coarse(self) -> "AutogradPipeline":
        """The same shape at about a hundred points."""
        return self.at(self._patches.coarse())

    def at(self, uv: Array) -> "AutogradPipeline":
        """Return the same shape at other surface parameters (M, 2)."""
        return AutogradPipeline(self._forward_kinematics, uv, self._sim_to_real, self._patches)

    def _points(self, actuation: Tensor) -> Tensor:
        control_points = self._network(actuation)
        return self._warped(control_points, self._decoder(control_points.reshape(1, -1, 1, 3)))

    def _points_of_dense(self, actuation: Tensor) -> Tensor:
        """Compute the points like `_points`, with dense products: torch has no forward mode of sparse ones."""
        control_points = self._network(actuation)
        return self._warped(control_points, (self._dense @ control_points.reshape(-1, 3))[None])

    @cached_property
    def _dense(self) -> Tensor:
        return self._decoder.basis.to_dense()

    def _warped(self, control_points: Tensor, simulated: Tensor) -> Tensor:
        if self._coefficients is None or self._sim_to_real is None:
            return simulated
        points, centers = simulated[:, : self._count], simulated[:, self._count :]
        gamma = self._coefficients(control_points).reshape(1, -1, 3)
        return warp_basis(points, centers, self._sim_to_real.width) @ gamma

    def forward(self, actuation: Array) -> AutogradState:
        """Evaluate (1, k) and keep the graph."""
        leaf = torch.tensor(actuation, dtype=torch.float32, requires_grad=True)
        output = self._points(leaf)
        return AutogradState(output.detach().numpy().astype(np.float64), leaf, output)

    def objective_gradient(self, state: AutogradState, residuals: Array) -> Array:
        """Eq. 16 by back-propagation, (k,) mm^2/Pa."""
        upstream = torch.tensor(2.0 * residuals[None], dtype=torch.float32)
        (gradient,) = torch.autograd.grad(state.output, state.actuation, upstream, retain_graph=True)
        return gradient[0].numpy().astype(np.float64)

    def jacobian(self, state: AutogradState) -> Array:
        """Return the derivative of the points, (1, P, 3, k) mm/Pa.

        In forward mode, a pass for each input: backward it were one for each coordinate of each point.
        """
        jacobian = torch.func.jacfwd(self._points_of_dense)(state.actuation.detach())
        return np.asarray(jacobian[:, :, :, 0].detach().numpy().astype(np.float64))
