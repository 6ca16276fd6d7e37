"""A thread that does one thing again and again, on deadlines."""

import threading
import time
from collections.abc import Callable


class PeriodicThread:
    """Calls `act` every `period` s; a call that takes longer delays the next one and is not made up for.

    Attributes:
        failure: Reason why it has ended by itself, or None.
    """

    def __init__(self, name: str, period: float, act: Callable[[], object]) -> None:
        self.failure: str | None = None  # why it has ended by itself
        self._name, self._period, self._act = name, period, act
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin at once."""
        self._stop = threading.Event()  # a thread that outlived its join keeps the old one and ends by it
        self._thread = threading.Thread(target=self._run, args=(self._stop,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self, patience: float = 10.0) -> None:
        """End after the call in progress, waited for at most `patience` s; harmless if not started."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)
            self._thread = None

    def _run(self, stop: threading.Event) -> None:
        deadline = time.monotonic()
        try:
            while not stop.is_set():
                self._act()
                deadline = max(deadline + self._period, time.monotonic())
                stop.wait(deadline - time.monotonic())
        except Exception as error:  # a dead thread must be seen by the node, not only in a traceback
            self.failure = f"The {self._name} stopped: {type(error).__name__}: {error}"
            raise
