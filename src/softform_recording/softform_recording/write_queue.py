"""Keeps a slow disk away from the thread that receives: a bounded queue, and a thread that writes what is in it."""

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

from rosbags.interfaces import Qos

from softform_core.errors import SoftformError
from softform_core.heap import give_back_what_is_free
from softform_recording.bag_recorder import BagRecorder

CAPACITY = 64_000_000
"""Most bytes of messages that may wait for the disk: minutes of the stack's topics."""

FLUSH_PERIOD = 1.0
"""Time between two flushes, s; a crash loses no more than this."""


class WriteQueue:
    """Hands messages to a `BagRecorder` in a thread of its own; it never waits for the disk.

    A message for which there is no room, or that comes after recording has failed, is dropped and counted.

    Args:
        recorder: Recorder that takes the messages; not used elsewhere until `close` has returned.
        capacity: Bytes that may wait.

    Attributes:
        failure: Reason why recording ended early; None while it goes well.
        dropped: Messages dropped, by topic.
        received: Messages handed in, by topic.
        waiting_bytes: Bytes that wait for the disk.
    """

    def __init__(self, recorder: BagRecorder, capacity: int = CAPACITY) -> None:
        self._recorder, self._capacity = recorder, capacity
        self.failure: SoftformError | None = None
        self.dropped: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self._waiting: deque[tuple[str, int, bytes]] = deque()
        self.waiting_bytes = 0
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="write_bag", daemon=True)
        self._thread.start()

    @property
    def written(self) -> int:
        """Messages written."""
        return self._recorder.message_count

    def add_topic(self, topic: str, message_type: str, offered_qos: list[Qos], expected_hash: str = "") -> None:
        """Announce a topic, as `BagRecorder.add_topic`; unlike `put`, this may wait for the disk."""
        with self._writing:
            self._recorder.add_topic(topic, message_type, offered_qos, expected_hash)

    def put(self, topic: str, timestamp: int, message: bytes) -> bool:
        """Hand CDR bytes of an announced topic in, with ns since the epoch; false if they are dropped and counted."""
        with self._news:
            self.received[topic] += 1
            if self._ends or self.failure or self.waiting_bytes + len(message) > self._capacity:
                self.dropped[topic] += 1
                return False
            self._waiting.append((topic, timestamp, message))
            self.waiting_bytes += len(message)
            self._news.notify()
        return True

    def close(self) -> None:
        """Write what waits, and close the bag. `failure` says whether that went well."""
        with self._news:
            self._ends = True
            self._news.notify()
        self._thread.join()
        self._recorder.note("softform.dropped", str(self.dropped.total()))
        with self._noted_failure():
            self._recorder.close()

    def _run(self) -> None:
        flush_due = time.monotonic() + FLUSH_PERIOD
        while True:
            with self._news:
                if not self._waiting and not self._ends:
                    self._news.wait(max(0.0, flush_due - time.monotonic()))
                taken, self._waiting = self._waiting, deque()
                ends = self._ends
            with self._noted_failure():  # whatever else fails: a thread that ended would leave a recorder silently dead
                self._write(taken)
            if time.monotonic() >= flush_due:
                with self._noted_failure():
                    with self._writing:
                        self._recorder.note(
                            "softform.dropped", str(self.dropped.total())
                        )  # with each bag that is closed
                        self._recorder.flush()
                    give_back_what_is_free()  # messages and chunks come and go in changing sizes, for hours
                flush_due = time.monotonic() + FLUSH_PERIOD
            if ends and not taken:
                return

    def _write(self, taken: deque[tuple[str, int, bytes]]) -> None:
        for topic, timestamp, message in taken:
            if self.failure is None:
                with self._writing, self._noted_failure():
                    self._recorder.write(topic, timestamp, message)
            else:
                self.dropped[topic] += 1
            with self._news:
                self.waiting_bytes -= len(message)

    @contextmanager
    def _noted_failure(self) -> Iterator[None]:
        try:
            yield
        except SoftformError as error:
            self.failure = self.failure or error
        except Exception as error:  # the thread must live on to count what it drops
            self.failure = self.failure or SoftformError(f"Recording stopped: {type(error).__name__}: {error}")
