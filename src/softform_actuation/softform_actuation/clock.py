"""The steady clock that the driver and its boards read, and wait by; tests bring one whose time they step."""

import threading
import time


class Clock:
    """The computer's steady clock, which never goes back. A driver reads and waits by that of its device."""

    def now(self) -> float:
        """Return the moment, s of `time.monotonic`."""
        return time.monotonic()

    def since_boot(self) -> float:
        """Return the time since the computer was started, s; `time.monotonic` stands still while it sleeps."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Return whether `event` is set, after `seconds` at the latest."""
        return event.wait(seconds)
