"""N_fk: from the actuation to the control points of the simulated surface (paper 000, Eq. 14 and Sec. V-B1)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from softform_core.networks.layers import perceptron


class ForwardKinematics(nn.Module):
    """Control points as offsets from the mean shape, S^c = mean + scale * mlp((a - offset) / scale_a) (Eq. 14).

    Two hidden layers of 128 neurons with ReLU (Sec. V-B1). Left open by the paper: the actuation is normalised to
    -1 … 1 over the working range; the offsets of all coordinates are divided by one common scale.

    Args:
        actuation_min: (k,), lowest actuation.
        actuation_max: (k,), highest actuation.
        mean_shape: (C, 3) mm, or (rows, cols, 3) mm of one patch: average control points of the training shapes.
        offset_scale: mm, size of the network's unit output.
        hidden: Widths of the hidden layers.
        activation: `relu`, or `tanh`.
        use_batch_norm: Batch norm before each activation, as printed in the paper.
    """

    input_offset: Tensor
    input_scale: Tensor
    output_offset: Tensor
    output_scale: Tensor

    def __init__(
        self,
        actuation_min: Tensor,
        actuation_max: Tensor,
        mean_shape: Tensor,
        offset_scale: float = 1.0,
        hidden: Sequence[int] = (128, 128),
        activation: str = "relu",
        use_batch_norm: bool = False,
    ) -> None:
        """Lay the layers with torch's default initial weights."""
        super().__init__()
        self.activation = activation
        self.shape = list(mean_shape.shape)
        self.layers = perceptron((len(actuation_min), *hidden, mean_shape.numel()), activation, use_batch_norm)
        self.register_buffer("input_offset", (0.5 * (actuation_min + actuation_max)).float())
        self.register_buffer("input_scale", (0.5 * (actuation_max - actuation_min)).float())
        self.register_buffer("output_offset", mean_shape.reshape(-1).float())
        self.register_buffer("output_scale", torch.full((mean_shape.numel(),), float(offset_scale)))

    def forward(self, actuation: Tensor) -> Tensor:
        """Return the control points, (n, ...) of the mean shape's, mm, at actuations (n, k)."""
        offsets = self.layers((actuation - self.input_offset) / self.input_scale)
        return (self.output_offset + self.output_scale * offsets).reshape([-1] + self.shape)
