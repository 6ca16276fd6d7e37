"""Multi-layer perceptrons in numpy: value and analytic Jacobian, batched (no autograd)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.networks.mlp_weights import MlpWeights

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class AffineLayers:
    """A perceptron whose normalisations are folded into its first and last layers.

    Attributes:
        weights: (out, in) each.
        biases: (out,) each.
        activation: `relu` or `tanh`, applied after every layer but the last.
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    activation: str

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.weights[0].shape[1])

    def hidden(self, x: Floats) -> tuple[Floats, ...]:
        """Return activations of the hidden layers, (n, in) -> (n, width) each; x is of the layers' precision."""
        activations = []
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ weight.T + bias
            x = np.maximum(x, 0.0) if self.activation == "relu" else np.tanh(x)
            activations.append(x)
        return tuple(activations)

    def values(self, x: Floats) -> Array:
        """Return the output, (n, in) -> (n, out)."""
        return self.output((x, *self.hidden(x))[-1])

    def output(self, last_hidden: Floats) -> Array:
        """Return the output (n, out) from the activations of the last hidden layer; double, as the last bias is."""
        return np.asarray(last_hidden @ self.weights[-1].T + self.biases[-1], dtype=np.float64)

    def hidden_jacobian(self, hidden: tuple[Floats, ...], dx: Floats | None = None) -> Floats:
        """Return the derivative of the last hidden layer's activations, (n, k, width) in the precision of the weights.

        Args:
            hidden: Result of `hidden`, at least one layer.
            dx: (n, k, in), derivative of the input with respect to k variables; None: these are the inputs themselves.
        """
        for columns, x in zip(self._columns[:-1], hidden, strict=True):
            slope = (x > 0.0).astype(x.dtype) if self.activation == "relu" else 1.0 - x * x
            dx = (columns if dx is None else dx @ columns) * slope[:, None]
        assert dx is not None
        return dx

    def jacobian(self, hidden: tuple[Floats, ...], dx: Floats) -> Floats:
        """Return the derivative of the output (n, k, out); see `hidden_jacobian`."""
        return (self.hidden_jacobian(hidden, dx) if hidden else dx) @ self._columns[-1]

    @cached_property
    def _columns(self) -> tuple[Floats, ...]:
        """The weights transposed, (in, out) each, and contiguous: with them products of few rows are quicker."""
        return tuple(np.ascontiguousarray(weight.T) for weight in self.weights)

    def after(self, weight: Floats, bias: Floats) -> "AffineLayers":
        """Return this perceptron behind an affine map `x -> weight x + bias`, folded into the first layer (exact)."""
        first = self.weights[0]
        return AffineLayers(
            (first @ weight, *self.weights[1:]), (self.biases[0] + first @ bias, *self.biases[1:]), self.activation
        )

    def in_precision(self, dtype: type[np.floating]) -> "AffineLayers":
        """Return these layers in another precision, but for the last bias: what is added to it is the smaller part."""
        weights = tuple(weight.astype(dtype, copy=False) for weight in self.weights)
        biases = tuple(bias.astype(dtype, copy=False) for bias in self.biases[:-1])
        return AffineLayers(weights, (*biases, self.biases[-1]), self.activation)


def fold(mlp: MlpWeights) -> AffineLayers:
    """Fold the input and output normalisation of a network into its layers (exact).

    Raises:
        SoftformError: If the activation is unknown or the layers do not fit together.
    """
    if mlp.activation not in ("relu", "tanh"):
        raise SoftformError(f"Activation '{mlp.activation}' is not known to kinematics.", "Train with relu or tanh.")
    weights = [np.array(weight, dtype=np.float64) for weight in mlp.weights]
    biases = [np.array(bias, dtype=np.float64).ravel() for bias in mlp.biases]
    shapes = [weight.shape for weight in weights]
    fits = len(weights) == len(biases) >= 1 and all(a[0] == b[1] for a, b in zip(shapes[:-1], shapes[1:], strict=True))
    if not fits or any(weight.shape[0] != bias.size for weight, bias in zip(weights, biases, strict=True)):
        raise SoftformError(f"Layers of shapes {shapes} do not follow each other.", "Export the model again.")
    weights[0] = weights[0] / np.asarray(mlp.input_scale, dtype=np.float64).reshape(1, -1)
    biases[0] = biases[0] - weights[0] @ np.broadcast_to(
        np.asarray(mlp.input_offset, dtype=np.float64).ravel(), weights[0].shape[1:]
    )
    scale = np.broadcast_to(np.asarray(mlp.output_scale, dtype=np.float64).ravel(), biases[-1].shape)
    weights[-1] = weights[-1] * scale[:, None]
    biases[-1] = biases[-1] * scale + np.asarray(mlp.output_offset, dtype=np.float64).ravel()
    return AffineLayers(tuple(weights), tuple(biases), mlp.activation)
