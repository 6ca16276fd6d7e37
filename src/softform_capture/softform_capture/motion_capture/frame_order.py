"""The order of a system's frames: late ones are rejected, lost ones counted, a clock that was set back is followed."""

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
