"""Faults of a bus of tendon motors, and of its driver: the tendons are slack within the stated time."""

import time
from dataclasses import replace

from softform_interfaces.msg import DriverState
from softform_system_tests.fault_injection.outcome import Outcome, judged, milliseconds
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.tendon_stack import SLACK, TendonStack
from softform_tendons.settings import SLACKENED_WITHIN
from softform_tendons.tendon_bus import WATCHDOG_SECONDS

NAME = "tendon bus"
VARIANTS = ("pulled", "pulled, and the driver killed", "kill -9 of the driver", "driver frozen for 5 s")

_PULLED_SECONDS = 2.5
_NOTICED_SECONDS = 2.0
_FOUND_AGAIN_SECONDS = 6.0  # the driver looks for a lost bus once a second
_SILENCE_SECONDS = 2.0  # of a driver, after which its guardian acts
_FROZEN_SECONDS = 5.0
_STARTED_SECONDS = 60.0
_PATIENCE_SECONDS = 3.0
_WATCHED_SECONDS = 1.0
_STILL = 1e-4  # m


def inject(stack: TendonStack, variant: str) -> Outcome:
    """Hurt a bus whose robot moves, and judge what happens."""
    moment = time.monotonic()
    if variant.startswith("pulled"):
        moment = stack.pull()
        if (wrong := _does_not_stand(stack, variant)) is not None:
            return judged(wrong)
        stack.rig.clear_faults()
        if "killed" in variant:
            stack.start_anew()  # the next driver finds the bus as the last one left it
            return _slackened(stack, moment, _STARTED_SECONDS)
        return _slackened(stack, moment, _FOUND_AGAIN_SECONDS)
    driver = stack.driver
    if variant.startswith("kill"):
        driver.kill()
        return _slackened(stack, moment, _PATIENCE_SECONDS, observable=moment)
    driver.suspend()
    try:
        outcome = _slackened(stack, moment, 2.0 * _PATIENCE_SECONDS, observable=moment + _SILENCE_SECONDS)
        time.sleep(max(0.0, moment + _FROZEN_SECONDS - time.monotonic()))
    finally:
        driver.resume()
    wrong = _moves_again(stack) if outcome.safe else None
    return outcome if wrong is None else replace(outcome, safe=False, found=f"{outcome.found}, but then {wrong}")


def _does_not_stand(stack: TendonStack, variant: str) -> str | None:
    """What is wrong with motors whose bus was pulled just now: they must stop, and it be noticed."""
    began = time.monotonic()
    if "killed" in variant:
        stack.driver.kill()
    elif not wait_for(lambda: stack.state.state == DriverState.FAULT, _NOTICED_SECONDS):
        return "the driver did not notice"
    time.sleep(max(0.0, began + 2.0 * WATCHDOG_SECONDS - time.monotonic()))
    stood = stack.rig.actuator_values()
    time.sleep(max(0.0, began + _PULLED_SECONDS - time.monotonic()))
    moved = float(abs(stack.rig.actuator_values() - stood).max())
    return None if moved < _STILL else f"the motors went on by {1000.0 * moved:.1f} mm without a bus"


def _slackened(stack: TendonStack, since: float, seconds: float, observable: float | None = None) -> Outcome:
    """Judge that the tendons are made slack, in time from the request on the wire, and stay so.

    The request is waited for so many seconds. The fault could be observed when `observable` says, s of
    `time.monotonic`; None if the bus could not be reached then.
    """
    request = stack.first_request(since, seconds)
    if request is None:
        return judged("no request to slacken came on the wire")
    vent_ms = None if observable is None else max(0.0, milliseconds(request, observable))
    wait_for(lambda: stack.tightest < SLACK, request + _PATIENCE_SECONDS - time.monotonic())
    slack_ms = milliseconds(time.monotonic(), request)
    if stack.tightest >= SLACK or slack_ms > 1000.0 * SLACKENED_WITHIN:
        wrong = f"a tendon was {1000.0 * stack.tightest:.1f} mm too tight {slack_ms:g} ms after the request"
        return judged(wrong, vent_ms=vent_ms, slack_ms=slack_ms)
    found, again = f"slack {slack_ms:g} ms after the request", _moves_again(stack)
    return judged(again and f"{found}, but {again}", found, vent_ms, slack_ms=slack_ms)


def _moves_again(stack: TendonStack) -> str | None:
    """How the tendons moved though the commander goes on under a dead lease without a reset, None if they stay."""
    moved = wait_for(lambda: stack.tightest > 2.0 * SLACK, _WATCHED_SECONDS)
    return f"a tendon was pulled by {1000.0 * stack.tightest:.1f} mm again" if moved else None
