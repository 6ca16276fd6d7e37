"""Who may command, and what was commanded last: one commander at a time.

A lease is asked for, renewed by commanding, and given up. It ends with whatever makes the robot safe, so that nothing
moves again because a process woke up: whoever wants to go on asks anew. A commander that was asleep before it held a
lease has nothing that could end: so it asks with the epoch that was there when somebody decided that the robot shall
move, and whatever makes the robot safe, each fault and each reset begins another one. What has waited too long in a
queue is rejected all the same: every request that may start motion says when it was made (`Asked`).
"""

import secrets
import threading
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from softform_actuation.clock import Clock
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_ros.asked import AGAIN, require_recent


class LeaseCode(IntEnum):
    """Why a request was rejected; the numbers are those of `Lease.srv`."""

    NONE = 0
    HELD = 1
    FAULT = 2
    INACTIVE = 3
    BUSY = 4
    UNKNOWN_LEASE = 5
    INVALID_REQUEST = 6
    INTERNAL_ERROR = 7
    OUTDATED = 8
    OTHER_ROBOT = 9


@dataclass(frozen=True)
class Asked:
    """When something that may start motion was asked for; see `Asked.msg`.

    Attributes:
        age: How long ago it was asked for, s; NaN if that was not said.
        epoch: The driver's epoch as the asker saw it; 0 if it saw none.
    """

    age: float
    epoch: int


class Grant(NamedTuple):
    """A lease that was given: its public id, and the key that its holder alone knows."""

    lease: int
    key: int


class LeaseError(SoftformError):
    """A request about the lease, or a command, of somebody who does not hold it."""

    def __init__(self, code: LeaseCode, message: str, next_step: str) -> None:
        super().__init__(message, next_step)
        self.code = code


class LeasedCommands:
    """The lease, which must command within `timeout` s, and the newest command of its holder; for any thread."""

    def __init__(self, clock: Clock, timeout: float, fingerprint: str) -> None:
        """Start without a holder, for the robot of that fingerprint.

        The upper half of all ids is this driver's alone, at random; the lower half grows.
        No clock is asked: one that is set back between two drivers must not make an old lease look like a new one. The
        first id is never given: from it, holders of a lease of a killed driver learn that their lease is dead.
        """
        self._clock, self._timeout, self.fingerprint = clock, timeout, fingerprint
        self._lock = threading.Lock()
        self._lease, self._holder, self._client = (1 + secrets.randbelow(2**32 - 1)) << 32, "", 0
        self._key = 0
        self._epoch = self._lease
        self._granted = 0.0
        self._end = "It was never asked for."
        self._command: tuple[Array, float] | None = None

    @property
    def holder(self) -> tuple[str, int]:
        """Holder of the lease, empty without one, and the id of this lease or the last one."""
        with self._lock:
            return self._holder, self._lease

    @property
    def epoch(self) -> int:
        """Its number; numbered as the leases are, so that no other driver has the same."""
        with self._lock:
            return self._epoch

    @property
    def held_for(self) -> float:
        """How long the lease has been held, s; 0 without a holder."""
        with self._lock:
            return self._clock.now() - self._granted if self._holder else 0.0

    def require_asked(self, asked: Asked, what: str) -> None:
        """Reject `what` if it was asked for too long ago, or before something that has ended what was asked for.

        Raises:
            LeaseError: With the reason.
        """
        with self._lock:
            self._require_asked(asked, what)

    def _require_asked(self, asked: Asked, what: str) -> None:
        try:
            require_recent(asked.age, asked.epoch, what)
        except SoftformError as error:
            raise LeaseError(LeaseCode.OUTDATED, error.message, error.next_step) from error
        if asked.epoch != self._epoch:
            raise LeaseError(
                LeaseCode.OUTDATED,
                f"{what} was asked for before the robot was made safe, was at fault, or was reset.",
                AGAIN,
            )

    def acquire(self, source: str, client: int, asked: Asked, fingerprint: str) -> Grant:
        """Return a new lease.

        Args:
            source: Name of the program that will command.
            client: Number that distinguishes the program from others of that name; 0 for none.
            asked: When it was asked for, and in which epoch it was decided to move the robot.
            fingerprint: Of the robot that it will command.

        Raises:
            LeaseError: If somebody holds it, it is for another robot, was asked for too long ago or in another epoch,
                or the source has no name. The program that holds it, has not commanded yet and asks again has lost the
                answer, and gets another lease.
        """
        if not source:
            raise LeaseError(LeaseCode.INVALID_REQUEST, "The request names no source.", "Say who will command.")
        self.require_same_robot(fingerprint)
        with self._lock:
            self._require_asked(asked, f"The lease of '{source}'")
            lost_the_answer = client and (source, client) == (self._holder, self._client) and self._command is None
            if self._holder and not lost_the_answer:
                other = "Another program named " if source == self._holder else ""
                raise LeaseError(
                    LeaseCode.HELD,
                    f"{other}'{self._holder}' holds the lease.",
                    "Let it end or cancel it. ./softform release lets go of what is held, ./softform stop ends any.",
                )
            self._lease, self._holder, self._client = self._lease + 1, source, client
            self._key = 1 + secrets.randbelow(2**64 - 1)
            self._granted, self._command = self._clock.now(), None
            return Grant(self._lease, self._key)

    def require_same_robot(self, fingerprint: str) -> None:
        """Reject who means another robot, or speaks another version of the interfaces.

        Raises:
            LeaseError: If so.
        """
        if fingerprint != self.fingerprint:
            raise LeaseError(
                LeaseCode.OTHER_ROBOT,
                f"The request is for the robot of fingerprint '{fingerprint}', and this driver drives that of "
                f"'{self.fingerprint}'.",
                "Start both with the same description of the robot, from the same version.",
            )

    def put(self, source: str, grant: Grant, goal: Array) -> None:
        """Take a command (k,) over; it replaces the one before it, and renews the lease.

        Raises:
            LeaseError: If this is not the lease that is held.
        """
        with self._lock:
            self._require(source, grant)
            self._command = goal, self._clock.now()

    def require(self, source: str, grant: Grant) -> None:
        """Reject those who do not hold the lease.

        Raises:
            LeaseError: With who holds it, or why this lease ended.
        """
        with self._lock:
            self._require(source, grant)

    def end(self, reason: str) -> bool:
        """End the lease, if there is one, and forget the command; returns whether there was one."""
        with self._lock:
            held, self._holder, self._command = bool(self._holder), "", None
            if held:
                self._end = reason
            return held

    def begin_epoch(self) -> None:
        """From now on nobody gets a lease for what was asked for before."""
        with self._lock:
            self._epoch += 1

    def expire(self, now: float) -> bool:
        """End a lease that has not been used since it was granted; returns whether it ended."""
        with self._lock:
            unused = bool(self._holder) and self._command is None and now - self._granted > self._timeout
        return unused and self.end(f"Nothing was commanded within {self._timeout:g} s.")

    def look(self) -> tuple[Array, float] | None:
        """Return the command (k,) and when it was taken over, s; None if there is none."""
        with self._lock:
            return self._command

    def _require(self, source: str, grant: Grant) -> None:
        if self._holder and (source, *grant) == (self._holder, self._lease, self._key):
            return
        if self._holder:
            what = f"'{self._holder}' holds the lease, and '{source}' does not."
        elif grant.lease and grant.lease == self._lease:
            what = f"The lease of '{source}' has ended. {self._end}"
        else:
            what = f"'{source}' commands without a lease."
        raise LeaseError(LeaseCode.UNKNOWN_LEASE, what, "Ask for it by the service 'lease', if that is still meant.")
