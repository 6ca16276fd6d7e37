"""A recording from a program of its own, and the signals that end it."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from softform_core.stop_signals import STOP_SIGNALS, is_ignored
from softform_recording.topic_recorder import TopicRecorder
from softform_ros.background_node import BackgroundNode
from softform_ros.diagnostics import DiagnosticsPublisher


@contextmanager
def background_recording(
    topics: Sequence[str], folder: Path, namespace: str, largest_bag: int = 0, longest_bag: float = 0.0
) -> Iterator[TopicRecorder]:
    """Record topics of a namespace, or absolute ones, while the `with` block lasts; raises as `TopicRecorder`."""
    background = BackgroundNode(f"record_{os.getpid()}", namespace)
    background.open()
    recorder = None
    try:
        recorder = TopicRecorder(background.node, topics, folder, largest_bag, longest_bag)
        DiagnosticsPublisher(background.node, str(folder), recorder.health)
        yield recorder
    finally:
        background.stop()
        if recorder is not None:
            recorder.close()
        background.close()


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Turn the signals that ask a program to end into an event, while the `with` block lasts."""
    stopped = threading.Event()

    def request_stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, request_stop) for number in STOP_SIGNALS if not is_ignored(number)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
