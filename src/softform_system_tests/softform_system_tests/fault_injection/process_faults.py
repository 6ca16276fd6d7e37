"""Processes that end: `kill -9` and SIGTERM of every process of the stack."""

import signal
import time
from dataclasses import replace

import psutil

from softform_interfaces.msg import DriverState
from softform_system_tests.fault_injection.collected_frames import frames_lost_while_collecting
from softform_system_tests.fault_injection.commander import RATE
from softform_system_tests.fault_injection.fault_class import disturbance, not_latched, vents
from softform_system_tests.fault_injection.outcome import Outcome
from softform_system_tests.fault_injection.recorded_frames import lost_messages
from softform_system_tests.fault_injection.rig_stack import DRIVER, LIFECYCLE_NODES, MANAGER, RECORDER, RIG, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for

COMMAND_TIMEOUT = 1.0
"""s without a command after which the driver vents: its parameter in config/nodes/actuation.yaml."""

_BYSTANDERS = tuple(name for name in LIFECYCLE_NODES if name not in (DRIVER, RIG))
_ENDED_SECONDS = 10.0
_LAUNCH_ENDED_SECONDS = 20.0
_REPORTED_SECONDS = 10.0
_GUARDED_SECONDS = 3.0
_LOST_BOARD_SECONDS = 3.0
_HEARD_SECONDS = 10.0
"""s in which a driver that was started again is heard: processes find each other late on a busy machine."""


class EndedProcess:
    """Ends one process (a node, `guardian`, `commander`, …) with a signal and judges what the others make of it."""

    def __init__(self, name: str, number: signal.Signals, variants: tuple[str, ...]) -> None:
        self.name, self.variants, self._number = name, variants, number

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """End the process."""
        match variant:
            case "commander":
                moment = stack.silence_commander()
                # Its last command was up to one period old.
                return vents(stack, self.name, variant, moment, moment + COMMAND_TIMEOUT - 1.0 / RATE, latches=False)
            case "guardian":
                return self._end_guardian(stack)
            case "launch" | "bringup_manager":
                return self._end_launch(stack, variant)
            case "actuation":
                return self._end_driver(stack)
            case "rig":
                return self._end_rig(stack)
            case "collector while collecting":
                return frames_lost_while_collecting(stack, self.name, variant, self._end_collector)
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
        outcome = replace(vents(stack, self.name, DRIVER, moment, moment, latches=False), hung=not ended)
        if self._number is not signal.SIGKILL or not outcome.safe:
            return outcome
        # It died without venting in order: the next one must be latched, though the commander goes on. What was on its
        # way to the board when it died comes before the vent.
        vent = stack.wire.first_vent(moment, 0.0)
        stack.replace_what_is_gone()
        stack.keep_commanding()
        wait_for(lambda: stack.watch.driver_states[-1][0] > moment, _HEARD_SECONDS)
        wrong = not_latched(stack, moment if vent is None else vent.time)
        found = f"{outcome.found}, but the next one: {wrong}" if wrong else f"{outcome.found}; the next one is latched"
        return replace(outcome, safe=wrong is None, found=found)

    def _end_guardian(self, stack: RigStack) -> Outcome:
        """The driver needs one: it must start another and go on."""
        driver = stack.required(DRIVER)
        wait_for(lambda: any(map(is_guardian, driver.children())), _GUARDED_SECONDS)  # one that starved is replaced
        before = {child.pid for child in driver.children()}
        moment = time.monotonic()
        for child in driver.children():
            child.send_signal(self._number)
        another = wait_for(lambda: any(is_guardian(c) and c.pid not in before for c in driver.children()), 3.0)
        if self._number is signal.SIGTERM:  # it ignores what ends others
            another = {child.pid for child in driver.children()} == before
        another = another and bool(before)
        wrong = disturbance(stack, moment) or (None if another else "the driver has no guardian")
        return Outcome(self.name, "guardian", wrong is None, wrong or "held; a guardian watches")

    def _end_rig(self, stack: RigStack) -> Outcome:
        """The board is gone and cannot be vented: the driver must say so and latch."""
        moment, ended = self._end(stack.required(RIG))
        latched = wait_for(
            lambda: any(at > moment and state == DriverState.FAULT for at, state, _ in stack.watch.driver_states),
            _LOST_BOARD_SECONDS,
        )
        found = f"the driver says: {stack.watch.driver_reason}" if latched else "the driver did not notice"
        return Outcome(self.name, RIG, latched, found, hung=not ended)

    def _end_launch(self, stack: RigStack, variant: str) -> Outcome:
        """Everything ends, the board vented."""
        if stack.processes.is_patched:
            stack.relaunch()
            stack.bring_back()
        nodes = list(stack.processes.launched().values())
        process = stack.processes.launch if variant == "launch" else stack.required(MANAGER)
        moment, _ = self._end(process, _LAUNCH_ENDED_SECONDS)
        outcome = vents(stack, self.name, variant, moment, moment, latches=False)
        left = not wait_for(lambda: not any(is_running(node) for node in nodes), _LAUNCH_ENDED_SECONDS)
        return replace(outcome, hung=left)

    def _end_bystander(self, stack: RigStack, variant: str) -> Outcome:
        bag, written = stack.bag, stack.watch.written_messages
        moment, ended = self._end(stack.required(variant))
        wrong, reported, lost = None, "its end, by the launch", 0
        if variant == RECORDER:
            lost = lost_messages(bag, written)
        elif wait_for(lambda: variant in stack.watch.bringup_state, _REPORTED_SECONDS):
            reported = stack.watch.bringup_state
        else:
            wrong = wrong or "nobody reported it"
        wrong = disturbance(stack, moment) or wrong
        return Outcome(self.name, variant, wrong is None, wrong or f"held; reported: {reported}", None, not ended, lost)


def kill_9() -> EndedProcess:
    """`kill -9` of every process."""
    variants = ("commander", DRIVER, "guardian", RIG, *_BYSTANDERS, RECORDER, "collector while collecting", MANAGER)
    return EndedProcess("kill -9", signal.SIGKILL, (*variants, "launch"))


def sigterm() -> EndedProcess:
    """SIGTERM to every process."""
    variants = ("commander", DRIVER, "guardian", RIG, *_BYSTANDERS, RECORDER, "collector while collecting", MANAGER)
    return EndedProcess("SIGTERM", signal.SIGTERM, (*variants, "launch"))


def is_guardian(process: psutil.Process) -> bool:
    """Whether it is the driver's guardian."""
    try:
        return any(word.endswith("guardian.py") for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False
