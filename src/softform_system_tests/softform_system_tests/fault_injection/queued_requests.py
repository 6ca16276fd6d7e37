"""What was asked for before the robot was made safe, and comes to its node afterwards: nothing moves by it.

A frozen node takes what was sent to it when it wakes up; a network sends again; an operator looks away.
"""

import threading
import time

from softform_core.errors import SoftformError
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import ActuatorValues, Asked, DriverState
from softform_interfaces.srv import Lease
from softform_ros.action_caller import ActionCaller
from softform_ros.service_calls import wait_until_answered
from softform_system_tests.fault_injection.fault_class import FAULT_SECONDS, FaultClass, not_latched
from softform_system_tests.fault_injection.held_shape_faults import HOLDER, free_the_robot, let_go
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import DRIVER, NAMESPACE, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import is_at_rest
from softform_system_tests.fault_injection.wire_log_reader import inflates

_ANSWER_SECONDS = 25.0
_SENT_SECONDS = 0.5
_LONG_SECONDS = 3.0
_WATCHED_SECONDS = 3.0
_HOUR = 3600.0
_PLUG_SECONDS = 2.5


def _queued(stack: RigStack, variant: str) -> Outcome:
    """Let the robot be free, and something that was asked for come late."""
    free_the_robot(stack)
    if "lease" in variant:
        return _late_lease(stack, variant)
    values = [0.5 * float(top) for top in stack.robot.actuator_max]
    goal = FollowWaypoints.Goal(kind=FollowWaypoints.Goal.ACTUATORS, actuators=ActuatorValues(value=values))
    with ActionCaller(FollowWaypoints, "follow_waypoints", HOLDER, "queued", NAMESPACE) as caller:
        goal.asked = stack.watch.asked()
        if variant == "a goal that is sent again":
            if told := _called(caller, goal):
                return judged(f"the goal was not reached the first time: {told}", hung=True)
            if wrong := _stop_and_reset(stack):
                return judged(wrong, hung=True)
            since = time.monotonic()
            told = _called(caller, goal)
        else:
            since, told = _to_frozen(stack, variant, caller, goal)
    outcome = _nothing_moves(stack, since, f"the goal ended: {told}" if told else None)
    let_go(stack)
    return outcome


def _to_frozen(stack: RigStack, variant: str, caller: ActionCaller, goal: FollowWaypoints.Goal) -> tuple[float, str]:
    """Send a goal to a frozen node; returns when that goes on, s of `time.monotonic`, and how the goal ends."""
    process, ends = stack.required(HOLDER), []
    process.suspend()
    try:
        sent = threading.Thread(target=lambda: ends.append(_called(caller, goal)), daemon=True)
        sent.start()
        time.sleep(_SENT_SECONDS)
        if "stop and reset" in variant and (wrong := _stop_and_reset(stack)):
            raise SoftformError(wrong)
        if "client" in variant:
            caller.close()
        elif "3 s" in variant:
            time.sleep(_LONG_SECONDS)
    finally:
        since = time.monotonic()
        process.resume()
    sent.join(_ANSWER_SECONDS)
    return since, next(iter(ends), "")


def _called(caller: ActionCaller, goal: FollowWaypoints.Goal) -> str:
    """Why a goal was not carried out; empty if it was."""
    try:
        return str(caller.call(goal).error_msg)
    except SoftformError as error:
        return str(error)


def _stop_and_reset(stack: RigStack) -> str | None:
    answers = [stack.watch.trigger(service, _ANSWER_SECONDS) for service in ("stop", "reset")]
    return None if all(one is not None and one.success for one in answers) else f"stop and reset: {answers}"


def _nothing_moves(stack: RigStack, since: float, told: str | None) -> Outcome:
    """Judge that nothing moves from a moment on, and that somebody said why."""
    moved = stack.wire.first(inflates, since, _WATCHED_SECONDS)
    at_rest = is_at_rest(stack.robot, stack.wire.true_values(since)[-1].values)
    wrong = None if moved is None else f"{moved.text!r} came on the wire"
    return judged(wrong or (None if told else "nobody said why"), f"nothing moves; {told}", at_rest=at_rest)


def _late_lease(stack: RigStack, variant: str) -> Outcome:
    if variant == "a lease, the driver frozen for 3 s":
        return _lease_of_frozen(stack)
    asked = stack.watch.asked(_HOUR) if "hour" in variant else stack.watch.asked(epoch=stack.watch.driver.epoch - 1)
    since = time.monotonic()
    answer = stack.watch.ask_for_lease("late", _ANSWER_SECONDS, asked)
    is_rejected = answer is not None and answer.error_code == Lease.Response.OUTDATED
    return _nothing_moves(stack, since, answer.message if answer is not None and is_rejected else None)


def _lease_of_frozen(stack: RigStack) -> Outcome:
    driver, node = stack.required(DRIVER), stack.watch.node
    client = node.create_client(Lease, "lease")
    try:
        wait_until_answered(node, DRIVER, _ANSWER_SECONDS)
        driver.suspend()
        try:
            future = client.call_async(
                Lease.Request(
                    request=Lease.Request.ACQUIRE,
                    source="late",
                    asked=stack.watch.asked(),
                    fingerprint=stack.watch.driver.fingerprint,
                )
            )
            time.sleep(_LONG_SECONDS)
        finally:
            since = time.monotonic()
            driver.resume()
        answered = wait_for(future.done, _ANSWER_SECONDS)
    finally:
        node.destroy_client(client)
    is_rejected = answered and not future.result().success
    return _nothing_moves(stack, since, future.result().message if is_rejected else None)


QUEUED = FaultClass(
    (
        "a goal to a frozen node, then stop and reset",
        "a goal to a frozen node, its client gone",
        "a goal to a node frozen for 3 s",
        "a goal that is sent again",
        "a lease, the driver frozen for 3 s",
        "a lease an hour old",
        "a lease of the epoch before",
    ),
    _queued,
)
"""What comes late."""


def _unseen_fault(stack: RigStack, variant: str) -> Outcome:
    """Latch once, ask for a reset of that, and latch again before it comes: the second one stays."""
    began = time.monotonic()
    if variant == "a pulled plug, then a stop":
        stack.watch.inject(f"disconnect+{_PLUG_SECONDS:g}")
    else:
        stack.watch.trigger("stop", _ANSWER_SECONDS)
    if not wait_for(lambda: stack.watch.driver_state == DriverState.FAULT, FAULT_SECONDS):
        return judged("no fault was latched", hung=True)
    asked = stack.watch.asked()
    if variant == "asked for an hour ago":
        asked = stack.watch.asked(_HOUR)
    elif variant == "that says nothing":
        asked = Asked()
    else:
        seen = asked.epoch
        stack.watch.trigger("stop", _ANSWER_SECONDS)
        wait_for(lambda: stack.watch.driver.epoch != seen, FAULT_SECONDS)
        asked = stack.watch.asked(epoch=seen)
    if variant == "a pulled plug, then a stop":
        stack.watch.fault_moment("disconnect", "ends", began, 2.0 * _PLUG_SECONDS)
    answer = stack.watch.reset(asked, _ANSWER_SECONDS)
    if answer is None or answer.success:
        return judged(f"the reset was answered: {answer}", hung=answer is None)
    wrong = not_latched(stack, time.monotonic())
    return judged(wrong, f"stays latched: {answer.message}")


UNSEEN_FAULT = FaultClass(
    ("a stop, then another", "a pulled plug, then a stop", "asked for an hour ago", "that says nothing"), _unseen_fault
)
"""What a reset was asked for, and what it finds."""
