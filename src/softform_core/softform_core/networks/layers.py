"""The perceptron that all networks share, and its weights as numpy arrays for kinematics without autograd."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from softform_core.errors import SoftformError

Array = NDArray[np.float64]

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}
_BATCH_NORM_EPSILON = 1e-5


def perceptron(sizes: Sequence[int], activation: str = "relu", use_batch_norm: bool = False) -> nn.Sequential:
    """Linear layers with an activation between them, each hidden one behind a batch norm if asked.

    Args:
        sizes: Width of the input, of the hidden layers, and of the output.
        activation: `relu` (paper 000, Sec. V-B1) or `tanh`.
        use_batch_norm: Normalise before each activation.

    Raises:
        SoftformError: If the activation is unknown.
    """
    if activation not in _ACTIVATIONS:
        raise SoftformError(f"Activation '{activation}' is unknown.", f"Known: {', '.join(_ACTIVATIONS)}.")
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes[:-2], sizes[1:-1], strict=True):
        layers.append(nn.Linear(inputs, outputs))
        if use_batch_norm:
            layers.append(nn.BatchNorm1d(outputs, eps=_BATCH_NORM_EPSILON))
        layers.append(_ACTIVATIONS[activation]())
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


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


def extract_mlp(module: nn.Module) -> MlpWeights:
    """Weights of a network built of one `perceptron` named `layers` between an input and an output normalisation.

    Args:
        module: The network, or what `torch.jit.load` made of its export.

    Raises:
        SoftformError: If it is not such a network.
    """
    state = {name: tensor.detach().cpu().numpy().astype(np.float64) for name, tensor in module.state_dict().items()}
    try:
        activation = str(module.activation)
        buffers = [state[name].ravel() for name in ("input_offset", "input_scale", "output_offset", "output_scale")]
    except (AttributeError, KeyError) as error:
        raise SoftformError(
            f"This network is not a Softform perceptron: {error}.", "Export the model again."
        ) from error
    weights: list[Array] = []
    biases: list[Array] = []
    for place in sorted({int(name.split(".")[1]) for name in state if name.startswith("layers.")}):
        weight, bias = state[f"layers.{place}.weight"], state[f"layers.{place}.bias"]
        if weight.ndim == 2:
            weights.append(weight)
            biases.append(bias)
            continue
        gain = weight / np.sqrt(state[f"layers.{place}.running_var"] + _BATCH_NORM_EPSILON)
        weights[-1] = weights[-1] * gain[:, None]
        biases[-1] = (biases[-1] - state[f"layers.{place}.running_mean"]) * gain + bias
    if not weights:
        raise SoftformError("This network has no layers.", "Export the model again.")
    return MlpWeights(weights, biases, activation, *buffers)
