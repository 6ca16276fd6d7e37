"""The way of approach of a closed loop: every round comes to its plan from the side that the first round came from.

A body that remembers does not follow an actuator that turns back, so a small correction backwards would be lost, or
change the shape by something else than was asked for. Whoever comes from the same side each time finds the body behind
its actuators by as much as at the last capture, whatever its law; the correction of the next round contains it.
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import Robot

RUN_UP = 0.15
"""Way back before an approach, as a share of the range: what follows after it has forgotten the turn."""
_SAME = 0.002
"""Share of the range by which a command may turn back without a run-up: regulation leaves as much."""


class Approach:
    """The sides from which the actuations of one robot are approached, (m,): 1 upwards, -1 downwards, 0 not yet."""

    def __init__(self, robot: Robot) -> None:
        self._low, self._high = robot.actuation_min, robot.actuation_max
        self._sides = np.zeros(len(self._low))

    def begins_at(self, here: Array, commanded: Array) -> Array | None:
        """Return where to go before a command (m,) from here (m,); None where no actuation would turn back.

        Those that would come from the other side go back beyond the command, as far as the limits allow; the others
        stay.
        """
        way, span = commanded - here, self._high - self._low
        turns = way * self._sides < -_SAME * span
        moves = np.abs(way) > _SAME * span  # what merely differs by noise has no side yet
        self._sides = np.where((self._sides == 0.0) & moves, np.sign(way), self._sides)
        if not turns.any():
            return None
        back = np.clip(commanded - self._sides * RUN_UP * span, self._low, self._high)
        return np.where(turns, back, here)
