"""Faults of a bus of tendon motors, of motors that hold, and of their driver: slack within the stated time."""

import threading
import time
from dataclasses import replace

from softform_interfaces.msg import DriverState
from softform_rig.motor_bus import MotorBus
from softform_rig.tendon_motor import TendonMotor
from softform_system_tests.fault_injection.driven_stack import DrivenStack
from softform_system_tests.fault_injection.fault_class import injects
from softform_system_tests.fault_injection.outcome import Outcome, judged, milliseconds
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_tendons.settings import SLACKENED_WITHIN
from softform_tendons.tendon_bus import WATCHDOG_SECONDS
from softform_tendons.watch import OVER_CURRENT_SECONDS

SLACK = 5e-4
"""m; so near to the safe pull a tendon is slack: drums, homes and backlash of the reality."""

HOLD_LIMIT = 4.0
"""s for which the motors of the stack that holds do so."""

_PULLED_SECONDS = 2.5
_NOTICED_SECONDS = 2.0
_FOUND_AGAIN_SECONDS = 6.0  # the driver looks for a lost bus once a second
_SILENCE_SECONDS = 2.0  # of a driver, after which its guardian acts
_FROZEN_SECONDS = 5.0
_STARTED_SECONDS = 60.0
_PATIENCE_SECONDS = 3.0
_WATCHED_SECONDS = 1.0
_STILL = 1e-4  # m
_LOOK_SECONDS = 0.005
_LOST_SECONDS = 4.0
_LOST_OF = 7  # instructions, one
_CHECKED_SECONDS = 1.5  # motors at rest are looked at once a second
_MOTOR = 2
_TORN = 1  # its motor's id
_TAUT = 5e-3  # m of pull: it carries something
_FAR = 0.4, 1.0  # of the range: beyond `taut_from` of the description in part of each round
_REACHED_SECONDS = 12.0
_AROUND_SECONDS = 8.0  # a round takes 6
_WARM = 69.0  # degrees Celsius: above the description's `hottest`, below where a motor shuts down by itself
_COOL = 25.0
_BEYOND = 1.2  # of the current limit


@injects(
    "tendon bus",
    "pulled",
    "pulled, and the driver killed",
    "kill -9 of the driver",
    "driver frozen for 5 s",
    stack="tendons",
)
def _bus(stack: DrivenStack, variant: str) -> Outcome:
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


def _does_not_stand(stack: DrivenStack, variant: str) -> str | None:
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


def _slackened(stack: DrivenStack, since: float, seconds: float, observable: float | None = None) -> Outcome:
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
    at_rest = stack.tightest < SLACK
    if stack.tightest >= SLACK or slack_ms > 1000.0 * SLACKENED_WITHIN:
        wrong = f"a tendon was {1000.0 * stack.tightest:.1f} mm too tight {slack_ms:g} ms after the request"
        return judged(wrong, vent_ms=vent_ms, slack_ms=slack_ms, at_rest=at_rest)
    found, again = f"slack {slack_ms:g} ms after the request", _moves_again(stack)
    return judged(again and f"{found}, but {again}", found, vent_ms, slack_ms=slack_ms, at_rest=at_rest)


def _moves_again(stack: DrivenStack) -> str | None:
    """How the tendons moved though the commander goes on under a dead lease without a reset, None if they stay."""
    moved = wait_for(lambda: stack.tightest > 2.0 * SLACK, _WATCHED_SECONDS)
    return f"a tendon was pulled by {1000.0 * stack.tightest:.1f} mm again" if moved else None


def _motors(stack: DrivenStack) -> MotorBus:
    bus = stack.rig.terminals[0].firmware
    assert isinstance(bus, MotorBus)
    return bus


@injects("motor limits", "a limit is lost", "more than its limit", "packets are lost", stack="tendons")
def _limits(stack: DrivenStack, variant: str) -> Outcome:
    """Let a motor forget its current limit, exceed it, or miss what it is told."""
    bus, moment = _motors(stack), time.monotonic()
    motor = bus.motors[_MOTOR]
    if variant == "packets are lost":
        return _lost_packets(stack, bus)
    if variant == "a limit is lost":
        motor.current_limit = motor.goal_current = motor.type.highest_current
        return _slackened(stack, moment, _PATIENCE_SECONDS, observable=moment)
    motor.surging = True
    try:
        return _slackened(stack, moment, _PATIENCE_SECONDS, observable=moment + OVER_CURRENT_SECONDS)
    finally:
        motor.surging = False


def _lost_packets(stack: DrivenStack, bus: MotorBus) -> Outcome:
    """Whatever is lost as the motors start, none may pull harder than its limit."""
    allowed = _BEYOND * stack.robot.devices[0].settings["current_limit"]
    stack.stop()
    bus.misses = lambda n, number: number == _MOTOR and n % _LOST_OF == 0
    highest, end = 0.0, time.monotonic() + _LOST_SECONDS
    reset = threading.Thread(target=stack.reset, daemon=True)
    reset.start()
    try:
        while time.monotonic() < end:
            highest = max(highest, *(motor.limit for motor in bus.motors.values() if motor.torque_on), 0.0)
            time.sleep(_LOOK_SECONDS)
    finally:
        bus.misses = lambda n, number: False
    reset.join()
    wrong = f"a motor with power was limited to {highest:.2f} A" if highest > allowed else None
    return judged(wrong, f"limited to {highest:.2f} A at most; {stack.state.reason}")


@injects("torn tendon", "it carries nothing", "the driver is killed then", stack="tendons")
def _torn(stack: DrivenStack, variant: str) -> Outcome:
    """Tear a tendon of a robot that is bent as far as it goes; what it carries is seen while it is pulled far only."""
    stack.shares = _FAR
    torn = _motors(stack).motors[_TORN]
    pulled = wait_for(lambda: stack.rig.actuator_values()[_TORN - 1] > _TAUT, _REACHED_SECONDS)
    if not pulled:
        return judged("the tendon was not pulled far enough to tear it", hung=True)
    torn.torn = True
    moment = time.monotonic()
    try:
        if variant.endswith("killed then"):
            stack.driver.kill()
            return _slackened(stack, moment, _PATIENCE_SECONDS, observable=moment)
        outcome = _slackened(stack, moment, _AROUND_SECONDS, observable=moment + _AROUND_SECONDS)
        told = f"{stack.robot.actuators[_TORN - 1]} (motor {_TORN})"
        if outcome.safe and told not in stack.state.reason:
            return replace(outcome, safe=False, found=f"{outcome.found}, but the driver says: {stack.state.reason}")
        return replace(outcome, found=f"{outcome.found}; {stack.state.reason}")
    finally:
        torn.torn = False


@injects("holding", "its time is over", "a motor gets hot", "the driver is killed", stack="holding")
def _holding(stack: DrivenStack, variant: str) -> Outcome:
    """Stop, which holds the robot under power, and let it go wrong, or its time be over."""
    motors, moment = _motors(stack).motors, time.monotonic()
    if not stack.stop():
        return judged("stop was not answered, or not by success", hung=True)
    if stack.is_at_rest or not all(motor.torque_on for motor in motors.values()):
        return judged("the motors do not hold the robot")
    observable, patience = moment + HOLD_LIMIT, HOLD_LIMIT + _PATIENCE_SECONDS
    if variant == "a motor gets hot":
        motors[_MOTOR].temperature, observable = _WARM, time.monotonic()
    elif variant == "the driver is killed":
        stack.driver.kill()
        stack.start_anew()
        patience += _STARTED_SECONDS
    is_slack = wait_for(lambda: _is_let_go(stack, motors), patience)
    motors[_MOTOR].temperature = _COOL
    took, limit = time.monotonic() - observable, _CHECKED_SECONDS + SLACKENED_WITHIN
    if not is_slack or (variant != "the driver is killed" and took > limit):
        return judged(f"slack and without power {took:.1f} s after that was due: {is_slack}", at_rest=is_slack)
    wrong = _moves_again(stack)
    return judged(wrong, f"held, then slack and without power {took:.1f} s after that was due", at_rest=True)


def _is_let_go(stack: DrivenStack, motors: dict[int, TendonMotor]) -> bool:
    return stack.tightest < SLACK and not any(motor.torque_on for motor in motors.values())
