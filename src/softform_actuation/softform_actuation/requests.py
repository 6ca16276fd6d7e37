"""Requests that other threads make of the driver's, and that wait for their answer."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from softform_actuation.clock import Clock
from softform_core.errors import SoftformError

Result = TypeVar("Result")


class EndedError(SoftformError):
    """The thread that answers has ended."""


class Requests:
    """Work that other threads ask of one thread."""

    def __init__(self, clock: Clock) -> None:
        """Hold no request; callers wait by `clock`."""
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._is_closed = False

    @property
    def are_waiting(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def ask(self, work: Callable[[], Result], seconds: float, late: bool = True) -> Result:
        """Have `work` done by the thread that calls `answer`, if `late` also after `seconds` s; return its result.

        Raises:
            EndedError: If it has ended.
            SoftformError: If it does not answer within `seconds`.
        """
        future: Future[Result] = Future()
        is_answered = threading.Event()
        future.add_done_callback(lambda _: is_answered.set())
        with self._lock:
            if self._is_closed:
                raise EndedError("The driver has ended.", "Configure it again.")
            self._waiting.append((work, future))
        if not self._clock.wait(is_answered, seconds):
            if not late:
                future.cancel()
            raise SoftformError("The driver's loop does not answer.", "Cut supply and power, then end the driver.")
        return future.result()

    def close(self) -> None:
        """Do what still waits, and take nothing any more."""
        with self._lock:
            self._is_closed = True
        self.answer()

    def answer(self) -> None:
        """Do what is asked, one after the other; what a request raises goes to who asked.

        What waits behind the one that is being done counts in `are_waiting`, and may interrupt it.
        """
        while True:
            with self._lock:
                if not self._waiting:
                    return
                work, future = self._waiting.pop(0)
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)
