"""What is missing of a stream of marker frames: late and lost frames, markers and for how long; names not expected."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError

_CLOCK_STEP = 1.0
"""Age from which an older frame means that a clock was set back, s; a younger one is late."""
_RESTART = 10_000
"""Leap of frame numbers from which the system counts anew instead of having lost frames."""


class FrameOrder:
    """Watches times and numbers of frames.

    Attributes:
        lost: Frames that the numbering shows to be missing.
        clock_steps: Number of times the system's clock was set back.
    """

    def __init__(self) -> None:
        self.lost = self.clock_steps = 0
        self._time = -float("inf")
        self._number: int | None = None
        self._earlier: float | None = None  # time of a frame that may be the first of a clock that was set back

    def accept(self, time: float, number: int) -> bool:
        """Take note of a frame with its capture time, s, and its number.

        Returns:
            Whether the clock was set back before it: then nothing that was reckoned from earlier times holds.

        Raises:
            SoftformError: If it is late, comes twice, or is the first one that seems to be far too old.
        """
        stepped = False
        if not time > self._time:
            stepped = self._earlier is not None and 0.0 < time - self._earlier <= _CLOCK_STEP
            if not stepped:
                self._earlier = time if time < self._time - _CLOCK_STEP else None
                raise SoftformError(
                    f"Frame {number} was captured no later than the one before.",
                    "Check the clock of the capture system.",
                )
            self.clock_steps += 1
        elif self._number is not None and 1 < number - self._number <= _RESTART:
            self.lost += number - self._number - 1
        self._time, self._number, self._earlier = time, number, None
        return stepped


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
