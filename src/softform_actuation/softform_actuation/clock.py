"""The steady clock that the driver and its boards read, and wait by; tests bring one whose time they step."""

import threading
import time
from collections.abc import Callable


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

    def start(self, work: Callable[[], object], name: str) -> threading.Thread:
        """Start a daemon thread that waits by this clock: a program that forgets to end it ends all the same."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread
