"""Which actuation of the simulation explains a commanded one: sensors' gain and offset, and how stiff the body is."""

from dataclasses import dataclass, replace

from softform_core.arrays import Array
from softform_core.networks.mlp_weights import MlpWeights


@dataclass(frozen=True)
class ActuationCorrection:
    """a' = gain * a + offset of each degree of freedom.

    Attributes:
        gain: (k,) positive.
        offset: (k,) in the unit of the actuation.
    """

    gain: Array
    offset: Array

    def after(self, first: "ActuationCorrection") -> "ActuationCorrection":
        """Both as one: `first`, then this one."""
        return ActuationCorrection(self.gain * first.gain, self.gain * first.offset + self.offset)

    def before(self, network: MlpWeights) -> MlpWeights:
        """The network that takes a in place of a', by its normalisation: it costs nothing."""
        offset, scale = (network.input_offset - self.offset) / self.gain, network.input_scale / self.gain
        return replace(network, input_offset=offset, input_scale=scale)
