"""The captured clouds, of which a verification waits for one that shows the settled robot."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Cloud = TypeVar("Cloud")
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Capture(Generic[Cloud]):
    """One captured cloud.

    Attributes:
        cloud: As it came; it is only unpacked if it is used.
        stamp: When it was captured, s since the epoch.
    """

    cloud: Cloud
    stamp: float


class CaptureWatch(Generic[Cloud]):
    """The newest captured cloud; written by the executor, waited for by the worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing has come yet."""
        self._clock = clock
        self._news = threading.Condition()
        self._newest: Capture[Cloud] | None = None

    def note(self, cloud: Cloud, stamp: float) -> None:
        """Take a `captured_cloud` stamped `stamp` s since the epoch; one that is older than the last is not noted."""
        with self._news:
            if self._newest is None or stamp >= self._newest.stamp:
                self._newest = Capture(cloud, stamp)
                self._news.notify_all()

    def wait_for_one_after(
        self, moment: float, timeout: float, should_stop: Callable[[], bool]
    ) -> Capture[Cloud] | None:
        """Wait for a cloud captured after a moment.

        Args:
            moment: s since the epoch.
            timeout: s.
            should_stop: Ends the wait.

        Returns:
            The capture, or None if the time was up or `should_stop` ended the wait.
        """
        deadline = self._clock() + timeout
        with self._news:
            while not should_stop():
                if self._newest is not None and self._newest.stamp > moment:
                    return self._newest
                if self._clock() > deadline:
                    return None
                self._news.wait(_POLL_SECONDS)
        return None
