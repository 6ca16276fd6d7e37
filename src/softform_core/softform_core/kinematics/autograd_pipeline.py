"""Algorithm 1 in torch, differentiated automatically: what `bench ik` measures ours against."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softform_core.kinematics.forward_model import COARSE_POINTS
from softform_core.kinematics.pipeline import grid_uv
from softform_core.kinematics.rbf_warp import KERNEL_WIDTH
from softform_core.surface.decoder import SurfaceDecoder

Array = NDArray[np.float64]
Network = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class AutogradState:
    """One evaluation, with its graph.

    Attributes:
        points: (1, P, 3) mm.
        actuation: (1, k) Pa, the leaf of the graph.
        output: (1, P, 3) mm, the root of the graph.
    """

    points: Array
    actuation: Tensor
    output: Tensor


class AutogradPipeline:
    """The networks as they were trained (float32); gradients by back-propagation through the whole of Algorithm 1.

    Args:
        forward_kinematics: N_fk, (1, k) Pa -> (1, rows, cols, 3) mm.
        degrees_of_freedom: k.
        uv: (P, 2) surface parameters.
        coefficients: N_rbf, (1, rows * cols * 3) mm -> (1, (N + 4) * 3), or None without sim-to-real.
        kernel_uv: (N, 2) parameters of the kernel centers.
        rows: Control points along u.
        cols: Control points along v.
        degree: Of the B-spline.
    """

    def __init__(
        self,
        forward_kinematics: Network,
        degrees_of_freedom: int,
        uv: Array,
        coefficients: Network | None = None,
        kernel_uv: Array | None = None,
        rows: int = 30,
        cols: int = 30,
        degree: int = 3,
    ) -> None:
        """Evaluate the spline basis once."""
        self._network, self._coefficients, self._count = forward_kinematics, coefficients, len(uv)
        self._kernel_uv, self._grid = kernel_uv, (rows, cols, degree)
        self.degrees_of_freedom = degrees_of_freedom
        sampled = uv if kernel_uv is None else np.concatenate([uv, kernel_uv])
        self._decoder = SurfaceDecoder(sampled, rows, cols, degree)

    @cached_property
    def coarse(self) -> "AutogradPipeline":
        """The same shape at about a hundred points."""
        return self.at(grid_uv(COARSE_POINTS))

    def at(self, uv: Array) -> "AutogradPipeline":
        """The same shape at other surface parameters (M, 2)."""
        return AutogradPipeline(
            self._network, self.degrees_of_freedom, uv, self._coefficients, self._kernel_uv, *self._grid
        )

    def _points(self, actuation: Tensor) -> Tensor:
        control_points = self._network(actuation)
        simulated = self._decoder(control_points)
        if self._coefficients is None:
            return simulated
        points, centers = simulated[:, : self._count], simulated[:, self._count :]
        gamma = self._coefficients(control_points.reshape(1, -1)).reshape(1, -1, 3)
        squared = ((points[:, :, None] - centers[:, None]) ** 2).sum(-1)
        return gamma[:, :1] + points @ gamma[:, 1:4] + torch.exp(-KERNEL_WIDTH * squared) @ gamma[:, 4:]

    def forward(self, actuation: Array) -> AutogradState:
        """Evaluate (1, k) Pa and keep the graph."""
        leaf = torch.tensor(actuation, dtype=torch.float32, requires_grad=True)
        output = self._points(leaf)
        return AutogradState(output.detach().numpy().astype(np.float64), leaf, output)

    def objective_gradient(self, state: AutogradState, residuals: Array) -> Array:
        """Eq. 16 by back-propagation, (k,) mm^2/Pa."""
        upstream = torch.tensor(2.0 * residuals[None], dtype=torch.float32)
        (gradient,) = torch.autograd.grad(state.output, state.actuation, upstream, retain_graph=True)
        return gradient[0].numpy().astype(np.float64)

    def jacobian(self, state: AutogradState) -> Array:
        """Derivative of the points, (1, P, 3, k) mm/Pa."""
        jacobian = torch.autograd.functional.jacobian(self._points, state.actuation.detach())
        return jacobian[:, :, :, 0].detach().numpy().astype(np.float64)

    def jacobian_along(self, state: AutogradState, directions: Array) -> Array:
        """Derivative of each point along a direction (P, 3) of its own, (P, k) mm/Pa."""
        return np.einsum("px,pxk->pk", directions, self.jacobian(state)[0])
