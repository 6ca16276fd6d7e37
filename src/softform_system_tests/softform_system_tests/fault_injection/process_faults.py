"""Processes that end, by `kill -9` and SIGTERM, each of the stack; driver or guardian frozen (SIGSTOP)."""

import signal
import time
from dataclasses import replace

import psutil

from softform_actuation.guardian import SILENCE_SECONDS
from softform_interfaces.msg import DriverState
from softform_system_tests.fault_injection.fault_class import (
    also_latched,
    disturbance,
    injects,
    undisturbed,
    vents,
    vents_unheard,
)
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import DRIVER, LIFECYCLE_NODES, MANAGER, RECORDER, RIG, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.stored_data import frames_lost_while_collecting, lost_messages

_BYSTANDERS = tuple(name for name in LIFECYCLE_NODES if name not in (DRIVER, RIG))
_ENDED_SECONDS = 10.0
_LAUNCH_ENDED_SECONDS = 20.0
_REPORTED_SECONDS = 10.0
_GUARDED_SECONDS = 3.0
_LOST_BOARD_SECONDS = 3.0
_HEARD_SECONDS = 10.0
"""s in which a driver that was started again is heard: processes find each other late on a busy machine."""
_NOTICED_SECONDS = 5.0
_FROZEN_SECONDS = 5.0
_DRIVER = "driver for 5 s"


class EndedProcess:
    """Ends one process (a node, `guardian`, `commander`, …) with a signal and judges what the others make of it."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """End the process."""
        match variant:
            case "commander":
                return vents_unheard(stack, stack.silence_commander())
            case "guardian":
                return self._end_guardian(stack)
            case "launch" | "bringup_manager":
                return self._end_launch(stack, variant)
            case "actuation":
                return self._end_driver(stack)
            case "rig":
                return self._end_rig(stack)
            case "collector while collecting":
                return frames_lost_while_collecting(stack, self._end_collector)
            case _:
                return self._end_bystander(stack, variant)

    def _end(self, process: psutil.Process, seconds: float = _ENDED_SECONDS) -> tuple[float, bool]:
        """Send the signal; returns when, and whether the process ended in time."""
        moment = time.monotonic()
        process.send_signal(self._number)
        return moment, wait_for(lambda: not is_running(process), seconds)

    def _end_collector(self, stack: RigStack) -> tuple[float, bool]:
        return self._end(stack.required("collector"))

    def _end_driver(self, stack: RigStack) -> Outcome:
        moment, ended = self._end(stack.required(DRIVER))
        outcome = replace(vents(stack, moment, moment), hung=not ended)
        if self._number is not signal.SIGKILL or not outcome.safe:
            return outcome
        # It died without venting in order: the next one must be latched, though the commander goes on. What was on its
        # way to the board when it died comes before the vent.
        stack.replace_what_is_gone()
        stack.keep_commanding()
        wait_for(lambda: stack.watch.driver_states[-1][0] > moment, _HEARD_SECONDS)
        return also_latched(stack, outcome, moment, "the next one: ", "the next one is latched")

    def _end_guardian(self, stack: RigStack) -> Outcome:
        """The driver needs one: it must start another and go on."""
        driver = stack.required(DRIVER)
        wait_for(lambda: any(map(_is_guardian, driver.children())), _GUARDED_SECONDS)  # one that starved is replaced
        before = {child.pid for child in driver.children()}
        moment = time.monotonic()
        for child in driver.children():
            child.send_signal(self._number)
        another = wait_for(lambda: any(_is_guardian(c) and c.pid not in before for c in driver.children()), 3.0)
        if self._number is signal.SIGTERM:  # it ignores what ends others
            another = {child.pid for child in driver.children()} == before
        another = another and bool(before)
        wrong = disturbance(stack, moment) or (None if another else "the driver has no guardian")
        return judged(wrong, "held; a guardian watches")

    def _end_rig(self, stack: RigStack) -> Outcome:
        """The board is gone and cannot be vented: the driver must say so and latch."""
        moment, ended = self._end(stack.required(RIG))
        latched = wait_for(
            lambda: any(at > moment and state == DriverState.FAULT for at, state, _ in stack.watch.driver_states),
            _LOST_BOARD_SECONDS,
        )
        wrong = None if latched else "the driver did not notice"
        return judged(wrong, f"the driver says: {stack.watch.driver_reason}", hung=not ended)

    def _end_launch(self, stack: RigStack, variant: str) -> Outcome:
        """Everything ends, the board vented."""
        if stack.processes.is_patched:
            stack.relaunch()
            stack.bring_back()
        nodes = list(stack.processes.launched().values())
        process = stack.processes.launch if variant == "launch" else stack.required(MANAGER)
        moment, _ = self._end(process, _LAUNCH_ENDED_SECONDS)
        outcome = vents(stack, moment, moment)
        left = not wait_for(lambda: not any(is_running(node) for node in nodes), _LAUNCH_ENDED_SECONDS)
        return replace(outcome, hung=left)

    def _end_bystander(self, stack: RigStack, variant: str) -> Outcome:
        bag, written = stack.bag, stack.watch.written_messages
        moment, ended = self._end(stack.required(variant))
        lost = lost_messages(bag, written) if variant == RECORDER else 0
        reported = wait_for(lambda: variant in stack.watch.bringup_state, _REPORTED_SECONDS)
        wrong = disturbance(stack, moment) or (None if reported else "nobody reported it")
        return judged(wrong, f"held; reported: {stack.watch.bringup_state}", hung=not ended, lost_frames=lost)


_ENDED = ("commander", DRIVER, "guardian", RIG, *_BYSTANDERS, "collector while collecting", MANAGER, "launch")
injects("kill -9", *_ENDED)(EndedProcess(signal.SIGKILL).inject)
injects("SIGTERM", *_ENDED)(EndedProcess(signal.SIGTERM).inject)


def _is_guardian(process: psutil.Process) -> bool:
    """Whether it is the driver's guardian."""
    try:
        return any(word.endswith("guardian.py") for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


@injects("frozen", "guardian", "guardian, then kill -9 of the driver", _DRIVER)
def _frozen(stack: RigStack, variant: str) -> Outcome:
    """Freeze it."""
    return _frozen_driver(stack) if variant == _DRIVER else _frozen_guardian(stack, variant)


def _frozen_guardian(stack: RigStack, variant: str) -> Outcome:
    """The driver starts another one in time, which does what the frozen one could not."""
    driver, began = stack.required(DRIVER), time.monotonic()
    frozen = _guardians(driver)
    for guardian in frozen:
        guardian.suspend()

    def is_replaced() -> bool:
        return bool(_guardians(driver)) and not any(map(is_running, frozen))

    if not frozen or not wait_for(is_replaced, _NOTICED_SECONDS):
        for guardian in filter(is_running, frozen):
            guardian.resume()
        return judged("the driver did not notice that its guardian is frozen")
    found = f"noticed after {time.monotonic() - began:.1f} s"
    if variant == "guardian":
        return undisturbed(stack, began, found)
    if (wrong := disturbance(stack, began)) is not None:
        return judged(wrong)
    moment = time.monotonic()
    driver.kill()
    outcome = vents(stack, moment, moment)
    return replace(outcome, found=f"{found}; {outcome.found}")


def _frozen_driver(stack: RigStack) -> Outcome:
    """Its guardian vents, and the driver is at fault when it wakes up."""
    driver, moment = stack.required(DRIVER), time.monotonic()
    driver.suspend()
    try:
        outcome = vents(stack, moment, moment + SILENCE_SECONDS)
        time.sleep(max(0.0, moment + _FROZEN_SECONDS - time.monotonic()))
    finally:
        driver.resume()
    return also_latched(stack, outcome, moment, "", "latched when it woke up")


def _guardians(driver: psutil.Process) -> list[psutil.Process]:
    return [child for child in driver.children() if _is_guardian(child) and is_running(child)]
