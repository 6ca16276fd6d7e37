"""What the actuators of a running robot did before, as far back as its body may remember; see `forward.play`."""

from collections import deque

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.play import InversePlay, Play
from softform_core.robots import Robot

_STEP = 0.0025
"""Of the range. Smaller motions are noise of a sensor."""
_TURNS = 64
"""A turn is forgotten once a wider one has come; so many in a row that grow narrower are none that a robot does."""


class ActuatorPast:
    """Where measured values turned back. One thread notes, others may ask."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._step = _STEP * (robot.actuator_max - robot.actuator_min)
        self._turns: deque[Array] = deque(maxlen=_TURNS)

    def note(self, values: Array) -> None:
        """Take the newest measured values (k,)."""
        turns = self._turns
        if not turns:
            turns.append(values)
            return
        ahead = self._moved(values - turns[-1])
        if not ahead.any():
            return
        if len(turns) > 1 and (ahead * self._moved(turns[-1] - turns[-2]) >= 0.0).all():
            turns[-1] = values
        else:
            turns.append(values)

    def felt(self, play: Play | None, values: Array) -> Array:
        """The actuation (m,) that is felt at measured values (k,), the newest."""
        actuation = self._robot.nearest_actuation(values)
        turns = list(self._turns)
        if play is None or not turns:
            return actuation
        return play.felt_after(self._robot.nearest_actuation(np.array(turns)), actuation)

    def inverse(self, play: Play | None, values: Array | None) -> InversePlay:
        """What finds the next commands; the newest values are (k,), or are not known: then nothing is corrected."""
        robot = self._robot
        if values is None:
            play, values = None, robot.actuators_of(robot.rest_actuation)
        limits = robot.actuation_min, robot.actuation_max
        return InversePlay(play, self.felt(play, values), robot.nearest_actuation(values), limits)

    def _moved(self, change: Array) -> Array:
        return np.where(np.abs(change) > self._step, change, 0.0)
