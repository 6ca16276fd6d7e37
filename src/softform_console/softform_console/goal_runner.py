"""One goal of the pages at a time, carried out by a thread of its own."""

import threading
from collections.abc import Callable

from softform_client.client import ShapeClient
from softform_console.protocol import FromServer, Notice
from softform_core.errors import SoftformError


class GoalRunner:
    """Carries out goals with one client, whose connection is kept.

    Args:
        namespace: ROS namespace of the stack.
        frame: The robot's frame.
        tell: Takes what pages should be told.
        on_end: Called with each goal's end.
    """

    def __init__(
        self, namespace: str, frame: str, tell: Callable[[FromServer], None], on_end: Callable[[], None]
    ) -> None:
        self._namespace, self._frame, self.tell, self._on_end = namespace, frame, tell, on_end
        self._client: ShapeClient | None = None
        self._thread: threading.Thread | None = None
        self._is_unwanted = threading.Event()

    @property
    def is_running(self) -> bool:
        """Whether a goal runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_unwanted(self) -> bool:
        """Whether the goal that runs was cancelled: what comes of it is not to go on to another one."""
        return self._is_unwanted.is_set()

    def begin(self, work: Callable[[ShapeClient], None], about: str) -> None:
        """Do work with the client; returns at once. An error is told as a notice `about` a message.

        Raises:
            SoftformError: If a goal runs.
        """
        if self.is_running:
            raise SoftformError("A goal runs.", "Wait for its end, or cancel it.")
        self._is_unwanted.clear()
        self._thread = threading.Thread(target=self._carry_out, args=(work, about), name="goal", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the goal that runs."""
        if self.is_running:
            self._is_unwanted.set()
            if self._client is not None:
                threading.Thread(target=self._client.cancel, name="cancel", daemon=True).start()

    def close(self) -> None:
        """Cancel what runs and close the connection."""
        self._is_unwanted.set()
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _carry_out(self, work: Callable[[ShapeClient], None], about: str) -> None:
        try:
            if self._client is None:
                client = ShapeClient(self._namespace, self._frame)
                client.connect()
                self._client = client
            work(self._client)
        except Exception as error:  # the page must hear of it
            self.tell(Notice(level="error", about=about, text=str(error)))
        finally:
            self._on_end()
