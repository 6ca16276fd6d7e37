"""Find markers of a frame that cannot be where they are said to be, from the frame alone and from those before."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.registration.marker_motion import exchanged_markers, neighbours_motion

Indices = NDArray[np.int64]

_NOISE = 0.003
"""Largest apparent motion of a marker at rest between two frames, m."""
_MANY = 10
"""With fewer markers than this, most of them may be wrong at once."""
_FARTHEST = 1e5
"""Largest valid coordinate, m. Far larger than a room, so that millimetres are reported as such."""


def is_measured(positions: Array) -> NDArray[np.bool_]:
    """Return which positions (M, 3) of a capture system can have been measured, (M,).

    A missing marker is NaN, infinite, at exactly (0, 0, 0) or farther away than any marker, as drivers like it.
    """
    return np.asarray((np.abs(positions) <= _FARTHEST).all(axis=1) & positions.any(axis=1))


@dataclass(frozen=True)
class PlausibilityLimits:
    """Limits of what a marker on a soft robot can do.

    Attributes:
        speed: Fastest motion, m/s.
        departure: Largest difference of its motion from its neighbours', m.
        settle_time: A marker that has jumped is believed again after it stayed there for so long, s.
    """

    speed: float = 2.0
    departure: float = 0.03
    settle_time: float = 1.0


class MarkerPlausibility:
    """Follows M markers from frame to frame.

    Each has a place where it is known to be nearly: where it was believed last, moved since with its believed
    neighbours while it was not. Where most of many markers seem to be wrong it is these places that are out of date:
    the robot moved far between two frames. All are then believed, as in a first frame.
    """

    def __init__(self, markers: int, limits: PlausibilityLimits) -> None:
        self._limits = limits
        self._begin(np.full((markers, 3), np.nan), -np.inf)

    def _begin(self, positions: Array, time: float) -> None:
        markers = len(positions)
        self._place = positions.copy()
        self._believed_at = np.where(np.isfinite(positions).all(axis=1), time, -np.inf)
        self._doubted_since = np.full(markers, np.nan)
        self._doubted_last = np.full(markers, -np.inf)
        self._doubted_place = np.full((markers, 3), np.nan)

    def judge(self, positions: Array, time: float) -> tuple[Indices, Indices]:
        """Return markers (of (M, 3) m at `time`, s) that have jumped, and markers whose labels seem to be exchanged."""
        visible, known = (np.asarray(np.isfinite(part).all(axis=1)) for part in (positions, self._place))
        exchanged = self._exchanged(positions, visible, known)
        displacement = positions - self._place
        displacement[exchanged] = np.nan
        layout = np.where(known[:, None], self._place, np.nan_to_num(positions))
        with_neighbours = neighbours_motion(displacement, layout)
        moved, apart = (np.linalg.norm(d, axis=1) for d in (displacement, displacement - with_neighbours))
        if len(layout) == 1:
            apart[:] = 0.0  # one marker alone has no neighbours
        reach = self._limits.speed * (time - self._believed_at) + _NOISE
        doubtful = visible & known & ((moved > reach) | (apart > self._limits.departure))
        doubtful[exchanged] = False
        doubtful &= ~self._settled(positions, doubtful, time)
        compared, wrong = int((visible & known).sum()), int(doubtful.sum()) + len(exchanged)
        if compared >= _MANY and wrong > compared / 2:
            self._begin(positions, time)
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        believed = visible & ~doubtful
        believed[exchanged] = False
        displacement[~believed] = np.nan  # one that has jumped must not carry those along that are missing beside it
        self._place = np.where(believed[:, None], positions, self._place + neighbours_motion(displacement, layout))
        self._believed_at[believed] = time
        return np.flatnonzero(doubtful), exchanged

    def _exchanged(self, positions: Array, visible: NDArray[np.bool_], known: NDArray[np.bool_]) -> Indices:
        index = np.flatnonzero(known)
        if not (visible & known).any():
            return np.empty(0, dtype=np.int64)
        return index[exchanged_markers(positions[index], self._place[index])]

    def _settled(self, positions: Array, doubtful: NDArray[np.bool_], time: float) -> NDArray[np.bool_]:
        """Return doubtful markers seen in one place for long enough; two glimpses of a reflection do not do."""
        strayed = ~(np.linalg.norm(positions - self._doubted_place, axis=1) <= self._limits.departure)
        missed = time - self._doubted_last > 0.5 * self._limits.settle_time
        begins = doubtful & (np.isnan(self._doubted_since) | strayed | missed)
        self._doubted_last[doubtful] = time
        self._doubted_since[begins] = time
        self._doubted_place[begins] = positions[begins]
        believed = ~doubtful & np.isfinite(positions).all(axis=1)
        self._doubted_since[believed] = np.nan
        return doubtful & (time - self._doubted_since >= self._limits.settle_time) & ~begins
