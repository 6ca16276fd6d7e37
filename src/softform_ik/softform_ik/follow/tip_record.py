"""Record of where motion capture saw the robot's tip over time."""

import threading
from collections import deque

import numpy as np

from softform_core.arrays import Array

_KEPT = 3000
"""Most frames that are kept; a minute of a fast system."""


class TipRecord:
    """The last captured places of the tip; written by the executor, read by the worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, Array]] = deque(maxlen=_KEPT)

    def note(self, place: Array, stamp: float) -> None:
        """Take a place (3,) m captured `stamp` s since the epoch; one that is not finite was not seen."""
        if np.isfinite(place).all():
            with self._lock:
                self._seen.append((stamp, place))

    def near(self, moment: float, within: float) -> Array:
        """Return the place (3,) m seen nearest to a moment, or NaN if none was seen within so many s of it."""
        with self._lock:
            stamp, place = min(self._seen, key=lambda seen: abs(seen[0] - moment), default=(np.inf, np.empty(0)))
        return place if abs(stamp - moment) <= within else np.full(3, np.nan)
