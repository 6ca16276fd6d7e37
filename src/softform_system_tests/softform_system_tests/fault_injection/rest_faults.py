"""Chambers that do not come to rest, readings that stand still, values held for ever, a computer that sleeps."""

import threading
import time

import psutil

from softform_bringup.lifecycle_manager import Step
from softform_client.client import ActuatorPath, ShapeClient
from softform_core.errors import SoftformError
from softform_interfaces.msg import DriverState
from softform_system_tests.fault_injection.driver_starts import end_driver
from softform_system_tests.fault_injection.fault_class import injects, vents
from softform_system_tests.fault_injection.held_shape_faults import HeldShape, free_the_robot, stays_vented
from softform_system_tests.fault_injection.outcome import Outcome, judged, untimed
from softform_system_tests.fault_injection.rig_stack import DRIVER, NAMESPACE, RIG, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import inflates, is_at_rest, wait_until_high

HOLD_TIMEOUT = 10.0
"""s; the least that the driver takes as `hold_timeout`."""

FROZEN_WITHIN = 6.0
"""s in which readings that stand still are found: 2 s after the setpoint has moved on by a tenth of the range."""

_HIGH = 0.5  # of a chamber's range
_HIGH_SECONDS = 10.0
_ANSWER_SECONDS = 25.0
_SHOWN_SECONDS = 3.0
_ENDED_SECONDS = 15.0
_ASLEEP_SECONDS = 0.5
_SEEN_SECONDS = 2.0
_FAR_SECONDS = 60.0  # slow, and yet no standstill
_GONE_SECONDS = 5.0  # of which the node waits for the client to come back for 2 s


@injects("stuck valve", "stop", "deactivate", "reset", "SIGTERM")
def _stuck_valve(stack: RigStack, variant: str) -> Outcome:
    """Shut the last chamber in at half its range, and make safe in some way: nobody may say that it is."""
    last = len(stack.robot.actuators) - 1
    if not wait_until_high(stack, last, _HIGH, _HIGH_SECONDS):
        return judged("the last chamber was not inflated", hung=True)
    began = time.monotonic()
    stack.watch.inject(f"stuck_valve={stack.robot.devices[0].channels[last]}")
    if stack.watch.fault_moment("stuck_valve", "shows", began, _SHOWN_SECONDS) is None:
        return judged("the rig did not show the fault")
    claimed = _make_safe(stack, variant)
    if variant != "SIGTERM":  # else it has ended
        name = stack.robot.actuators[last]
        is_named = wait_for(lambda: name in stack.watch.driver_reason and not all(stack.watch.driver.at_rest), 3.0)
        claimed = claimed or (None if is_named else f"the driver does not name {name}: {stack.watch.driver_reason}")
    if not list((stack.folder / "state").rglob("*latch*")):
        claimed = claimed or "nothing is latched"
    values = stack.wire.true_values(began)[-1].values
    if variant == "deactivate":  # the node stays active, and its driver is not: it has to be tried again
        stack.watch.clear_faults()
        stack.life_cycle(DRIVER).change(Step.DEACTIVATE, _ANSWER_SECONDS)
    if is_at_rest(stack.robot, values):
        claimed = claimed or "the chamber was empty"
    return judged(claimed, f"not called safe at {values[last]:.0f} Pa, and latched", at_rest=False)


def _make_safe(stack: RigStack, how: str) -> str | None:
    """Who claimed to have made safe; None if nobody did."""
    if how == "deactivate":
        return (
            "the driver was deactivated" if stack.life_cycle(DRIVER).change(Step.DEACTIVATE, _ANSWER_SECONDS) else None
        )
    if how == "SIGTERM":
        driver = stack.required(DRIVER)
        driver.terminate()
        return None if wait_for(lambda: not is_running(driver), _ENDED_SECONDS) else "the driver did not end"
    answers = [stack.watch.trigger(service, _ANSWER_SECONDS) for service in ("stop", "reset")[: 1 + (how == "reset")]]
    claims = (
        f"{how} was answered: {one.message if one else 'not at all'}" for one in answers if not one or one.success
    )
    return next(claims, None)


@injects("frozen readings", "stuck_sensor=0", "stuck_sensor=4", "stuck_sensor=8")
def _frozen_readings(stack: RigStack, variant: str) -> Outcome:
    """Let one sensor show for ever what it showed last."""
    began = time.monotonic()
    stack.watch.inject(variant)
    shown = stack.watch.fault_moment("stuck_sensor", "shows", began, _SHOWN_SECONDS)
    if shown is None:
        return judged("the rig did not show the fault")
    return untimed(vents(stack, shown, shown + FROZEN_WITHIN, latches=True))


@injects("held too long", "the same values", "a shape is held", "due in thirty years", "its client has gone")
def _held_too_long(stack: RigStack, variant: str) -> Outcome:
    """Hold the same values beyond `hold_timeout`, or let a goal hold them that nobody waits for any more."""
    if variant == "due in thirty years":
        return _due_late(stack)
    end_driver(stack)
    stack.processes.replace(DRIVER, parameters=[f"hold_timeout:={HOLD_TIMEOUT}"])
    stack.bring_up(DRIVER)
    try:
        return {"the same values": _same_values, "a shape is held": _held_shape}.get(variant, _client_gone)(stack)
    finally:
        end_driver(stack)  # the next one has its own


def _same_values(stack: RigStack) -> Outcome:
    stack.silence_commander()
    stack.commander = stack.start_commander(0.6, 0.6)
    if stack.watch.driver_state == DriverState.FAULT:
        stack.watch.trigger("reset", _ANSWER_SECONDS)
    began = time.monotonic()
    held = stack.wire.first(inflates, began, _ANSWER_SECONDS)
    if held is None:
        return judged("the robot did not move", hung=True)
    return vents(stack, held.time, held.time + HOLD_TIMEOUT)


def _held_shape(stack: RigStack) -> Outcome:
    with HeldShape(stack):
        began = time.monotonic()
        return stays_vented(stack, untimed(vents(stack, began, began + HOLD_TIMEOUT)), began)


def _due_late(stack: RigStack) -> Outcome:
    free_the_robot(stack)
    began = time.monotonic()
    told = _follow(stack, ShapeClient(NAMESPACE), 1e9)
    moved = stack.wire.first(inflates, began, _SEEN_SECONDS)
    return judged(None if moved is None and "due" in told else f"{told}; {moved}", told)


def _client_gone(stack: RigStack) -> Outcome:
    free_the_robot(stack)
    client, began, ends = ShapeClient(NAMESPACE), time.monotonic(), []
    goal = threading.Thread(target=lambda: ends.append(_follow(stack, client, _FAR_SECONDS)), daemon=True)
    goal.start()
    if stack.wire.first(inflates, began, _ANSWER_SECONDS) is None:
        return judged(f"the goal did not move the robot: {ends}", hung=True)
    time.sleep(_SEEN_SECONDS)
    gone = time.monotonic()
    client.close()
    goal.join(_ANSWER_SECONDS)
    due = gone + _GONE_SECONDS + HOLD_TIMEOUT  # the node holds where the goal ended
    return stays_vented(stack, untimed(vents(stack, gone, due)), gone)


def _follow(stack: RigStack, client: ShapeClient, due: float) -> str:
    """Send the robot to half its range, to be there after so many seconds; returns how that ended."""
    try:
        with client:
            client.follow(ActuatorPath(0.5 * stack.robot.actuator_max[None]), times=[due])
    except SoftformError as error:
        return str(error)
    return "the path was followed"


@injects("sleep", "3 s", "3600 s")
def _sleep(stack: RigStack, variant: str) -> Outcome:
    """Let the computer sleep: nothing but the board goes on, and of the clocks only the time since the boot."""
    driver, commander = stack.required(DRIVER), stack.commander
    assert commander is not None
    nodes = [process for name, process in stack.processes.nodes().items() if name != RIG]
    asleep = [psutil.Process(commander.pid), *nodes, *driver.children()]
    began = time.monotonic()
    for process in asleep:
        process.suspend()
    try:
        time.sleep(_ASLEEP_SECONDS)
        stack.clock.shift(0.0, float(variant.removesuffix(" s")))
    finally:
        for process in asleep:
            process.resume()
    woke = time.monotonic()
    return vents(stack, began, woke, latches=True)
