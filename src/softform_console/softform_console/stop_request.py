"""A stop of the robot: asked for, acknowledged by the driver, and confirmed once all is measured at rest."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Protocol

from softform_console.protocol import Stopped

CONFIRM_SECONDS = 10.0
"""Time within which all must be measured at rest, s."""

_POLL_SECONDS = 0.02


class DriverPort(Protocol):
    """What a stop needs of the driver."""

    def call_stop(self) -> "Callable[[], tuple[bool, str] | None]":
        """Ask the driver to stop, without waiting; returns what tells its answer once it has come: success, message."""

    def rest(self, since: float) -> bool | None:
        """Return whether the driver was asked to make each actuator safe and each was measured at rest since.

        None if it has said nothing since `since`, s of the steady clock.
        """

    def acknowledged(self, since: float) -> bool:
        """Return whether the driver has said since that each device has acknowledged."""


class StopRequests:
    """Carries out stops one after the other in a thread of its own, which nothing else can hold up.

    Args:
        driver: The driver.
        forget: Called right after the stop was asked for: nothing may be wanted of the robot any more.
        tell: Takes each stage.
    """

    def __init__(self, driver: DriverPort, forget: Callable[[], object], tell: Callable[[Stopped], None]) -> None:
        self._driver, self._forget, self._tell = driver, forget, tell
        self._asked, self._ended = threading.Event(), threading.Condition()
        self._number, self._done, self._result = 0, 0, Stopped(stage="unconfirmed", message="", seconds=0.0)
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="stop", daemon=True)

    def start(self) -> None:
        """Be ready."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._asked.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def ask(self) -> int:
        """Stop the robot, without waiting; returns the number of the request."""
        with self._ended:
            self._number += 1
            number = self._number
        self._asked.set()
        return number

    def wait(self, number: int) -> Stopped:
        """Return how a request ended."""
        with self._ended:
            if not self._ended.wait_for(lambda: self._done >= number, CONFIRM_SECONDS + 2.0):
                return Stopped(stage="unconfirmed", message="The stop was not carried out. " + _HOW, seconds=0.0)
            return self._result

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._is_closed:
                return
            with self._ended:
                number = self._number
            try:
                result = self._carry_out()
            except Exception as error:  # whoever stops must hear
                result = Stopped(stage="unconfirmed", message=f"{error}. {_HOW}", seconds=0.0)
            with contextlib.suppress(Exception):  # the thread must be there for the next stop
                self._tell(result)
            with self._ended:
                self._done, self._result = number, result
                self._ended.notify_all()

    def _carry_out(self) -> Stopped:
        begun = time.monotonic()
        try:
            answer = self._driver.call_stop()
        finally:
            self._forget()
        self._tell(Stopped(stage="asked", message="", seconds=0.0))
        is_acknowledged = False
        while (waited := time.monotonic() - begun) < CONFIRM_SECONDS:
            said = answer()
            if not is_acknowledged and (said is not None or self._driver.acknowledged(begun)):
                is_acknowledged = True
                self._tell(Stopped(stage="acknowledged", message="", seconds=waited))
            if said is not None and not said[0]:
                return Stopped(stage="unconfirmed", message=f"{said[1]} {_HOW}", seconds=waited)
            if said is not None and self._driver.rest(begun):
                return Stopped(stage="confirmed", message=said[1], seconds=waited)
            time.sleep(_POLL_SECONDS)
        told = "The driver has answered; not all is measured at rest." if is_acknowledged else "No driver has answered."
        return Stopped(stage="unconfirmed", message=f"{told} {_HOW}", seconds=time.monotonic() - begun)


_HOW = "Cut the power, or let the air out by hand."
