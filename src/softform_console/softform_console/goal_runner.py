"""One goal of the pages at a time, carried out by a thread of its own."""

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from softform_client.client import ShapeClient
from softform_console.protocol import FromServer, Notice
from softform_core.errors import SoftformError
from softform_ros.asked import AGAIN, ASKED_SECONDS
from softform_ros.standstill import since_boot

_AGAIN_SECONDS = 0.2
"""Period of repeating that a goal is cancelled, s: it may not have been sent, or not have been accepted yet."""


class GoalRunner:
    """Carries out goals with one client, whose connection is kept.

    Args:
        namespace: ROS namespace of the stack.
        frame: The robot's frame.
        tell: Takes what pages should be told.
        on_end: Called with each goal's end.
        clock: Steady time that goes on while the computer sleeps, s.
    """

    def __init__(
        self,
        namespace: str,
        frame: str,
        tell: Callable[[FromServer], None],
        on_end: Callable[[], None],
        clock: Callable[[], float] = since_boot,
    ) -> None:
        self._clock = clock
        self._namespace, self._frame, self.tell, self._on_end = namespace, frame, tell, on_end
        self._client: Any = None
        self._connecting, self._is_closed = threading.Lock(), False
        self._thread: threading.Thread | None = None
        self._is_unwanted, self._until = threading.Event(), math.inf

    @property
    def is_running(self) -> bool:
        """Whether a goal runs."""
        return self.thread is not None

    @property
    def thread(self) -> threading.Thread | None:
        """Thread of the goal that runs."""
        thread = self._thread
        return thread if thread is not None and thread.is_alive() else None

    def connect(self) -> None:
        """Connect in the background, so that the first goal does not wait for that; one tries again where it failed."""

        def connect() -> None:
            with suppress(SoftformError):
                self._connected()

        threading.Thread(target=connect, name="connect", daemon=True).start()

    def open_client(self, permit: Callable[[], None]) -> Any:
        """Connect a client of all that moves the robot, which asks `permit` right before it sends a goal."""
        client = ShapeClient(self._namespace, self._frame, permit=permit)
        client.connect_moving()
        return client

    def begin(self, work: Callable[[Any], None], about: str, moves: bool = True) -> None:
        """Do work with the client; returns at once. An error is told as a notice `about` a message.

        What `moves` the robot is not begun where connection or target were so long in coming that it is too old.

        Raises:
            SoftformError: If a goal runs.
        """
        if self.is_running:
            raise SoftformError("A goal runs.", "Wait for its end, or cancel it.")
        self._is_unwanted.clear()
        self._until = self._clock() + ASKED_SECONDS if moves else math.inf
        self._thread = threading.Thread(target=self._carry_out, args=(work, about), name="goal", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the goal that runs, or is about to: what was not sent yet is not sent."""
        if self.is_running:
            self._is_unwanted.set()
            threading.Thread(target=self._end, args=(self._thread,), name="cancel", daemon=True).start()

    def close(self) -> None:
        """Cancel what runs and close the connection."""
        self._is_unwanted.set()
        self._is_closed = True
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _end(self, thread: threading.Thread) -> None:
        while thread.is_alive():
            client = self._client
            if client is not None:
                with suppress(SoftformError):  # the node is gone: its goal ends by that, or is asked for again
                    client.cancel()
            thread.join(_AGAIN_SECONDS)

    def _permit(self) -> None:
        if self._is_unwanted.is_set():
            raise SoftformError("It was cancelled before it began.")
        if self._clock() > self._until:
            raise SoftformError("Connection or target were long in coming.", AGAIN)

    def _permit_goal(self) -> None:
        """Permit a goal to be sent; those that work sends after its first one follow from that."""
        self._permit()
        self._until = math.inf

    def _connected(self) -> Any:
        with self._connecting:
            if self._client is None:
                self._client = self.open_client(self._permit_goal)
                if self._is_closed:
                    self.close()
                    raise SoftformError("The console ends.")
            return self._client

    def _carry_out(self, work: Callable[[Any], None], about: str) -> None:
        try:
            client = self._connected()
            self._permit()
            work(client)
        except Exception as error:  # the page must hear of it
            self.tell(Notice(level="error", about=about, text=str(error)))
        finally:
            self._on_end()
