"""Memory of a body: how its response to commands depends on what its actuators did before.

A model is a function of the *effective* actuation. In a body without memory that is the commanded one. A body that
remembers has a state; what is commanded changes it, and the effective actuation follows from both. Only the memory
itself knows what a state is.
"""

from typing import Any

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
