"""Driver and guardian are gone together: what is left is the dead-man in the board's supply."""

import time

import psutil

from softform_interfaces.msg import DriverState
from softform_rig.dead_man_emulation import CUT_SECONDS
from softform_system_tests.fault_injection.driven_stack import DrivenStack
from softform_system_tests.fault_injection.fault_class import FAULT_SECONDS, injects
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import rested

DEAD_MAN = {"name": "relay", "kind": "dead_man", "actuators": [], "channels": []}
"""As a robot's description has it."""

_FROZEN_SECONDS = 5.0
_STARTED_SECONDS = 60.0
_WATCHED_SECONDS = 2.0


@injects(
    "both gone",
    "killed together",
    "frozen together for 5 s",
    "the driver killed, its guardians frozen",
    "all plugs are pulled",
    stack="dead-man",
)
def _gone(stack: DrivenStack, variant: str) -> Outcome:
    """Freeze or kill driver and guardians at the same moment, or pull all plugs."""
    driver, moment = stack.driver, time.monotonic()
    if variant == "all plugs are pulled":
        stack.pull()
        return _cut(stack, moment)
    processes = [driver, *driver.children()]
    if len(processes) < 1 + len(stack.robot.devices):
        return judged("the driver has no guardians")
    for process in processes:
        process.suspend()
    if variant.startswith("frozen"):
        outcome = _cut(stack, moment)
        time.sleep(max(0.0, moment + _FROZEN_SECONDS - time.monotonic()))
        for process in processes:
            process.resume()
        is_latched = wait_for(lambda: stack.state.state == DriverState.FAULT, FAULT_SECONDS)
    else:
        for process in processes if variant == "killed together" else [driver]:
            process.kill()
        outcome = _cut(stack, moment)
        _end(processes)
        stack.start_anew()
        is_latched = wait_for(lambda: stack.state.state == DriverState.FAULT, _STARTED_SECONDS)
    if outcome.safe and not is_latched:
        return judged(f"{outcome.found}, but no fault is latched", at_rest=outcome.at_rest)
    filled = wait_for(lambda: not stack.is_at_rest, _WATCHED_SECONDS) if outcome.safe else False
    return judged(f"{outcome.found}, but then air came again", at_rest=False) if filled else outcome


def _cut(stack: DrivenStack, moment: float) -> Outcome:
    return rested(stack, judged(None, "the supply was cut, the chambers are empty"), moment, moment + CUT_SECONDS)


def _end(processes: list[psutil.Process]) -> None:
    """Kill those that are frozen."""
    for process in processes:
        if process.is_running():
            process.kill()
