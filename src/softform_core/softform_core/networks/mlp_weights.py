"""The weights of a trained perceptron in numpy, and how they are taken out of a network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.networks.saved_network import SavedNetwork, arrays_of

__all__ = ["MlpWeights", "extract_mlp"]

if TYPE_CHECKING:
    from torch import nn

BATCH_NORM_EPSILON = 1e-5


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
        """Return the output of the network, (n, in) -> (n, out)."""
        y = (np.asarray(x, dtype=np.float64) - self.input_offset) / self.input_scale
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            y = y @ weight.T + bias
            y = np.maximum(y, 0.0) if self.activation == "relu" else np.tanh(y)
        return self.output_offset + self.output_scale * (y @ self.weights[-1].T + self.biases[-1])


def extract_mlp(network: "SavedNetwork | nn.Module") -> MlpWeights:
    """Return the weights of a `perceptron` named `layers` between an input and an output normalisation.

    Raises:
        SoftformError: If it is not such a network.
    """
    state = arrays_of(network)
    try:
        activation = str(network.activation)
        buffers = [state[name].ravel() for name in ("input_offset", "input_scale", "output_offset", "output_scale")]
    except (AttributeError, KeyError) as error:
        raise SoftformError(
            f"This network is not a Softform perceptron: {error}.", "Export the model again."
        ) from error
    weights: list[Array] = []
    biases: list[Array] = []
    try:
        for place in sorted({int(name.split(".")[1]) for name in state if name.startswith("layers.")}):
            weight, bias = state[f"layers.{place}.weight"], state[f"layers.{place}.bias"]
            if weight.ndim == 2:
                weights.append(weight)
                biases.append(bias)
                continue
            gain = weight / np.sqrt(state[f"layers.{place}.running_var"] + BATCH_NORM_EPSILON)
            weights[-1] = weights[-1] * gain[:, None]
            biases[-1] = (biases[-1] - state[f"layers.{place}.running_mean"]) * gain + bias
        widths = [weights[0].shape[1], *(len(weight) for weight in weights)]
        fit = all(w.shape[1:] == (n,) and len(b) == len(w) for w, b, n in zip(weights, biases, widths, strict=False))
        ends = [len(buffer) for buffer in buffers]
        if not fit or ends != [widths[0]] * 2 + [widths[-1]] * 2:
            raise ValueError(f"its layers of {widths} do not fit together")
    except (KeyError, IndexError, ValueError) as error:
        raise SoftformError(f"The layers of this network are damaged: {error}.", "Export the model again.") from error
    return MlpWeights(weights, biases, activation, *buffers)


def chained(first: MlpWeights, then: MlpWeights) -> MlpWeights:
    """Return one perceptron equal to `then` after `first` (exact); its input is that of `first`.

    Raises:
        SoftformError: If they do not fit together: their activations differ, and neither is affine.
    """
    if first.activation != then.activation and min(len(first.weights), len(then.weights)) > 1:
        raise SoftformError(
            f"Networks of {first.activation} and {then.activation} do not make one.", "Train both with the same."
        )
    matrix = first.output_scale[:, None] * first.weights[-1] / then.input_scale[:, None]
    shift = (first.output_offset + first.output_scale * first.biases[-1] - then.input_offset) / then.input_scale
    return MlpWeights(
        [*first.weights[:-1], then.weights[0] @ matrix, *then.weights[1:]],
        [*first.biases[:-1], then.biases[0] + then.weights[0] @ shift, *then.biases[1:]],
        then.activation if len(first.weights) == 1 else first.activation,
        first.input_offset,
        first.input_scale,
        then.output_offset,
        then.output_scale,
    )


def perceptron_of(weights: Sequence[Array], biases: Sequence[Array], activation: str) -> MlpWeights:
    """Return the perceptron of these layers without normalisation; one layer alone is an affine map."""
    inputs, outputs = weights[0].shape[1], weights[-1].shape[0]
    ends = np.zeros(inputs), np.ones(inputs), np.zeros(outputs), np.ones(outputs)
    return MlpWeights(list(weights), list(biases), activation, *ends)


def mean_of(members: Sequence[MlpWeights]) -> MlpWeights:
    """Return one wide perceptron whose output is the mean of the members' outputs (exact).

    All members need equal depth, activation and normalisations, as members of one ensemble have.
    """
    first, count = members[0], len(members)
    depth = len(first.weights)
    weights = [np.vstack([member.weights[0] for member in members])]
    weights += [block_diag(*(member.weights[place] for member in members)) for place in range(1, depth - 1)]
    weights.append(np.hstack([member.weights[-1] for member in members]) / count)
    biases = [np.concatenate([member.biases[place] for member in members]) for place in range(depth - 1)]
    biases.append(np.mean([member.biases[-1] for member in members], axis=0))
    return replace(first, weights=weights, biases=biases)
