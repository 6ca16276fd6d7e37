"""A recording from a program of its own, until its time is up or a signal comes."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from softform_recording.bag_recorder import BagRecorder
from softform_recording.health import recording_health
from softform_recording.topic_recorder import RecordingCounts, TopicRecorder, require_topic_names
from softform_ros.background_node import BackgroundNode
from softform_ros.diagnostics import DiagnosticsPublisher

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TELL_PERIOD = 1.0


@dataclass(frozen=True)
class RecordRequest:
    """What to record.

    Attributes:
        topics: Relative to the namespace, or absolute.
        folder: Folder of the bag; must not exist.
        duration: s; None until a signal comes.
        largest_bag: Bytes after which a new bag is begun; 0 for never.
        longest_bag: s after which a new bag is begun; 0 for never.
        namespace: ROS namespace of the stack.
    """

    topics: Sequence[str]
    folder: Path
    duration: float | None
    largest_bag: int
    longest_bag: float
    namespace: str


@dataclass(frozen=True)
class Recorded:
    """What became of it.

    Attributes:
        folders: Bag folders.
        counts: Message counts.
        seconds: Duration of the recording, s.
        awaited: Topics without a publisher.
        rejected: Why other topics were not recorded, by name.
    """

    folders: list[Path]
    counts: RecordingCounts
    seconds: float
    awaited: list[str]
    rejected: dict[str, str]


def record(request: RecordRequest, tell: Callable[[float, RecordingCounts], None]) -> Recorded:
    """Record; the bag is closed at any end. `tell` takes the seconds so far and the counts, once a second.

    Raises:
        SoftformError: If the bag cannot be begun.
    """
    began = time.monotonic()
    with stop_requests() as stopped, background_recording(request) as recorder:
        while not (stopped.is_set() or recorder.counts.failure):
            elapsed = time.monotonic() - began
            left = _TELL_PERIOD if request.duration is None else request.duration - elapsed
            if left <= 0.0:
                break
            stopped.wait(min(left, _TELL_PERIOD))
            tell(time.monotonic() - began, recorder.counts)
    return Recorded(
        recorder.folders, recorder.counts, time.monotonic() - began, sorted(recorder.awaited), dict(recorder.rejected)
    )


@contextmanager
def background_recording(request: RecordRequest) -> Iterator[TopicRecorder]:
    """Record in the background while the `with` block lasts; the bag is closed at any end.

    Raises:
        SoftformError: If the bag cannot be begun, or what is to be recorded has no name that ROS takes.
    """
    background = BackgroundNode(f"record_{os.getpid()}", request.namespace)
    background.open()
    bags = recorder = None
    try:
        require_topic_names(request.topics)
        bags = BagRecorder(request.folder, request.largest_bag, request.longest_bag)
        recorder = TopicRecorder(background.node, request.topics, bags)
        health = partial(recording_health, recorder)
        DiagnosticsPublisher(background.node, str(request.folder), health)
        yield recorder
    finally:
        background.stop()
        if recorder is not None:
            recorder.close()
        elif bags is not None:
            bags.close()
        background.close()


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Turn the signals that ask a program to end into an event, while the `with` block lasts."""
    stopped = threading.Event()

    def request_stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, request_stop) for number in STOP_SIGNALS}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
