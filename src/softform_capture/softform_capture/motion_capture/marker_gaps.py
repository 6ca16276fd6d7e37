"""How long markers are missing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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
        """Markers that are missing for longer than so many seconds, and for how long, s; the longest first."""
        gap = self._now - self._seen_at
        order = [index for index in np.argsort(-gap) if gap[index] > seconds]
        return {names[index]: float(gap[index]) for index in order}
