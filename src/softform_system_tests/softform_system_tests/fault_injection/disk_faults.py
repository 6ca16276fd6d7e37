"""A disk that is full for one process: no file of it may grow any more (RLIMIT_FSIZE, which needs no root)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from softform_system_tests.fault_injection.fault_class import FaultClass, disturbance, not_latched
from softform_system_tests.fault_injection.outcome import Outcome, judged, milliseconds
from softform_system_tests.fault_injection.rig_stack import DRIVER, RECORDER, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.stored_data import COLLECTED, Collecting, lost_frames, lost_messages
from softform_system_tests.fault_injection.truth import rested

_REPORTED_SECONDS = 10.0
_ENDED_SECONDS = 40.0
_ANSWER_SECONDS = 10.0
_ENDED_AFTER = 10.0


def _inject(stack: RigStack, variant: str) -> Outcome:
    """Let one process find the disk full."""
    match variant:
        case "recorder":
            return _recorder(stack)
        case "collector while collecting":
            return _collector(stack)
        case _:
            return _driver(stack)


def _recorder(stack: RigStack) -> Outcome:
    """It says so, closes its bag, and what was in it is there."""
    recorder, bag = stack.required(RECORDER), stack.bag
    written, began = stack.watch.written_messages, time.monotonic()
    size = max((each.stat().st_size for each in bag.glob("*.mcap")), default=0)
    with _no_file_grows_beyond(recorder, size):
        is_reported = wait_for(lambda: "Recording stopped" in stack.watch.message(RECORDER), _REPORTED_SECONDS)
        message = stack.watch.message(RECORDER)
    wrong = disturbance(stack, began) or (None if is_reported else "the recorder did not say so")
    recorder.terminate()
    ended = wait_for(lambda: not is_running(recorder), _ENDED_AFTER)
    return judged(wrong, f"held; reported: {message}", hung=not ended, lost_frames=lost_messages(bag, written))


def _driver(stack: RigStack) -> Outcome:
    """A stop that cannot be written down is a stop."""
    with _no_file_grows_beyond(stack.required(DRIVER), 0):
        began = time.monotonic()
        answer = stack.watch.trigger("stop", _ANSWER_SECONDS)
        vent = stack.wire.first_vent(began, 1.0)
        if vent is None or answer is None:
            return judged("no vent request came", hung=answer is None)
        wrong = not_latched(stack, vent.time)
        vent_ms = milliseconds(vent.time, began)
    return rested(stack, judged(wrong, f"vented: {answer.message}", vent_ms), vent.time, began)


def _collector(stack: RigStack) -> Outcome:
    """Its goal ends, the robot is let go of, and the frames up to then are there."""
    with Collecting(stack) as collecting:
        stored, began = collecting.stored, time.monotonic()
        with _no_file_grows_beyond(stack.required("collector"), 0):
            ended = wait_for(lambda: not collecting.is_going_on, _ENDED_SECONDS)
            vent = stack.wire.first_vent(began, 2.0 * _ANSWER_SECONDS) if ended else None
    lost = lost_frames(collecting.store, stack, stored)
    wrong = None if ended else "the goal did not end"
    wrong = wrong or (None if vent is not None else "the robot was not let go of")
    wrong = wrong or ("the disk was not noticed" if collecting.end == COLLECTED else None)
    return judged(wrong, f"vented; the goal ended: {collecting.end}", hung=not ended, lost_frames=lost)


FULL_DISKS = FaultClass(("recorder", "driver, at a stop", "collector while collecting"), _inject)
"""Who cannot write any more."""


@contextmanager
def _no_file_grows_beyond(process: psutil.Process, size: int) -> Iterator[None]:
    """Let writes of a process behind `size` bytes of any file fail for a while."""
    before, hard = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        if is_running(process):
            process.rlimit(psutil.RLIMIT_FSIZE, (before, hard))
