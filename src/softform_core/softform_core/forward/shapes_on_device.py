"""Many shapes at once, by PyTorch on a device: Algorithm 1 with its uncertainty, in double precision."""

import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn.functional import normalize

from softform_core.arrays import Array
from softform_core.forward.mlp import AffineLayers
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.networks.layers import perceptron
from softform_core.networks.sim_to_real import warp_basis, warp_basis_slope
from softform_core.surface.decoder import SurfaceDecoder

_BATCH = 16
"""Shapes computed at a time: half a gigabyte for 10 000 points and 100 kernels."""


class ShapesOnDevice:
    """Computes `pipeline.points` and `uncertainty.along_normals` on a device, equal up to rounding.

    Args:
        pipeline: Forward kinematics.
        uncertainty: Uncertainty of the same model; None for a pipeline without sim-to-real.
        device: Device that computes.
    """

    def __init__(self, pipeline: ForwardPipeline, uncertainty: SurfaceUncertainty | None, device: torch.device) -> None:
        patches, transfer, self._device = pipeline.patches, pipeline.sim_to_real, device
        self._network = self._layers(pipeline.network)
        self._surface = self._decoder(patches.basis(pipeline.uv))
        self._uncertainty, self._width = uncertainty, pipeline.kernel_width
        if transfer is not None and uncertainty is not None:
            self._members = [self._layers(member) for member in uncertainty.members]
            self._kernels = self._decoder(patches.basis(transfer.kernel_uv))
            self._slopes = [self._decoder(slope) for slope in patches.derivatives(pipeline.uv)]

    def predicted(self, actuation: Array) -> tuple[Array, Array | None]:
        """Return points (n, P, 3) mm at actuations (n, k), and their standard deviation (n, P) mm if there is one."""
        batches = torch.from_numpy(actuation).to(self._device).split(_BATCH)
        with torch.no_grad():
            found = [self._predicted(batch) for batch in batches]
        points, spread = (torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
        return points, None if self._uncertainty is None else self._uncertainty.of_spread(spread)

    def _predicted(self, actuation: Tensor) -> tuple[Tensor, Tensor]:
        """Return points (n, P, 3) mm, and the spread (n, P) mm of the members, empty without them."""
        control = self._network(actuation)
        points = self._surface(control)
        if self._uncertainty is None:
            return points, points.new_empty(len(points), 0)
        centers = self._kernels(control)
        gamma = torch.stack([member(control).reshape(len(control), -1, 3) for member in self._members])
        mean = gamma.mean(dim=0)
        basis = warp_basis(points, centers, self._width)
        along_u, along_v = (
            warp_basis_slope(points, slope(control), centers, self._width) @ mean for slope in self._slopes
        )
        normals = normalize(torch.linalg.cross(along_u, along_v), dim=-1)
        off_mean = ((basis @ (gamma - mean)) * normals).sum(dim=-1)
        return basis @ mean, (off_mean.square().sum(dim=0) / max(1, len(gamma) - 1)).sqrt()

    def _layers(self, layers: AffineLayers) -> nn.Sequential:
        """Return a network on the device."""
        network = perceptron([layers.inputs, *map(len, layers.biases)], layers.activation).double()
        values = [torch.from_numpy(value) for pair in zip(layers.weights, layers.biases, strict=True) for value in pair]
        network.load_state_dict(dict(zip(network.state_dict(), values, strict=True)))
        return network.to(self._device)

    def _decoder(self, matrix: csr_matrix) -> SurfaceDecoder:
        return SurfaceDecoder(matrix, torch.float64).to(self._device)
