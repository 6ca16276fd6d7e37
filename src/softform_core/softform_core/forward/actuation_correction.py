"""Map a commanded actuation to the simulation's that explains it: a small perceptron before N_fk. Not in paper 000."""

from dataclasses import dataclass, replace

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.play import Play
from softform_core.networks.mlp_weights import MlpWeights, chained, perceptron_of


@dataclass(frozen=True)
class ActuationCorrection:
    """The actuation a' of the simulation that explains a commanded one a.

    It stands for gain and offset of sensors, for how stiff the body is, and for actuators that act on one another.

    Attributes:
        layers: (k,) -> (k,), both in the unit of the actuation.
        play: Comes first where the commands before are known; None if the body has no memory, or it was not learned.
    """

    layers: MlpWeights
    play: Play | None = None

    @classmethod
    def affine(cls, matrix: Array, offset: Array) -> "ActuationCorrection":
        """Return the correction matrix a + offset; (k, k) and (k,)."""
        return cls(perceptron_of([matrix], [offset], "tanh"))

    def effective(self, actuation: Array) -> Array:
        """Return the simulation's actuation (..., k) for commanded ones (..., k), or effective ones where known."""
        return self.layers.forward(actuation)

    def after(self, first: "ActuationCorrection") -> "ActuationCorrection":
        """Return both as one: this one's play, `first`, and this one's layers."""
        return ActuationCorrection(chained(first.layers, self.layers), self.play)

    def before(self, network: MlpWeights) -> MlpWeights:
        """Return the network that takes a in place of a', of the same input range, with this correction before it."""
        both = chained(self.layers, network)
        offset, scale = network.input_offset, network.input_scale
        first = both.weights[0] / both.input_scale
        bias = both.biases[0] + first @ (offset - both.input_offset)
        return replace(
            both,
            weights=[first * scale, *both.weights[1:]],
            biases=[bias, *both.biases[1:]],
            input_offset=offset,
            input_scale=scale,
        )


def gains(gain: Array, offset: Array) -> ActuationCorrection:
    """Return the correction gain * a + offset of each actuation by itself; (k,) each."""
    return ActuationCorrection.affine(np.diag(gain), offset)
