"""Markers that are missing, and for how long; names that were not expected."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_LATELY = 5.0
"""Time after which an unseen name is forgotten, s."""
_MOST = 100
"""Most names that are kept: a driver that numbers reflections makes new ones without end."""


class MarkerGaps:
    """Follows the visibility of M markers.

    Attributes:
        count: Gaps so far: a marker that was seen and is missing begins one.
        longest: Longest gap so far, s.
    """

    def __init__(self, markers: int) -> None:
        self.count = 0
        self.longest = 0.0
        self._seen_at = np.full(markers, np.nan)
        self._missing = np.zeros(markers, dtype=bool)
        self._now = 0.0

    def see(self, visible: NDArray[np.bool_], time: float) -> None:
        """Take note of the markers (M,) seen at `time`, s; one that goes back begins anew, with no gap."""
        if time < self._now:
            self._seen_at[:] = np.nan
        first = np.isnan(self._seen_at)
        self.count += int((~visible & ~self._missing & ~first).sum())
        self._seen_at[visible | first] = time
        self._missing, self._now = ~visible, time
        self.longest = max(self.longest, float((time - self._seen_at).max(initial=0.0)))

    def lasting(self, names: Sequence[str], seconds: float) -> dict[str, float]:
        """Return markers that are missing for longer than so many seconds, and for how long, s; the longest first."""
        gap = self._now - self._seen_at
        order = [index for index in np.argsort(-gap) if gap[index] > seconds]
        return {names[index]: float(gap[index]) for index in order}


class MarkerStrangers:
    """Follows names that were not expected, those seen last."""

    def __init__(self) -> None:
        self._seen_at: dict[str, float] = {}

    @property
    def names(self) -> list[str]:
        """Names of unknown markers seen lately, the newest first, at most a hundred."""
        return sorted(self._seen_at, key=lambda name: (-self._seen_at[name], name))

    def see(self, names: Iterable[str], time: float) -> None:
        """Take note of a frame.

        Args:
            names: Unexpected marker names of the frame.
            time: Capture time, s; sightings later than it are dropped, since the clock was set back.
        """
        self._seen_at.update(dict.fromkeys(names, time))
        lately = [name for name in self.names if 0.0 <= time - self._seen_at[name] <= _LATELY]
        self._seen_at = {name: self._seen_at[name] for name in lately[:_MOST]}
