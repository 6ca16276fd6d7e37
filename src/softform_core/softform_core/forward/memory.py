"""Memory of a body: how its response to commands depends on what its actuators did before. Not in paper 000.

A model is a function of the *effective* actuation. In a body without memory that is the commanded one. A body that
remembers has a state; what is commanded changes it, and the effective actuation follows from both. Only the memory
itself knows what a state is.

A material with hysteresis does not follow an actuator within a width of a reversal. The play operator says just that;
Prandtl's and Ishlinskii's model of hysteresis is a sum of such operators of several widths, and hysteresis of soft
actuators is compensated by its inverse (Kuhnen, European Journal of Control 9, 2003, pp. 407-418). It does not depend
on the rate: the sequence of actuations is enough to know the effective one. A material that creeps follows a part of
each change later; terms of a Prony series say how much is left of it after a frame. That is how it is learned, for
frames are collected at one pace; a running robot tells how many seconds have passed.
"""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.history import History
from softform_core.robots import Robot

State = Any
"""State of a memory: the command itself, the play of each actuator, a hidden layer, or a simulated body's unknowns."""


FRAME_S = 10.0
"""Time that a frame takes to collect, s: the pace at which what creeps is learned."""


class Memory:
    """The memory of a body that has none, and the base of those that have; actuations are (m,)."""

    def state_after(self, history: History, actuation: Array, stamp: float) -> State:
        """Return the state of a robot with this history that is at an actuation at a moment, s since the epoch."""
        return actuation

    def effective_after(self, past: Array, actuation: Array) -> Array:
        """Return the effective actuation (..., m) at one (..., m) after others (..., h, m), the oldest first.

        NaN stands for what is not known; the oldest that is known is taken to have been in effect as commanded.
        """
        return actuation

    def advance(self, state: State, commanded: Array, seconds: float = FRAME_S) -> State:
        """Return the state so many seconds after the robot was commanded to go straight to an actuation."""
        return commanded

    def now(self, state: State) -> Array:
        """Return the actuation that is in effect in a state: the one that the model takes."""
        return np.asarray(state)

    def effective(self, state: State, commanded: Array, seconds: float = FRAME_S) -> Array:
        """Return the actuation that is in effect so many seconds after a command from a state."""
        return self.now(self.advance(state, commanded, seconds))

    def command(self, state: State, wanted: Array, seconds: float = FRAME_S) -> Array:
        """Return the command that has a wanted actuation in effect after so many seconds; it may exceed the limits."""
        return wanted


NO_MEMORY = Memory()


class Commands:
    """Finds the actuations to command one after the other so that the wanted ones take effect.

    Args:
        memory: Memory of the body's model.
        state: State that the body is in.
        limits: (m,) lowest and highest command. What would take more takes effect in part.

    Attributes:
        state: The state after the commands that were found so far.
        effective: (m,) in effect now.
    """

    def __init__(self, memory: Memory, state: State, limits: tuple[Array, Array]) -> None:
        self._memory, self.state, self._limits = memory, state, limits
        self.effective = memory.now(state)

    @classmethod
    def of(cls, robot: Robot, memory: Memory, history: History, here: Array, stamp: float = 0.0) -> "Commands":
        """Return what finds the next commands of a robot with a history that is at an actuation (m,) at a moment."""
        limits = robot.actuation_min, robot.actuation_max
        return cls(memory, memory.state_after(history, here, stamp), limits)

    def command(self, wanted: Array, seconds: float = FRAME_S) -> Array:
        """Return the actuation (m,) that brings `wanted` (m,) into effect so many seconds after it is commanded.

        The limits come first. The command before is taken to have been held until now.
        """
        commanded = np.clip(self._memory.command(self.state, wanted, seconds), *self._limits)
        self.state = self._memory.advance(self.state, commanded, seconds)
        self.effective = self._memory.now(self.state)
        return commanded


WIDEST = 0.2
"""Largest width of the play of tips that is learned, as a share of half the range."""
_DEAD_BAND = 0.1
"""Deviation of a target for which the command stays, as a share of the lag: noise must not reverse the command, by
twice the lag, again and again."""


_LEAST_SLOPE = 0.1
"""Least that a command on a long way takes effect at once, where the inverse is looked for."""


class Remembered(NamedTuple):
    """State of `PrandtlIshlinskii`.

    Attributes:
        played: (..., j, k) result of each play.
        slow: (..., l, k) what each creeping part has followed to.
        commanded: (..., k) the last command.
    """

    played: Array
    slow: Array
    commanded: Array


@dataclass(frozen=True)
class PrandtlIshlinskii(Memory):
    """Prandtl and Ishlinskii's sum of plays of each actuation, with a Prony series of what creeps.

    With the play operators P_j of width r_j, and slow parts S_l that keep the share `fading` of their distance from
    the actuation a in each frame (`FRAME_S`), in effect is

        a + sum_j weights_j (P_j - a) + sum_l shares_l (S_l - a).

    Attributes:
        widths: (j, k) of half the gap of each play, in the unit of the actuation.
        weights: (j, k); one that is negative makes the body run ahead, as behind a sensor with hysteresis.
        fading: (l,) share of its distance that each slow part keeps while a command is held for a frame.
        shares: (l, k).
    """

    widths: Array
    weights: Array
    fading: Array
    shares: Array

    @classmethod
    def play(cls, width: Array) -> "PrandtlIshlinskii":
        """Return one play (k,): the effective actuation is at most its width away from the command."""
        return cls(width[None], np.ones((1, len(width))), np.empty(0), np.empty((0, len(width))))

    @property
    def lag(self) -> Array:
        """How far the effective actuation stays behind on a long way, (k,), but for what creeps."""
        return np.asarray((self.widths * self.weights).sum(axis=0))

    def at_rest(self, actuation: Array) -> Remembered:
        """Return the state in which an actuation (..., k) is in effect as commanded, and has been for long."""
        lead, k = actuation.shape[:-1], actuation.shape[-1]
        there = actuation[..., None, :]
        played, slow = (np.broadcast_to(there, (*lead, len(each), k)) for each in (self.widths, self.fading))
        return Remembered(played, slow, actuation)

    def _kept(self, seconds: float) -> Array:
        """Return the shares (l, 1) of their distance that slow parts keep in so many seconds."""
        return np.asarray(self.fading[:, None] ** (seconds / FRAME_S))

    def advance(self, state: Remembered, commanded: Array, seconds: float = FRAME_S) -> Remembered:
        """See `Memory.advance`; (..., k)."""
        there = commanded[..., None, :]
        played = np.clip(state.played, there - self.widths, there + self.widths)
        return Remembered(played, there + (state.slow - there) * self._kept(seconds), commanded)

    def now(self, state: Remembered) -> Array:
        """See `Memory.now`; (..., k)."""
        there = state.commanded[..., None, :]
        played, slow = self.weights * (state.played - there), self.shares * (state.slow - there)
        return np.asarray(state.commanded + played.sum(axis=-2) + slow.sum(axis=-2))

    def effective_after(self, past: Array, actuation: Array) -> Array:
        """See `Memory.effective_after`."""
        return self.now(self.after(past, actuation))

    def after(self, past: Array, actuation: Array, seconds: Array | None = None) -> Remembered:
        """Return the state at an actuation (..., k) after others (..., h, k), NaN where they are not known.

        The ways to each but the first took these `seconds` (h,); a frame if they are not given.
        """
        known = [actuation]
        for before in np.moveaxis(past, -2, 0)[::-1]:
            known.insert(0, np.where(np.isnan(before), known[0], before))
        state = self.at_rest(known[0])
        times = np.full(len(known) - 1, FRAME_S) if seconds is None else seconds
        for commanded, passed in zip(known[1:], times.tolist(), strict=True):
            state = self.advance(state, commanded, passed)
        return state

    def state_after(self, history: History, actuation: Array, stamp: float) -> Remembered:
        """See `Memory.state_after`."""
        return self.after(history.sequence, actuation, history.seconds(stamp))

    def command(self, state: Remembered, wanted: Array, seconds: float = FRAME_S) -> Array:
        """Return the inverse, (k,): of what is felt, piecewise linear in the command, between and beyond its corners.

        A command stays where the wanted is nearly in effect.
        """
        ends = (state.played - self.widths, state.played + self.widths, state.commanded[None])
        corners = np.sort(np.concatenate(ends), axis=0)
        reach = np.abs(np.concatenate([corners, state.slow, wanted[None]]) - state.commanded).max(axis=0)
        least = 1.0 - (self.shares * self._kept(seconds)).sum(axis=0)
        far = 2.0 * (reach + np.abs(self.lag)) / np.maximum(least, _LEAST_SLOPE)
        corners = np.concatenate([corners[:1] - far, corners, corners[-1:] + far])
        felt = np.maximum.accumulate(self.effective(state, corners, seconds))
        each = zip(wanted, felt.T, corners.T, strict=True)
        moved = np.array([np.interp(one, *ways) for one, *ways in each])
        ahead = wanted - self.effective(state, state.commanded, seconds)
        return np.where(np.abs(ahead) <= _DEAD_BAND * np.abs(self.lag), state.commanded, moved)


PARTS = tuple(one.name for one in fields(PrandtlIshlinskii))
"""Names of what is kept of a memory in model files, there behind `memory_`."""


@dataclass(frozen=True)
class ActuatorMemory(Memory):
    """A memory of each actuator of a robot that has more of them than degrees of freedom, such as tendons.

    What the actuators have in effect need be under no actuation; the nearest one is taken.

    Attributes:
        memory: Of the actuators (k,), in their unit.
        robot: Converts actuations to values of the actuators, and back.
    """

    memory: PrandtlIshlinskii
    robot: Robot

    def state_after(self, history: History, actuation: Array, stamp: float) -> Remembered:
        """See `Memory.state_after`; the state is that of the actuators."""
        values, seconds = self.robot.actuators_of(actuation), history.seconds(stamp, of_actuators=True)
        return self.memory.after(history.actuator_sequence, values, seconds)

    def effective_after(self, past: Array, actuation: Array) -> Array:
        """See `Memory.effective_after`."""
        values = self.memory.effective_after(self.robot.actuators_of(past), self.robot.actuators_of(actuation))
        return self.robot.actuation_of(values)

    def advance(self, state: Remembered, commanded: Array, seconds: float = FRAME_S) -> Remembered:
        """See `Memory.advance`."""
        return self.memory.advance(state, self.robot.actuators_of(commanded), seconds)

    def now(self, state: Remembered) -> Array:
        """See `Memory.now`."""
        return self.robot.actuation_of(self.memory.now(state))

    def command(self, state: Remembered, wanted: Array, seconds: float = FRAME_S) -> Array:
        """Return the actuation nearest to the inverse of what the actuators remember."""
        return self.robot.actuation_of(self.memory.command(state, self.robot.actuators_of(wanted), seconds))


def play_of(robot: Robot, width: Array) -> Memory:
    """Return the play of these widths: (m,) of degrees of freedom, (k,) of actuators; (0,): that of no memory."""
    if not len(width):
        return NO_MEMORY
    play = PrandtlIshlinskii.play(width)
    return play if len(width) == robot.degrees_of_freedom else ActuatorMemory(play, robot)
