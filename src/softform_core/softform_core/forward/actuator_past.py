"""What the actuators of a running robot did before, as far back as its body may remember; see `forward.play`."""

from math import exp

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.play import WIDEST, InversePlay, Play
from softform_core.robots import Robot

_SMOOTHING_S = 0.2
"""Time constant of the mean of measured values: peaks of their noise are no turns."""


class ActuatorPast:
    """Where each actuation has turned back, of measured values. One thread notes, others may ask.

    Turns that every play has forgotten are dropped: those of a loop that was closed by a wider one (Madelung's rules),
    and all before a way of twice the widest play.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._limits = robot.actuation_min, robot.actuation_max
        self._forgets = (WIDEST * (robot.actuation_max - robot.actuation_min)).tolist()
        self._turns: tuple[tuple[float, ...], ...] = ()
        self._mean, self._stamp = np.empty(0), 0.0

    def note(self, values: Array, stamp: float) -> None:
        """Take the newest measured values (k,), of a moment in s."""
        passed, self._stamp = stamp - self._stamp, stamp
        if not self._turns:
            self._mean = values
            self._turns = tuple((value,) for value in self._nearest(values).tolist())
            return
        if passed < 0.0:  # the clock was set back
            passed = _SMOOTHING_S
        self._mean = values + (self._mean - values) * exp(-passed / _SMOOTHING_S)
        each = zip(self._turns, self._nearest(self._mean).tolist(), self._forgets, strict=True)
        self._turns = tuple(_turned(turns, value, forgets) for turns, value, forgets in each)

    def felt(self, play: Play | None, values: Array) -> Array:
        """The actuation (m,) that is felt at measured values (k,), the newest."""
        actuation, past = self._nearest(values), self._turns
        if play is None or not past:
            return actuation
        longest = max(len(turns) for turns in past)
        # One that has turned less often has stayed where it was.
        turns = np.array([(*turns, *turns[-1:] * (longest - len(turns))) for turns in past])
        return play.felt_after(turns.T, actuation)

    def inverse(self, play: Play | None, values: Array | None) -> InversePlay:
        """What finds the next commands; the newest values are (k,), or are not known: then nothing is corrected."""
        robot = self._robot
        if values is None:
            play, values = None, robot.actuators_of(robot.rest_actuation)
        return InversePlay(play, self.felt(play, values), self._nearest(values), self._limits)

    def _nearest(self, values: Array) -> Array:
        """`Robot.nearest_actuation`, without asking for the limits at each of fifty measurements a second."""
        return np.clip(self._robot.actuation_of(values), *self._limits)


def _turned(turns: tuple[float, ...], value: float, forgets: float) -> tuple[float, ...]:
    """The turns of one actuation, the newest value last."""
    if len(turns) > 1 and min(turns[-2], value) <= turns[-1] <= max(turns[-2], value):
        turns = turns[:-1]
    turns = (*turns, value)
    while len(turns) > 3:
        outer, before, inner, newest = turns[-4:]
        if not abs(before - inner) <= min(abs(outer - before), abs(inner - newest)):
            break
        turns = (*turns[:-3], newest)
    return turns[-2:] if len(turns) > 1 and abs(turns[-1] - turns[-2]) >= forgets else turns
