"""Memory of a body: how its response to commands depends on what its actuators did before. Not in paper 000.

A model is a function of the *effective* actuation. In a body without memory that is the commanded one. A body that
remembers has a state; what is commanded changes it, and the effective actuation follows from both. Only the memory
itself knows what a state is.

A material with hysteresis does not follow an actuator within a width of a reversal. The play operator says just that;
Prandtl's and Ishlinskii's model of hysteresis is a sum of such operators, and that of soft actuators is compensated by
its inverse (Kuhnen, European Journal of Control 9, 2003, pp. 407-418). It does not depend on the rate: the sequence of
actuations is enough to know the effective one.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.history import History
from softform_core.robots import Robot

State = Any
"""State of a memory: the play of each actuator, a hidden layer, or the unknowns of a simulated body."""


class Memory:
    """The memory of a body that has none, and the base of those that have; actuations are (m,)."""

    def state_after(self, history: History, actuation: Array) -> State:
        """Return the state of a robot with this history that is at an actuation now."""
        return None

    def effective_after(self, past: Array, actuation: Array) -> Array:
        """Return the effective actuation (..., m) at one (..., m) after others (..., h, m), the oldest first.

        NaN stands for what is not known; the oldest that is known is taken to have been in effect as commanded.
        """
        return actuation

    def advance(self, state: State, commanded: Array) -> State:
        """Return the state once the robot has gone straight to a commanded actuation."""
        return None

    def effective(self, state: State, commanded: Array) -> Array:
        """Return the actuation that the model takes for a commanded one, where the robot was in a state before."""
        return commanded

    def command(self, state: State, wanted: Array) -> Array:
        """Return the command that has a wanted actuation in effect; it may lie beyond the limits."""
        return wanted


NO_MEMORY = Memory()


class Commands:
    """Finds the actuations to command one after the other so that the wanted ones take effect.

    Args:
        memory: Memory of the body's model.
        state: State that the body is in.
        commanded: (m,) commanded now.
        limits: (m,) lowest and highest command. What would take more takes effect in part.

    Attributes:
        state: The state after the commands that were found so far.
        effective: (m,) in effect now.
    """

    def __init__(self, memory: Memory, state: State, commanded: Array, limits: tuple[Array, Array]) -> None:
        self._memory, self.state, self._limits = memory, state, limits
        self.effective = memory.effective(state, commanded)

    @classmethod
    def of(cls, robot: Robot, memory: Memory, history: History, here: Array) -> "Commands":
        """Return what finds the next commands of a robot with a history that is at an actuation (m,) now."""
        limits = robot.actuation_min, robot.actuation_max
        return cls(memory, memory.state_after(history, here), here, limits)

    def command(self, wanted: Array) -> Array:
        """Return the actuation (m,) that brings `wanted` (m,) into effect next, as far as the limits allow."""
        commanded = np.clip(self._memory.command(self.state, wanted), *self._limits)
        self.effective = self._memory.effective(self.state, commanded)
        self.state = self._memory.advance(self.state, commanded)
        return commanded


WIDEST = 0.2
"""Largest width of the play that is learned, as a share of half the range."""
_DEAD_BAND = 0.1
"""Deviation of a target for which the command stays, as a share of the width: noise must not reverse the command,
by twice the width, again and again."""


class PlayState(NamedTuple):
    """Effective and commanded actuations, (m,) each."""

    effective: Array
    commanded: Array


@dataclass(frozen=True)
class Play(Memory):
    """The play operator of each actuation.

    Attributes:
        width: (m,) of half the gap, in the unit of the actuation: the largest distance of the effective actuation
            from the command.
    """

    width: Array

    def follow(self, effective: Array, actuation: Array) -> Array:
        """Return the effective actuation (..., m) at an actuation (..., m), where (..., m) was in effect before."""
        return np.clip(effective, actuation - self.width, actuation + self.width)

    def effective_after(self, past: Array, actuation: Array) -> Array:
        """See `Memory.effective_after`."""
        effective = past[..., 0, :] if past.shape[-2] else actuation
        for commanded in [*np.moveaxis(past, -2, 0)[1:], actuation]:
            effective = self.follow(np.where(np.isnan(effective), commanded, effective), commanded)
        return effective

    def state_after(self, history: History, actuation: Array) -> PlayState:
        """See `Memory.state_after`."""
        return PlayState(self.effective_after(history.sequence, actuation), actuation)

    def advance(self, state: PlayState, commanded: Array) -> PlayState:
        """See `Memory.advance`."""
        return PlayState(self.follow(state.effective, commanded), commanded)

    def effective(self, state: PlayState, commanded: Array) -> Array:
        """See `Memory.effective`."""
        return self.follow(state.effective, commanded)

    def command(self, state: PlayState, wanted: Array) -> Array:
        """Return the inverse play operator; a command stays where the wanted is nearly in effect."""
        ahead = wanted - state.effective
        moved = wanted + np.copysign(self.width, ahead)
        return np.where(np.abs(ahead) <= _DEAD_BAND * self.width, state.commanded, moved)


@dataclass(frozen=True)
class ActuatorPlay(Memory):
    """The play of each actuator of a robot that has more of them than degrees of freedom, such as tendons.

    What the actuators have in effect need be under no actuation; the nearest one is taken.

    Attributes:
        play: Widths (k,) in the unit of the actuators.
        robot: Converts actuations to values of the actuators, and back.
    """

    play: Play
    robot: Robot

    def state_after(self, history: History, actuation: Array) -> PlayState:
        """See `Memory.state_after`; the state is that of the actuators."""
        past = self.robot.actuators_of(history.sequence.reshape(-1, len(actuation)))  # a history of nothing is (0, 0)
        values = self.robot.actuators_of(actuation)
        return PlayState(self.play.effective_after(past, values), values)

    def effective_after(self, past: Array, actuation: Array) -> Array:
        """See `Memory.effective_after`."""
        values = self.play.effective_after(self.robot.actuators_of(past), self.robot.actuators_of(actuation))
        return self.robot.actuation_of(values)

    def advance(self, state: PlayState, commanded: Array) -> PlayState:
        """See `Memory.advance`."""
        return self.play.advance(state, self.robot.actuators_of(commanded))

    def effective(self, state: PlayState, commanded: Array) -> Array:
        """See `Memory.effective`."""
        return self.robot.actuation_of(self.play.effective(state, self.robot.actuators_of(commanded)))

    def command(self, state: PlayState, wanted: Array) -> Array:
        """Return the actuation nearest to the inverse play operators of the actuators."""
        return self.robot.actuation_of(self.play.command(state, self.robot.actuators_of(wanted)))


def play_of(robot: Robot, width: Array) -> Memory:
    """Return the play of these widths: (m,) of degrees of freedom, (k,) of actuators; (0,): that of no memory."""
    if not len(width):
        return NO_MEMORY
    return Play(width) if len(width) == robot.degrees_of_freedom else ActuatorPlay(Play(width), robot)
