"""The captured clouds, of which a verification waits for one that shows the settled robot."""

import dataclasses
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from softform_ros.conversions import seconds_from_stamp

Cloud = TypeVar("Cloud")
_POLL_SECONDS = 0.05


class Moment(Protocol):
    """Time at which something was measured or captured."""

    @property
    def stamp(self) -> float:
        """Time of the measurement, s since the epoch."""

    @property
    def received(self) -> float:
        """Time of receipt on the steady clock, s."""


@dataclass(frozen=True)
class Capture(Generic[Cloud]):
    """A captured cloud, unpacked when it is used: captured at `stamp`, s since the epoch; `received` is steady."""

    cloud: Cloud
    stamp: float
    received: float


class CaptureWatch(Generic[Cloud]):
    """The newest captured cloud; written by the executor, waited for by the worker.

    Args:
        clock: Steady time, s.
        wall_clock: s since the epoch, the clock of stamps.
        read: Makes what is handed out of what was received. The worker calls it, for the cloud that is used alone: at a
            hundred marker frames a second the executor would do nothing else.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        read: Callable[[Cloud], Cloud] = lambda cloud: cloud,
    ) -> None:
        self._clock, self._wall_clock, self._read = clock, wall_clock, read
        self._news = threading.Condition()
        self._newest: Capture[Cloud] | None = None

    def note(self, cloud: Cloud, stamp: float) -> None:
        """Take a `captured_cloud` stamped `stamp` s since the epoch.

        One that is older than the last is not noted, unless that is stamped later than now: the clock was set back.
        """
        with self._news:
            newest = self._newest
            if newest is None or stamp >= newest.stamp or newest.stamp > self._wall_clock():
                self._newest = Capture(cloud, stamp, self._clock())
                self._news.notify_all()

    def take(self, message: Any) -> None:
        """Take a captured message, by the stamp of its header; for subscriptions."""
        self.note(message, seconds_from_stamp(message.header.stamp))

    def wait_for_one_after(
        self, moment: Moment, timeout: float, should_stop: Callable[[], bool]
    ) -> Capture[Cloud] | None:
        """Wait for a cloud captured after a moment.

        Args:
            moment: Clouds received by then do not count, whatever their stamps say: the clock of stamps may have
                been set since.
            timeout: Time limit, s.
            should_stop: Ends the wait.

        Returns:
            The capture, or None if the time was up or `should_stop` ended the wait.
        """
        deadline = self._clock() + timeout
        with self._news:
            while not should_stop():
                newest = self._newest
                if newest is not None and newest.stamp > moment.stamp and newest.received > moment.received:
                    break
                if self._clock() > deadline:
                    return None
                self._news.wait(_POLL_SECONDS)
            else:
                return None
        return dataclasses.replace(newest, cloud=self._read(newest.cloud))
