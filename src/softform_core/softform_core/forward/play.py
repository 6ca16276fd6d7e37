"""What a body feels of its actuators after all that they did before: the play operator. Not in paper 000.

A material with hysteresis does not follow an actuator within a width of a reversal. The play operator says just that;
Prandtl's and Ishlinskii's model of hysteresis is a sum of such operators, and that of soft actuators is compensated by
its inverse (Kuhnen, European Journal of Control 9, 2003, pp. 407-418). It does not depend on the rate: the sequence of
actuations is enough to know what is felt.
"""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array

WIDEST = 0.2
"""Of half the range: no play that is learned is wider."""
REMEMBERED = 4
"""Commands before a captured frame that are known of it: a random one is all but forgotten after so many."""
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

        The oldest is taken to be felt as it was commanded.
        """
        felt = past[..., 0, :] if past.shape[-2] else actuation
        for place in range(1, past.shape[-2]):
            felt = self.felt(felt, past[..., place, :])
        return self.felt(felt, actuation)


class InversePlay:
    """Finds the actuations to command one after the other so that what is wanted is felt: the inverse play operator.

    Args:
        play: The body's; None if it feels what is commanded.
        felt: (k,) felt now.
        commanded: (k,) commanded now.
        limits: (k,) lowest and highest command. What would take more is not felt in full.
    """

    def __init__(self, play: Play | None, felt: Array, commanded: Array, limits: tuple[Array, Array]) -> None:
        self._play, self._limits = play, limits
        self.felt, self._commanded = felt, commanded

    def command(self, wanted: Array) -> Array:
        """The actuation (k,) at which `wanted` (k,) is felt next; as it was where that is felt nearly already."""
        if self._play is None:
            self.felt = self._commanded = wanted
            return wanted
        width, ahead = self._play.width, wanted - self.felt
        moved = np.clip(wanted + np.copysign(width, ahead), *self._limits)
        self._commanded = np.where(np.abs(ahead) <= _DEAD_BAND * width, self._commanded, moved)
        self.felt = self._play.felt(self.felt, self._commanded)
        return self._commanded


def pasts(commands: Array, rest: Array) -> Array:
    """The `REMEMBERED` commands before each of a sequence (n, k) that begins at rest (k,), oldest first: (n, h, k)."""
    padded = np.concatenate([np.tile(rest, (REMEMBERED, 1)), commands])
    return np.stack([padded[place : place + len(commands)] for place in range(REMEMBERED)], axis=1)
