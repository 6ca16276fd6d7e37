"""A shape that is held by `inverse_kinematics`: somebody comes beside it, or its holder freezes or dies."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from std_srvs.srv import Trigger

from softform_client.client import Mode, ShapeClient
from softform_core.errors import SoftformError
from softform_core.shapes.random import random_target
from softform_interfaces.action import CollectDataset
from softform_ros.action_caller import ActionCaller
from softform_ros.service_calls import call_service
from softform_system_tests.fault_injection.fault_class import injects, undisturbed, vents, vents_unheard
from softform_system_tests.fault_injection.outcome import Outcome, judged, untimed
from softform_system_tests.fault_injection.rig_stack import NAMESPACE, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import inflates

HOLDER = "inverse_kinematics"
REPEAT_PERIOD = 0.1
"""s between its commands while it holds: 1 / `command_rate` of config/nodes/inverse_kinematics.yaml."""

_FREE_SECONDS = 5.0
_REACH_SECONDS = 40.0
_ANSWER_SECONDS = 5.0
_FROZEN_SECONDS = 5.0
_WATCHED_SECONDS = 2.0
_ENDED_SECONDS = 10.0
_RESET_SECONDS = 25.0

_SOLVING = "frozen while solving, stop and reset"
_STARTS = 200  # of the search for a solution, which ends when some have led to the same
_ATTEMPTS = 5  # to freeze the holder before its search ends
_REJECTED = "after 'inverse_kinematics' was asked to move", "has stopped following in the meantime"
"""Reasons of the driver, and of the holder if it reads of the stop before it asks for the lease."""


class HeldShape:
    """A goal that `inverse_kinematics` moves to (from `midway` on) and then holds, while the `with` block lasts."""

    def __init__(self, stack: RigStack, midway: bool = False) -> None:
        self._stack, self._midway = stack, midway
        self._failure = ""

    def __enter__(self) -> "HeldShape":
        """Send the goal.

        Raises:
            SoftformError: If it is not reached.
        """
        free_the_robot(self._stack)
        self._client = ShapeClient(NAMESPACE)
        self._client.connect()
        self._goal = threading.Thread(target=self._reach, daemon=True)
        began = time.monotonic()
        self._goal.start()
        if self._midway:
            begun = self._stack.wire.first(inflates, began, _REACH_SECONDS) is not None
        else:
            self._goal.join(_REACH_SECONDS)
            begun = not self._goal.is_alive() and _is_held(self._stack)
        if not begun:
            self.__exit__(None, None, None)
            raise SoftformError(f"No shape is held: {self._failure}", "See the launch's log.")
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of the robot, if its holder is there."""
        let_go(self._stack)
        self._client.close()
        self._goal.join(_ANSWER_SECONDS)

    def _reach(self) -> None:
        try:
            self._client.reach(random_target(self._stack.robot, seed=3), Mode.PLAN_AND_MOVE)
        except SoftformError as error:  # the fault ends it
            self._failure = str(error)


@injects(
    "held shape",
    "a collection begins",
    "frozen for 5 s",
    "kill -9",
    "SIGTERM",
    "frozen for 5 s, midway",
    "kill -9, midway",
    "SIGTERM, midway",
    _SOLVING,
)
def _inject(stack: RigStack, variant: str) -> Outcome:
    """Inject a fault while a shape is held, or on the way to it."""
    if variant == _SOLVING:
        return _solving(stack)
    what, _, midway = variant.partition(", ")
    with HeldShape(stack, midway=bool(midway)):
        match what:
            case "a collection begins":
                return _collection(stack)
            case "frozen for 5 s":
                return _frozen(stack)
            case _:
                return _ended(stack, signal.SIGKILL if what == "kill -9" else signal.SIGTERM)


def _collection(stack: RigStack) -> Outcome:
    """It is rejected with the name of the holder."""
    began = time.monotonic()
    output = stack.folder / f"rejected-{time.monotonic_ns()}.zarr"
    goal = CollectDataset.Goal(via="mocap", frames=2, seed=0, output=str(output))
    with ActionCaller(CollectDataset, "collect_dataset", "collector", "fault_collect", NAMESPACE) as caller:
        result = caller.call(goal)
    reported = result.error_msg if result.error_code and HOLDER in result.error_msg else None
    time.sleep(_WATCHED_SECONDS)
    if result.captured or not _is_held(stack):
        return judged(f"the collection took the robot: {stack.watch.lease}")
    return undisturbed(stack, began, reported)


def _frozen(stack: RigStack) -> Outcome:
    """The robot is vented, and stays so when the holder wakes up."""
    process = stack.required(HOLDER)
    moment = time.monotonic()
    process.suspend()
    try:
        outcome = vents_unheard(stack, moment, REPEAT_PERIOD)
        time.sleep(max(0.0, moment + _FROZEN_SECONDS - time.monotonic()))
    finally:
        process.resume()
    return stays_vented(stack, outcome, moment)


def _solving(stack: RigStack) -> Outcome:
    """The goal was asked for before the operator's stop: it is rejected, though all looks as before."""
    outcomes = (_stopped_while_solving(stack) for _ in range(_ATTEMPTS))
    found = next((outcome for outcome in outcomes if outcome is not None), None)
    if found is None:
        raise SoftformError(f"The goal had been solved before it was frozen, {_ATTEMPTS} times.", "Try again.")
    return found


def _stopped_while_solving(stack: RigStack) -> Outcome | None:
    """None if the goal had been solved before its holder was frozen; the robot is free again then."""
    free_the_robot(stack)
    process, solves, ends = stack.required(HOLDER), threading.Event(), []
    with ShapeClient(NAMESPACE) as client:

        def reach() -> None:
            target = random_target(stack.robot, seed=3)
            try:
                client.reach(target, Mode.PLAN_AND_MOVE, starts=_STARTS, on_feedback=lambda feedback: solves.set())
                ends.append("the goal was reached")
            except SoftformError as error:
                ends.append(str(error))

        goal = threading.Thread(target=reach, daemon=True)
        goal.start()
        if not solves.wait(_REACH_SECONDS):
            return judged("the goal was not begun", hung=True)
        process.suspend()
        try:
            is_solved = bool(stack.watch.lease[0])
            moment = time.monotonic()
            wrong = None if is_solved else stack.watch.stop_and_reset(_RESET_SECONDS)
        finally:
            process.resume()
        if is_solved:
            goal.join(_REACH_SECONDS)
            let_go(stack)
            return None
        if wrong is not None:
            return judged(wrong, hung=True)
        outcome = vents(stack, moment, moment)
        if outcome.safe:  # the time until the call had found its service is not the driver's
            outcome = replace(untimed(outcome), found="vented")
        outcome = stays_vented(stack, outcome, moment, lambda: goal.join(_REACH_SECONDS))
    if not ends or not any(reason in ends[0] for reason in _REJECTED):
        return replace(outcome, safe=False, found=f"{outcome.found}; the goal ended: {ends}", hung=not ends)
    return replace(outcome, found=f"{outcome.found}; the goal was rejected")


def _ended(stack: RigStack, number: signal.Signals) -> Outcome:
    process = stack.required(HOLDER)
    moment = time.monotonic()
    process.send_signal(number)
    outcome = vents_unheard(stack, moment, REPEAT_PERIOD)
    ended = wait_for(lambda: not is_running(process), _ENDED_SECONDS)
    return replace(stays_vented(stack, outcome, moment), hung=not ended)


def _is_held(stack: RigStack) -> bool:
    """Whether the driver says that the holder has its lease."""
    return stack.watch.lease[0] == HOLDER


def let_go(stack: RigStack) -> None:
    """Call `release` of the holder, if it holds the robot."""
    if _is_held(stack):
        call_service(stack.watch.node, HOLDER, Trigger, "release", Trigger.Request(), _ANSWER_SECONDS)


def free_the_robot(stack: RigStack) -> None:
    """Kill the commander, and wait until its lease has ended.

    Raises:
        SoftformError: If it does not.
    """
    stack.silence_commander()
    if not wait_for(lambda: not stack.watch.lease[0], _FREE_SECONDS):
        raise SoftformError("The lease of a commander that died did not end.", "See the launch's log.")


def stays_vented(
    stack: RigStack, outcome: Outcome, since: float, meanwhile: Callable[[], None] = lambda: None
) -> Outcome:
    """Judge that nothing lets air in after the vent, while something is tried that must not, and some time after it."""
    if not outcome.safe:
        return outcome
    vent = stack.wire.first_vent(since, 0.0)
    assert vent is not None
    meanwhile()
    refilled = stack.wire.first(inflates, vent.time, _WATCHED_SECONDS)
    if refilled is None:
        return replace(outcome, found=f"{outcome.found}, and stays so")
    later = refilled.time - vent.time
    return replace(outcome, safe=False, found=f"{outcome.found}, but {later:.2f} s later came {refilled.text!r}")
