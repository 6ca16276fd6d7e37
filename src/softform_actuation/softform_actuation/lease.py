"""Who may command, and what was commanded last: one commander at a time.

A lease is asked for, renewed by commanding, and given up. It ends with whatever makes the robot safe, so that nothing
moves again because a process woke up: whoever wants to go on asks anew.
"""

import threading
import time
from enum import IntEnum

from softform_actuation.clock import Clock
from softform_core.arrays import Array
from softform_core.errors import SoftformError


class LeaseCode(IntEnum):
    """Why a request was refused; the numbers are those of `Lease.srv`."""

    NONE = 0
    HELD = 1
    FAULT = 2
    INACTIVE = 3
    BUSY = 4
    UNKNOWN_LEASE = 5
    INVALID_REQUEST = 6
    INTERNAL_ERROR = 7


class LeaseError(SoftformError):
    """A request about the lease, or a command, of somebody who does not hold it.

    Attributes:
        code: Why.
    """

    def __init__(self, code: LeaseCode, message: str, next_step: str) -> None:
        super().__init__(message, next_step)
        self.code = code


class LeasedCommands:
    """The lease and the newest command of its holder, changed together; any thread may use it.

    Args:
        clock: Of the driver.
        timeout: s after which a lease that has never commanded ends.
    """

    def __init__(self, clock: Clock, timeout: float) -> None:
        """Nobody holds it. Ids grow, also over restarts, so that an old lease is never taken for a new one.

        The first id is given to nobody: by it, whoever held a lease of a driver that was killed learns that it is dead.
        """
        self._clock, self._timeout = clock, timeout
        self._lock = threading.Lock()
        self._lease, self._holder = time.time_ns(), ""
        self._granted = 0.0
        self._end = "It was never asked for."
        self._command: tuple[Array, float] | None = None

    @property
    def holder(self) -> tuple[str, int]:
        """Who holds the lease, empty if nobody does, and its id, or that of the last one."""
        with self._lock:
            return self._holder, self._lease

    def acquire(self, source: str) -> int:
        """Return the id of a new lease.

        Raises:
            LeaseError: If somebody holds it, or the source has no name. Who holds it, has not commanded yet and asks
                again has lost the answer, and gets another lease.
        """
        if not source:
            raise LeaseError(LeaseCode.INVALID_REQUEST, "The request names no source.", "Say who will command.")
        with self._lock:
            if self._holder and (self._holder != source or self._command is not None):
                raise LeaseError(
                    LeaseCode.HELD,
                    f"'{self._holder}' holds the lease.",
                    "Let it end, cancel it or call its 'release'; 'stop' ends any.",
                )
            self._lease, self._holder = self._lease + 1, source
            self._granted, self._command = self._clock.now(), None
            return self._lease

    def put(self, source: str, lease: int, goal: Array) -> None:
        """Take a command (k,) over; it replaces the one before it, and renews the lease.

        Raises:
            LeaseError: If this is not the lease that is held.
        """
        with self._lock:
            self._require(source, lease)
            self._command = goal, self._clock.now()

    def require(self, source: str, lease: int) -> None:
        """Reject whoever does not hold the lease.

        Raises:
            LeaseError: With who holds it, or why this lease ended.
        """
        with self._lock:
            self._require(source, lease)

    def end(self, reason: str) -> bool:
        """End the lease, if there is one, and forget the command; returns whether there was one."""
        with self._lock:
            held, self._holder, self._command = bool(self._holder), "", None
            if held:
                self._end = reason
            return held

    def expire(self, now: float) -> bool:
        """End a lease that has not been used since it was granted; returns whether it ended."""
        with self._lock:
            unused = bool(self._holder) and self._command is None and now - self._granted > self._timeout
        return unused and self.end(f"Nothing was commanded within {self._timeout:g} s.")

    def look(self) -> tuple[Array, float] | None:
        """Return the command (k,) and when it was taken over, s; None if there is none."""
        with self._lock:
            return self._command

    def _require(self, source: str, lease: int) -> None:
        if self._holder and (source, lease) == (self._holder, self._lease):
            return
        if self._holder:
            what = f"'{self._holder}' holds the lease, and '{source}' does not."
        elif lease and lease == self._lease:
            what = f"The lease of '{source}' has ended. {self._end}"
        else:
            what = f"'{source}' commands without a lease."
        raise LeaseError(LeaseCode.UNKNOWN_LEASE, what, "Ask for it by the service 'lease', if that is still meant.")
