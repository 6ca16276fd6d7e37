"""The perceptron that all networks share, and how its weights are taken out of it."""

from collections.abc import Sequence

import numpy as np
from torch import nn

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.networks.mlp_weights import MlpWeights

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
