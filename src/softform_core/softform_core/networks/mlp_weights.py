"""The weights of a trained perceptron in numpy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array


@dataclass(frozen=True)
class MlpWeights:
    """A trained perceptron in numpy, batch norms folded into the layers before them.

    y = output_offset + output_scale * mlp((x - input_offset) / input_scale)

    Attributes:
        weights: (out, in) of each layer.
        biases: (out,) of each layer.
        activation: `relu` or `tanh`, after every layer but the last.
        input_offset: (in,) in the unit of the input.
        input_scale: (in,) in the unit of the input.
        output_offset: (out,) in the unit of the output; for N_fk the mean shape, mm, flattened (rows, cols, 3).
        output_scale: (out,) in the unit of the output.
    """

    weights: list[Array]
    biases: list[Array]
    activation: str
    input_offset: Array
    input_scale: Array
    output_offset: Array
    output_scale: Array

    def forward(self, x: ArrayLike) -> Array:
        """Output of the network, (n, in) -> (n, out)."""
        y = (np.asarray(x, dtype=np.float64) - self.input_offset) / self.input_scale
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            y = y @ weight.T + bias
            y = np.maximum(y, 0.0) if self.activation == "relu" else np.tanh(y)
        return self.output_offset + self.output_scale * (y @ self.weights[-1].T + self.biases[-1])
