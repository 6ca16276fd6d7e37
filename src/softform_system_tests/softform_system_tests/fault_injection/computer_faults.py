"""Faults of the computer below the whole stack: the time of day jumps, the disk is full."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from softform_system_tests.fault_injection.fault_class import disturbance, injects, not_latched, vents_unheard
from softform_system_tests.fault_injection.outcome import Outcome, judged, milliseconds
from softform_system_tests.fault_injection.rig_stack import DRIVER, RECORDER, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.stored_data import COLLECTED, Collecting, lost_frames, lost_messages
from softform_system_tests.fault_injection.truth import rested

_FOLLOWED_WITHIN = 1.0
_WATCHED_SECONDS = 2.0
_CAPTURE_SECONDS = 8.0
_DEAF = ", then the commander dies"


@injects("clock jump", "+3600", "-3600", "+2", "-2", f"+3600{_DEAF}", f"-3600{_DEAF}")
def _inject(stack: RigStack, variant: str) -> Outcome:
    """Set all clocks of the stack by so many seconds at once, and right again afterwards: a second jump.

    The stack starts over after each jump: what started before it, such as the commander, goes by another time of day
    than what is started after it.
    """
    seconds = float(variant.removesuffix(_DEAF))
    try:
        return _there_and_back(stack, variant, seconds)
    finally:
        stack.start_over()


def _there_and_back(stack: RigStack, variant: str, seconds: float) -> Outcome:
    began = time.monotonic()
    stack.clock.shift(seconds)
    try:
        outcome = _judge(stack, variant, seconds, began)
        if not outcome.safe or variant.endswith(_DEAF):
            return outcome
    finally:
        stack.clock.shift(0.0)
    time.sleep(_WATCHED_SECONDS)
    wrong = disturbance(stack, began) or _lost_captures(stack)
    return outcome if wrong is None else judged(f"set right again: {wrong}")


def _judge(stack: RigStack, variant: str, seconds: float, began: float) -> Outcome:
    if not wait_for(lambda: abs(stack.watch.stamp_ahead - seconds) < _FOLLOWED_WITHIN, _WATCHED_SECONDS):
        return judged(f"stamps of the values are {stack.watch.stamp_ahead:.1f} s ahead")
    if variant.endswith(_DEAF):
        return vents_unheard(stack, stack.silence_commander())
    time.sleep(_WATCHED_SECONDS)
    wrong = disturbance(stack, began) or _lost_captures(stack)
    return judged(wrong, "held; stamps follow, captures go on")


def _lost_captures(stack: RigStack) -> str | None:
    """What captures do not come any more, None if they do."""
    frames, clouds = stack.watch.marker_frames, stack.watch.clouds
    if not wait_for(lambda: stack.watch.marker_frames > frames, _CAPTURE_SECONDS):
        return f"no marker frames come: {stack.watch.message('motion_capture')}"
    if not wait_for(lambda: stack.watch.clouds > clouds, _CAPTURE_SECONDS):
        return f"no scans come: {stack.watch.message('scanner')}"
    return None


_REPORTED_SECONDS = 10.0
_ENDED_SECONDS = 40.0
_ANSWER_SECONDS = 10.0
_ENDED_AFTER = 10.0


@injects("disk full", "recorder", "driver, at a stop", "collector while collecting")
def _fill_a_disk(stack: RigStack, variant: str) -> Outcome:
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
