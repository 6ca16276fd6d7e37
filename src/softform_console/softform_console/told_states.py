"""States that pages were told lately: what a page asks for names the one that its user saw, and so how old it is."""

from collections import deque
from collections.abc import Callable

from softform_core.errors import SoftformError
from softform_ros.standstill import STANDSTILL_SECONDS, since_boot


class ToldStates:
    """Stamps of the states that were told; used by one thread.

    Age is taken from this process's own clock at the telling, so neither the page's clock nor a jump of the time of day
    counts; what waits while the line stalls, the page or this process stands still, or the computer sleeps, grows old.

    Args:
        clock: Steady time that goes on while the computer sleeps, s.
    """

    def __init__(self, clock: Callable[[], float] = since_boot) -> None:
        self._clock = clock
        self._told: deque[tuple[float, float]] = deque()

    def note(self, stamp: float) -> None:
        """Note that the state of a stamp is told now."""
        self._told.append((stamp, self._clock()))
        self._forget()

    def require_recent(self, stamp: float) -> None:
        """Reject what was asked for in sight of a state that was told too long ago, or never.

        Raises:
            SoftformError: If it was.
        """
        self._forget()
        if not any(stamp == told for told, _ in self._told):
            raise SoftformError(
                f"This was asked for more than {STANDSTILL_SECONDS:g} s ago, or in sight of a state that old: "
                "page, line or console stood still.",
                "Look at the robot, and ask again if that is still meant.",
            )

    def _forget(self) -> None:
        oldest = self._clock() - STANDSTILL_SECONDS
        while self._told and self._told[0][1] < oldest:
            self._told.popleft()
