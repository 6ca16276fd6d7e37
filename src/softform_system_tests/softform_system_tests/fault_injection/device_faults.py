"""Faults of the devices on the virtual rig: board, line and air; motion capture; scanner."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from softform_interfaces.msg import DriverState
from softform_system_tests.fault_injection.fault_class import (
    LATCHED_SECONDS,
    disturbance,
    injects,
    not_latched,
    undisturbed,
    vents,
    wild_target,
)
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import DRIVER, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import rested

STREAM_TIMEOUT = 1.0
"""s without a measurement after which the driver is at fault: its parameter in config/nodes/actuation.yaml."""

_LASTING = 2.5
_SILENCING = ("stall", "mute", "reboot")
_SHOWN_SECONDS = 3.0
_REPORTED_SECONDS = 6.0
_AIR_SECONDS = 7.0
_FOUND_AGAIN_SECONDS = 6.0
"""The driver looks for a lost board once a second, and waits until it has booted."""


@injects(
    "serial",
    "stall",
    "mute",
    "reboot",
    "disconnect",
    "drop_bytes=0.02",
    "corrupt=0.02",
    "merge_lines=0.5",
    "drop_request_bytes=0.02",
    "corrupt_requests=0.02",
    "leak=4:0.5",
    "stuck_valve=2",
    "blocked_tube=6",
    "stuck_sensor=1",
)
def _serial(stack: RigStack, variant: str) -> Outcome:
    """Let the board, the line or the air go wrong."""
    kind = variant.partition("=")[0]
    began = time.monotonic()
    lasting = _AIR_SECONDS if kind in ("leak", "stuck_valve", "blocked_tube", "stuck_sensor") else _LASTING
    stack.watch.inject(variant if kind == "reboot" else f"{variant}+{lasting:g}")
    shown = stack.watch.fault_moment(kind, "shows", began, _SHOWN_SECONDS)
    if shown is None:
        return judged("the rig did not show the fault")
    if kind in _SILENCING:
        outcome = vents(stack, shown, shown + STREAM_TIMEOUT, latches=True, empties=kind != "stall")
        if kind != "stall" or not outcome.safe:
            return outcome
        # What was sent just as the board fell silent comes before the vent.
        vent = stack.wire.first_vent(shown, 0.0)
        wrong = _not_vented_once_back(stack, kind, shown, shown if vent is None else vent.time)
        if wrong:
            return replace(outcome, safe=False, found=f"{outcome.found}, but {wrong}")
        return rested(stack, outcome, shown)
    if kind == "disconnect":
        return _pulled(stack, shown)
    return _disturbed(stack, shown, lasting)


def _pulled(stack: RigStack, shown: float) -> Outcome:
    """Nobody can vent a board without a line: what is due is a latched fault, and no air once it is back."""
    noticed = wait_for(lambda: stack.watch.driver_state == DriverState.FAULT, STREAM_TIMEOUT + LATCHED_SECONDS)
    if not noticed:
        return judged("the driver did not notice")
    wrong = _not_vented_once_back(stack, "disconnect", shown, shown)
    outcome = judged(wrong, "latched, and vented once it was plugged in again")
    return rested(stack, outcome, shown) if outcome.safe else outcome


def _disturbed(stack: RigStack, shown: float, lasting: float) -> Outcome:
    """The driver makes the best of it: it goes on, or vents and latches."""
    counted = _counters(stack)
    wait_for(lambda: stack.watch.driver_left_running_since(shown), lasting)
    if stack.watch.driver_left_running_since(shown):
        vent = stack.wire.first_vent(shown, LATCHED_SECONDS)
        wrong = "no vent request came on the wire" if vent is None else not_latched(stack, vent.time)
        return judged(wrong, f"vented: {stack.watch.driver_reason}")
    wrong = disturbance(stack, shown) or wild_target(stack, shown)
    found = f"held; corrupt lines and rejected requests: {_counters(stack) - counted} more"
    return judged(wrong, found)


def _not_vented_once_back(stack: RigStack, kind: str, shown: float, no_air_since: float) -> str | None:
    """What is wrong with a silent board that comes back with its values; None if it is vented and stays so."""
    back = stack.watch.fault_moment(kind, "ends", shown, 2.0 * _LASTING)
    if back is None:
        return "the rig did not end the fault"
    if stack.wire.first_vent(back, _FOUND_AGAIN_SECONDS) is None:
        return "it was not vented once it was back"
    return not_latched(stack, no_air_since)


def _counters(stack: RigStack) -> int:
    return stack.watch.count(DRIVER, "corrupt lines") + stack.watch.count(DRIVER, "rejected requests")


class CaptureFaults:
    """Faults of a capture device: the robot is held, nothing that is not finite is published, and the node reports it.

    Args:
        counters: Faults as the rig takes them, and values of the node's diagnostics of which one must change, unless
            the node warns.
        node: Node that reads the device.
        captures: Counts what it publishes, to see it come back.
    """

    def __init__(self, counters: Mapping[str, tuple[str, ...]], node: str, captures: Callable[[RigStack], int]) -> None:
        self._node, self._counters, self._captures = node, counters, captures

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """Let the device go wrong for a while."""
        # A late report of an earlier fault must not be taken for a report of this one.
        is_quiet = wait_for(lambda: not stack.watch.is_warning(self._node), _REPORTED_SECONDS)
        before, unfit, began = self._counted(stack, variant), stack.watch.unfit_captures, time.monotonic()
        stack.watch.inject(f"{variant}+{_LASTING:g}")
        if stack.watch.fault_moment(variant.partition("=")[0], "shows", began, _SHOWN_SECONDS) is None:
            return judged("the rig did not show the fault")
        is_reported = wait_for(lambda: self._tells(stack, variant, before, is_quiet), _REPORTED_SECONDS)
        reported = (
            f"{stack.watch.message(self._node)} ({', '.join(self._counted(stack, variant))})" if is_reported else None
        )
        stack.watch.fault_moment(variant.partition("=")[0], "ends", began, 2.0 * _LASTING)
        captured = self._captures(stack)
        comes_back = wait_for(lambda: self._captures(stack) > captured, _REPORTED_SECONDS)
        outcome = undisturbed(stack, began, reported)
        if stack.watch.unfit_captures > unfit:
            return judged("a capture that is not finite was published")
        return outcome if comes_back else judged("no capture came afterwards", hung=True)

    def _counted(self, stack: RigStack, variant: str) -> list[str]:
        return [f"{key}: {stack.watch.value(self._node, key)}" for key in self._counters[variant]]

    def _tells(self, stack: RigStack, variant: str, before: list[str], was_quiet: bool) -> bool:
        warns = was_quiet and stack.watch.is_warning(self._node)
        return warns or self._counted(stack, variant) != before


_MOCAP = {
    "mocap_silent": (),
    "mocap_swap": ("exchanges", "jumps"),
    "mocap_teleport=0.1": ("jumps",),
    "mocap_occlude=1": ("missing_share", "frames_rejected"),
    "mocap_occlude=0.4": ("missing_share",),
}
_SCAN = {
    "scan_truncated=0.5": ("rejected",),
    "scan_nan=0.3": ("rejected", "published"),
    "scan_empty": ("rejected",),
    "scan_partial_write=1": ("published",),  # is still being written, and must be waited for: the published cloud shows
}
injects("mocap", *_MOCAP)(CaptureFaults(_MOCAP, "motion_capture", lambda stack: stack.watch.marker_frames).inject)
injects("scan", *_SCAN)(CaptureFaults(_SCAN, "scanner", lambda stack: stack.watch.clouds).inject)
