"""What a body feels of its actuators after all that they did before: the play operator. Not in paper 000.

A material with hysteresis does not follow an actuator within a width of a reversal. The play operator says just that;
Prandtl's and Ishlinskii's model of hysteresis is a sum of such operators, and that of soft actuators is compensated by
its inverse (Kuhnen, European Journal of Control 9, 2003, pp. 407-418). It does not depend on the rate: the sequence of
commanded actuations is enough to know what is felt.
"""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array

_DEAD_BAND = 0.1
"""Of the width. So near, the command stays: noise of a target must not reverse it, by twice the width, again and
again."""


@dataclass(frozen=True)
class Play:
    """The play operator of each actuation.

    Attributes:
        width: (k,) of half the gap, in the unit of the actuation: what is felt lies at most so far from the command.
    """

    width: Array

    def felt(self, before: Array, actuation: Array) -> Array:
        """What is felt (..., k) at an actuation (..., k), where (..., k) was felt before."""
        return np.clip(before, actuation - self.width, actuation + self.width)

    def felt_after(self, past: Array, actuation: Array) -> Array:
        """What is felt (..., k) at an actuation (..., k) after others (..., h, k), the oldest first.

        The oldest is taken to be felt as it was commanded; a few commands later that is forgotten.
        """
        felt = past[..., 0, :]
        for place in range(1, past.shape[-2]):
            felt = self.felt(felt, past[..., place, :])
        return self.felt(felt, actuation)

    def command(self, before: Array, wanted: Array, held: Array) -> Array:
        """The actuation (k,) at which `wanted` (k,) is felt: the inverse play operator.

        Args:
            before: (k,) felt now.
            wanted: (k,) to be felt. Where it is felt already, but for a tenth of the width, the command stays.
            held: (k,) commanded now.
        """
        is_felt = np.abs(wanted - before) <= _DEAD_BAND * self.width
        return np.where(
            is_felt,
            np.clip(held, before - self.width, before + self.width),
            wanted + self.width * np.sign(wanted - before),
        )
