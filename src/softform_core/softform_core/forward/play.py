"""Play operator: what a body feels of its actuators after all that they did before. Not in paper 000.

A material with hysteresis does not follow an actuator within a width of a reversal. The play operator says just that;
Prandtl's and Ishlinskii's model of hysteresis is a sum of such operators, and that of soft actuators is compensated by
its inverse (Kuhnen, European Journal of Control 9, 2003, pp. 407-418). It does not depend on the rate: the sequence of
actuations is enough to know what is felt.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.history import History
from softform_core.forward.memory import Memory

WIDEST = 0.2
"""Largest width of the play that is learned, as a share of half the range."""
REMEMBERED = 4
"""Commands before a captured frame that are stored: a random one is all but forgotten after so many."""
_DEAD_BAND = 0.1
"""Deviation of a target for which the command stays, as a share of the width: noise must not reverse the command,
by twice the width, again and again."""


class PlayState(NamedTuple):
    """Felt and commanded actuations, (m,) each."""

    felt: Array
    commanded: Array


@dataclass(frozen=True)
class Play(Memory):
    """The play operator of each actuation.

    Attributes:
        width: (m,) of half the gap, in the unit of the actuation: what is felt lies at most so far from the command.
    """

    width: Array

    def follow(self, felt: Array, actuation: Array) -> Array:
        """Return the felt actuation (..., m) at an actuation (..., m), where (..., m) was felt before."""
        return np.clip(felt, actuation - self.width, actuation + self.width)

    def felt_after(self, past: Array, actuation: Array) -> Array:
        """Return the felt actuation (..., m) at one (..., m) after others (..., h, m), the oldest first.

        The oldest is taken to be felt as it was commanded.
        """
        felt = past[..., 0, :] if past.shape[-2] else actuation
        for place in range(1, past.shape[-2]):
            felt = self.follow(felt, past[..., place, :])
        return self.follow(felt, actuation)

    def state_after(self, history: History, actuation: Array) -> PlayState:
        """See `Memory.state_after`."""
        return PlayState(self.felt_after(history.sequence, actuation), actuation)

    def advance(self, state: PlayState, commanded: Array) -> PlayState:
        """See `Memory.advance`."""
        return PlayState(self.follow(state.felt, commanded), commanded)

    def felt(self, state: PlayState, commanded: Array) -> Array:
        """See `Memory.felt`."""
        return self.follow(state.felt, commanded)

    def command(self, state: PlayState, wanted: Array) -> Array:
        """Return the inverse play operator; what is commanded stays where what is wanted is felt nearly already."""
        ahead = wanted - state.felt
        moved = wanted + np.copysign(self.width, ahead)
        return np.where(np.abs(ahead) <= _DEAD_BAND * self.width, state.commanded, moved)


def pasts(commands: Array, rest: Array) -> Array:
    """Return the `REMEMBERED` commands before each of (n, k), which begin at rest (k,), oldest first: (n, h, k)."""
    padded = np.concatenate([np.tile(rest, (REMEMBERED, 1)), commands])
    return np.stack([padded[place : place + len(commands)] for place in range(REMEMBERED)], axis=1)
