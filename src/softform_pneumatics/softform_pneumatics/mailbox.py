"""What other threads hand over to the driver's: the newest command, and requests that wait for their answer."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_pneumatics.boards.clock import Clock


class CommandBox:
    """The newest command, (k,) Pa, and when it was taken over, s of `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._command: tuple[NDArray[np.float64], float] | None = None

    def put(self, goal: NDArray[np.float64]) -> None:
        """Take a command over; it replaces the one before it."""
        with self._lock:
            self._command = goal, self._clock.now()

    def clear(self) -> None:
        """Forget the command."""
        with self._lock:
            self._command = None

    def look(self) -> tuple[NDArray[np.float64], float] | None:
        """Return the command and its moment; None if there is none."""
        with self._lock:
            return self._command


class Requests:
    """Work that other threads ask of one thread."""

    def __init__(self, clock: Clock) -> None:
        """Hold no request; whoever asks waits by `clock`."""
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[tuple[Callable[[], str], Future[str]]] = []

    @property
    def are_waiting(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def ask(self, work: Callable[[], str], seconds: float, late: bool = True) -> str:
        """Have `work` done by the thread that calls `answer`, and return what it returns.

        Args:
            work: What to do.
            seconds: To wait for it.
            late: Whether it shall be done, too, when nobody waits for it any longer.

        Raises:
            SoftformError: If it does not answer within `seconds`.
        """
        future: Future[str] = Future()
        is_answered = threading.Event()
        future.add_done_callback(lambda _: is_answered.set())
        with self._lock:
            self._waiting.append((work, future))
        if not self._clock.wait(is_answered, seconds):
            if not late:
                future.cancel()
            raise SoftformError("The driver's loop does not answer.", "Cut the pressure supply, then end the driver.")
        return future.result()

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
