"""Faults of two arms that shape an object: whatever breaks on the way, it is told, and the joints truly stand still.

Arms are not let go: what is safe is to hold, with brakes. Judged is where the joints truly are, by the log of the wire,
and that the last thing asked of their brakes was to close.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator

import numpy as np

from softform_client.object_client import ShapeCode
from softform_interfaces.msg import DriverState
from softform_system_tests.fault_injection.arm_stack import (
    DRIVER,
    NARROW,
    NARROW_JOINT,
    SHAPER,
    ArmStack,
    Goal,
)
from softform_system_tests.fault_injection.fault_class import COMMAND_TIMEOUT, injects
from softform_system_tests.fault_injection.outcome import Outcome, judged, milliseconds
from softform_system_tests.fault_injection.stack_watch import wait_for

WATCHDOG = 0.5
"""s without a point after which the controller brakes by itself: as config/arms/two_arms.yaml has it."""
STILL_WITHIN = 0.5
"""s after the fault can be observed within which all joints have to stand still."""
STILL = 2e-4
"""rad by which a joint that stands still may be found elsewhere."""

_WAY_SECONDS, _GOAL_SECONDS, _FAULT_SECONDS, _WATCHED_SECONDS = 60.0, 90.0, 5.0, 1.5
_FROZEN_SECONDS, _LATE_SECONDS, _BRAKED_SECONDS = 5.0, 0.5, 6.0
_TOO_FAST = 1.3  # of the limit of a joint
_BETWEEN = 0.01  # s between two samples of the log from which a speed is taken
_SEEN = (ShapeCode.CAPTURE_INVALID,)
_DRIVER = (ShapeCode.DRIVER_FAULT, ShapeCode.DRIVER_NOT_READY)
_LATCHED = (DriverState.FAULT,)
_TWIST = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4])
_STUCK = 10
"""The controller's number of a joint that bends the object."""

_OF_THE_OBJECT = {
    "the gripper opens": "gripper_opened",
    "the object tears": "object_torn",
    "another object in view": "another_object",
    "another object than described": "wrong_object",
}


@injects(
    "arms",
    *_OF_THE_OBJECT,
    "the camera is lost",
    "the stop button of the arms",
    "a joint is stuck",
    "a joint at its limit",
    "the plug is pulled",
    "kill -9 of the node",
    "the node frozen for 5 s",
    "commands late by 0.5 s",
    "kill -9 of the driver",
    "the driver frozen for 5 s",
    stack="arms",
)
def _arms(stack: ArmStack, variant: str) -> Outcome:
    """Break something while the arms move an object; the goal has to end with its reason, and the arms hold."""
    if variant == "a joint at its limit":
        return _at_the_limit(stack)
    goal = stack.goal(2 if variant.startswith("commands late") else 0)
    if not stack.is_on_its_way(goal, _WAY_SECONDS):
        return judged(f"the arms did not move: {goal.told}", hung=True)
    if variant in _OF_THE_OBJECT:
        stack.spoil(_OF_THE_OBJECT[variant])
        return _ends(stack, goal, _SEEN)
    return _BY_VARIANT[variant](stack, goal)


def _camera_lost(stack: ArmStack, goal: Goal) -> Outcome:
    stack.spoil("camera_lost")
    return _ends(stack, goal, (ShapeCode.CAPTURE_TIMEOUT,))


def _stop_button(stack: ArmStack, goal: Goal) -> Outcome:
    shown = stack.inject("stop_button+2")
    return _ends(stack, goal, _DRIVER, shown, states=_LATCHED)


def _stuck(stack: ArmStack, goal: Goal) -> Outcome:
    stack.inject(f"stuck_joint={_STUCK}")
    return _ends(stack, goal, (*_DRIVER, ShapeCode.SETTLE_TIMEOUT), states=(DriverState.HOLDING, *_LATCHED))


def _pulled(stack: ArmStack, goal: Goal) -> Outcome:
    shown = stack.inject("disconnect+2")
    return _ends(stack, goal, _DRIVER, shown + WATCHDOG, states=_LATCHED)


def _killed_node(stack: ArmStack, goal: Goal) -> Outcome:
    moment = time.monotonic()
    stack.process(SHAPER).kill()
    return _ends(stack, goal, (), moment + COMMAND_TIMEOUT)


def _frozen_node(stack: ArmStack, goal: Goal) -> Outcome:
    with _frozen(stack, SHAPER, _FROZEN_SECONDS) as moment:
        pass
    return _ends(stack, goal, _DRIVER, moment + COMMAND_TIMEOUT)


def _late(stack: ArmStack, goal: Goal) -> Outcome:
    with _frozen(stack, SHAPER, _LATE_SECONDS):
        pass
    return _ends(stack, goal, (ShapeCode.NONE,))


def _killed_driver(stack: ArmStack, goal: Goal) -> Outcome:
    moment = time.monotonic()
    stack.process(DRIVER).kill()
    outcome = _ends(stack, goal, _DRIVER, moment)
    if not outcome.safe:
        return outcome
    stack.relaunch()
    is_latched = wait_for(lambda: stack.state.state == DriverState.FAULT, _FAULT_SECONDS)
    return outcome if is_latched else judged(f"{outcome.found}, but the next driver is not latched")


def _frozen_driver(stack: ArmStack, goal: Goal) -> Outcome:
    with _frozen(stack, DRIVER, _FROZEN_SECONDS) as moment:
        pass
    return _ends(stack, goal, (*_DRIVER, ShapeCode.SETTLE_TIMEOUT), moment + WATCHDOG, states=_LATCHED)


_BY_VARIANT: dict[str, Callable[[ArmStack, Goal], Outcome]] = {
    "the camera is lost": _camera_lost,
    "the stop button of the arms": _stop_button,
    "a joint is stuck": _stuck,
    "the plug is pulled": _pulled,
    "kill -9 of the node": _killed_node,
    "the node frozen for 5 s": _frozen_node,
    "commands late by 0.5 s": _late,
    "kill -9 of the driver": _killed_driver,
    "the driver frozen for 5 s": _frozen_driver,
}


def _at_the_limit(stack: ArmStack) -> Outcome:
    """Ask for a twist beyond what a joint can do: no move may be begun that ends elsewhere than it should."""
    began, goal = time.monotonic(), Goal(_TWIST)
    goal.start()
    outcome = _ends(stack, goal, (ShapeCode.UNREACHABLE,), word=NARROW_JOINT)
    joint = stack.robot.actuators.index(NARROW_JOINT)
    farthest = max((abs(one.values[joint]) for one in stack.wire.true_values(began)), default=0.0)
    if farthest > NARROW + stack.robot.actuator_tolerances.settle[joint]:
        return judged(f"{NARROW_JOINT} was at {farthest:.3f} rad; {NARROW:g} are its limit")
    return outcome


@contextlib.contextmanager
def _frozen(stack: ArmStack, name: str, seconds: float) -> Iterator[float]:
    """A node stands still for so many seconds, from the moment that is given on."""
    process, moment = stack.process(name), time.monotonic()
    process.suspend()
    try:
        yield moment
        time.sleep(seconds)
    finally:
        process.resume()


def _ends(
    stack: ArmStack,
    goal: Goal,
    codes: Collection[int],
    observable: float | None = None,
    *,
    states: Collection[int] = (DriverState.HOLDING,),
    word: str = "",
) -> Outcome:
    """Judge that a goal ends with one of these codes, and that the arms then stand still with their brakes on.

    Args:
        stack: The stack.
        goal: It runs.
        codes: Empty where its node is gone.
        observable: When the fault could be seen, s of `time.monotonic`; None where the arms may first end their move.
        states: What the driver may then be in.
        word: What its reason has to name.
    """
    goal.join(_GOAL_SECONDS)
    if goal.is_alive():
        return judged("the goal did not end", hung=True)
    ended = time.monotonic()
    code = int(ShapeCode.NONE) if goal.failure is None else getattr(goal.failure, "code", None)
    if (code not in codes if codes else code is not None) or word not in goal.told:
        return judged(f"told was: {goal.told}")
    if stack.has_driver and not wait_for(lambda: stack.state.state in states, _FAULT_SECONDS):
        return judged(f"{goal.told} But the driver is in state {stack.state.state}: {stack.state.reason}")
    is_braked = wait_for(lambda: stack.is_braked, _BRAKED_SECONDS)  # a pulled plug is found again once a second
    if not is_braked:
        return judged(f"{goal.told} But the brakes were not asked for")
    time.sleep(_WATCHED_SECONDS)
    since = ended if observable is None else observable
    return stands_still(stack, since, observable is not None, goal.told, time.monotonic())


def stands_still(stack: ArmStack, since: float, is_timed: bool, told: str, now: float) -> Outcome:
    """Judge that all joints truly have stood still since a moment, with their brakes on, and were never too fast.

    Args:
        stack: The stack.
        since: When they were due to stand, s of `time.monotonic`.
        is_timed: Whether the time is one of the fault's.
        told: What was said of it.
        now: s of `time.monotonic`.
    """
    samples = stack.wire.true_values(since - _WAY_SECONDS)
    times, values = np.array([one.time for one in samples]), np.array([one.values for one in samples])
    if not len(times) or times[-1] < now - 1.0:
        return judged("the rig does not tell where the joints are", hung=True)
    steps = np.diff(times) > _BETWEEN
    speeds = np.abs(np.diff(values, axis=0))[steps] / np.diff(times)[steps, None]
    fastest = float((speeds / stack.robot.slew_rate).max(initial=0.0))
    moving = times[np.abs(values - values[-1]).max(axis=1) > STILL]
    still_ms = max(0.0, milliseconds(float(moving[-1]), since)) if len(moving) else 0.0
    wrong = None
    if fastest > _TOO_FAST:
        wrong = f"a joint went at {fastest:.2f} of its limit"
    elif still_ms > 1000.0 * STILL_WITHIN:
        wrong = f"a joint moved {still_ms:g} ms after that was due to end"
    elif not stack.is_braked:
        wrong = "the last thing asked of the brakes is not to close"
    found = told if wrong is None else f"{told} But {wrong}"
    return judged(wrong and found, found, at_rest=wrong is None, still_ms=still_ms if is_timed else None)
