"""Check that motions are clear of an obstacle: every state, and every surface swept between neighbours.

A point that moves by D from one state to the next is, on the way, within D/2 of where it is in one of them. So nothing
is met between two states whose spares S1 and S2 satisfy

    BENT * D <= S1 + S2

where D is the largest way of any point, the change of its allowance included; edges are halved until it holds.
"""

from collections.abc import Callable

import numpy as np

from softform_core.arrays import Array
from softform_core.planning.clearance import ClearanceGauge
from softform_core.planning.surface_margins import MarginedSurface, SurfaceStates

BENT = 1.1
"""Largest way of a point over the largest straight way of any: at most 1.001 for changes up to `STEP_PART` of the range
on the membrane with its sim-to-real model (`test_planning_sweep.py`)."""

STEP_PART = 0.2
"""Largest difference of neighbouring states, as a share of an actuation's range, whatever their spares."""

SWEEP_MM = 0.25
"""Least spare of a state, mm, below which halving ends."""

_BATCH = 4


class StoppedError(Exception):
    """A stop was requested during a check."""


class MotionChecker:
    """Checks motions of one robot's surface near one obstacle.

    Args:
        surface: The prediction.
        gauge: Distances to the obstacle.
        ranges: (k,), working range of each actuation.
        should_stop: Asked before every batch of states.
    """

    def __init__(
        self, surface: MarginedSurface, gauge: ClearanceGauge, ranges: Array, should_stop: Callable[[], bool]
    ) -> None:
        self._surface, self._gauge, self._ranges, self._should_stop = surface, gauge, ranges, should_stop
        self.states_checked = 0

    def spare(self, actuation: Array) -> Array:
        """Return the room beside the margin at (n, k), (n,) mm; a state may be passed if it is not negative.

        Raises:
            StoppedError: If a stop was requested.
        """
        return self._measured(actuation)[1]

    def is_clear(self, start: Array, end: Array) -> bool:
        """Return whether nothing is met on the straight line between two actuations (k,), ends included."""
        pieces = max(1, int(np.ceil(np.abs((end - start) / self._ranges).max() / STEP_PART)))
        even = np.linspace(0.0, 1.0, pieces + 1)
        # The ends and the middle first: where most motions that are not clear show it.
        missing = even[np.argsort(np.minimum(np.abs(even - 0.5), 0.5 - np.abs(even - 0.5)), kind="stable")]
        measured: list[tuple[Array, Array, Array, Array]] = []
        while len(missing):
            for first in range(0, len(missing), _BATCH):
                batch = missing[first : first + _BATCH]
                states, spare = self._measured(start + batch[:, None] * (end - start))
                if (spare < 0.0).any():
                    return False
                measured.append((batch, states.points, states.allowance, spare + SWEEP_MM))
            places = np.concatenate([batch for batch, *_ in measured])
            order = np.argsort(places)
            places, points, allowance, room = (np.concatenate(parts)[order] for parts in zip(*measured, strict=True))
            way = np.linalg.norm(np.diff(points, axis=0), axis=2) + np.abs(np.diff(allowance, axis=0))
            doubtful = BENT * way.max(axis=1) > room[:-1] + room[1:]
            missing = 0.5 * (places[:-1] + places[1:])[doubtful]  # middles of pieces on which something might be met
        return True

    def _measured(self, actuation: Array) -> tuple[SurfaceStates, Array]:
        if self._should_stop():
            raise StoppedError
        states = self._surface.at(actuation)
        self.states_checked += len(actuation)
        return states, self._gauge.spare(states) - SWEEP_MM
