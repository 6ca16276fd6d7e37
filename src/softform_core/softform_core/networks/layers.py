"""The perceptron that all networks share."""

from collections.abc import Sequence

from torch import nn

from softform_core.errors import SoftformError
from softform_core.networks.mlp_weights import BATCH_NORM_EPSILON

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


def perceptron(sizes: Sequence[int], activation: str = "relu", use_batch_norm: bool = False) -> nn.Sequential:
    """Return linear layers with an activation between them, each hidden one behind a batch norm if asked.

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
            layers.append(nn.BatchNorm1d(outputs, eps=BATCH_NORM_EPSILON))
        layers.append(_ACTIVATIONS[activation]())
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))
