"""The time of day jumps under the whole stack: the robot is held, stamps follow, and what is timed stays timed."""

import time

from softform_system_tests.fault_injection.fault_class import FaultClass, disturbance, vents_unheard
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for

_FOLLOWED_WITHIN = 1.0
_WATCHED_SECONDS = 2.0
_CAPTURE_SECONDS = 8.0
_DEAF = ", then the commander dies"


def _inject(stack: RigStack, variant: str) -> Outcome:
    """Set the clocks, and set them right again afterwards: a second jump."""
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


CLOCK_JUMPS = FaultClass(("+3600", "-3600", "+2", "-2", f"+3600{_DEAF}", f"-3600{_DEAF}"), _inject)
"""Seconds by which all clocks of the stack are set, at once.

The stack starts over after each jump: what started before it, such as the commander, goes by another time of day
than what is started after it.
"""


def _lost_captures(stack: RigStack) -> str | None:
    """What captures do not come any more, None if they do."""
    frames, clouds = stack.watch.marker_frames, stack.watch.clouds
    if not wait_for(lambda: stack.watch.marker_frames > frames, _CAPTURE_SECONDS):
        return f"no marker frames come: {stack.watch.message('motion_capture')}"
    if not wait_for(lambda: stack.watch.clouds > clouds, _CAPTURE_SECONDS):
        return f"no scans come: {stack.watch.message('scanner')}"
    return None
