"""A driver that is stopped or ended while it starts, and one that starts elsewhere: nothing inflates by that."""

import threading
import time
from dataclasses import replace

import psutil

from softform_bringup.lifecycle_manager import State, Step
from softform_core.errors import SoftformError
from softform_system_tests.fault_injection.fault_class import also_latched, injects, not_latched, vents
from softform_system_tests.fault_injection.held_shape_faults import stays_vented
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import DRIVER, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import inflates

_ANSWER_SECONDS = 10.0
_ENDED_SECONDS = 10.0
_START_SECONDS = 30.0
_TEST_SECONDS = 15.0
_OPENED_SECONDS = 5.0


@injects("start", "stop in configure", "SIGTERM in configure", "stop in activate", "SIGTERM in activate")
def _interrupted_start(stack: RigStack, variant: str) -> Outcome:
    """Start the driver anew, and interrupt a transition, while a commander asks on and on."""
    how, _, transition = variant.partition(" in ")
    end_driver(stack)
    began = time.monotonic()
    stack.processes.replace(DRIVER)
    _reach(stack, State.UNCONFIGURED)
    if transition == "configure":
        return _configure(stack, how, began)
    if not stack.life_cycle(DRIVER).change(Step.CONFIGURE, _START_SECONDS):
        raise SoftformError("The driver could not be configured.", "See the launch's log.")
    return _activate(stack, how, began)


def _configure(stack: RigStack, how: str, began: float) -> Outcome:
    """Nothing moves; a stop is latched, and what was asked to end ends."""
    asked = _change(stack, Step.CONFIGURE)
    stack.wire.first(lambda event: event.side == "host", began, _OPENED_SECONDS)  # the port is open, it shakes hands
    driver, moment = stack.required(DRIVER), time.monotonic()
    hung = _interrupt(stack, how, driver)
    asked.join(_START_SECONDS)
    took = time.monotonic() - moment
    wrong = None
    if how == "stop" and not hung:
        stack.bring_up(DRIVER)
        wrong = not_latched(stack, began)
    if (inflated := stack.wire.first(inflates, began, 1.0)) is not None:
        wrong = f"{inflated.text!r} came on the wire"
    return judged(wrong, f"nothing moved; ended after {took:.1f} s", hung=hung)


def _activate(stack: RigStack, how: str, began: float) -> Outcome:
    """The test of the chambers ends, vented."""
    _change(stack, Step.ACTIVATE)
    if stack.wire.first(inflates, began, _TEST_SECONDS) is None:
        return judged("no chamber was tested", hung=True)
    driver, moment = stack.required(DRIVER), time.monotonic()
    interruption = threading.Thread(target=lambda: hung.append(_interrupt(stack, how, driver)), daemon=True)
    hung: list[bool] = []
    interruption.start()
    outcome = vents(stack, moment, moment, latches=how == "stop")
    interruption.join(_ANSWER_SECONDS + _ENDED_SECONDS)
    outcome = replace(outcome, hung=hung != [False])
    return stays_vented(stack, outcome, moment)


def _interrupt(stack: RigStack, how: str, driver: psutil.Process) -> bool:
    """Stop or end the driver; returns whether it hangs."""
    if how == "stop":
        return stack.watch.trigger("stop", _ANSWER_SECONDS) is None
    driver.terminate()
    return not wait_for(lambda: not is_running(driver), _ENDED_SECONDS)


@injects("changed runs", "after a stop", "after kill -9")
def _changed_runs(stack: RigStack, variant: str) -> Outcome:
    """Latch, end the driver, start it with another SOFTFORM_RUNS, and go on commanding: it is latched there, too."""
    moment, driver = time.monotonic(), stack.required(DRIVER)
    if variant == "after a stop":
        if stack.watch.trigger("stop", _ANSWER_SECONDS) is None:
            return judged("stop was not answered", hung=True)
    else:
        driver.kill()
    outcome = vents(stack, moment, moment)
    if not outcome.safe:
        return outcome
    end_driver(stack)
    other = stack.folder / "other-runs"
    other.mkdir(exist_ok=True)
    stack.processes.replace(DRIVER, SOFTFORM_RUNS=str(other))
    stack.bring_up(DRIVER)
    stack.keep_commanding()
    return also_latched(stack, outcome, moment, "the next driver: ", "the next is latched")


def end_driver(stack: RigStack) -> None:
    """End the driver in order, if it runs.

    Raises:
        SoftformError: If it does not end.
    """
    driver = stack.processes.node(DRIVER)
    if driver is None:
        return
    driver.terminate()
    if not wait_for(lambda: not is_running(driver), _ENDED_SECONDS):
        raise SoftformError("The driver did not end.", "See the launch's log.")


def _reach(stack: RigStack, state: State) -> None:
    node = stack.life_cycle(DRIVER)
    if not wait_for(lambda: node.is_there() and node.state(1.0) is state, _START_SECONDS):
        raise SoftformError("The driver did not start.", "See the launch's log.")


def _change(stack: RigStack, step: Step) -> threading.Thread:
    """Ask for a transition, and go on."""
    thread = threading.Thread(target=lambda: stack.life_cycle(DRIVER).change(step, _START_SECONDS), daemon=True)
    thread.start()
    return thread
