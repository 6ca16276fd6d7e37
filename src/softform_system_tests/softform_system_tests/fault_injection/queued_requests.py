"""What was asked for before the robot was made safe, and comes to its node afterwards: nothing moves by it.

A frozen node takes what was sent to it when it wakes up; a network sends again; an operator looks away.
"""

import threading
import time

from rclpy.serialization import deserialize_message

from softform_core.errors import SoftformError
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import ActuatorCommand, ActuatorValues, Asked, DriverState
from softform_interfaces.srv import Lease
from softform_recording.bag_reading import bag_parts
from softform_recording.replayed_topics import OpenRecording
from softform_ros.action_caller import ActionCaller
from softform_ros.conversions import stamp_from_seconds
from softform_ros.service_calls import wait_until_answered
from softform_system_tests.fault_injection.commander import RATE
from softform_system_tests.fault_injection.fault_class import (
    FAULT_SECONDS,
    injects,
    not_latched,
    rejects,
    vents_unheard,
)
from softform_system_tests.fault_injection.held_shape_faults import (
    HOLDER,
    HeldShape,
    free_the_robot,
    let_go,
    stays_vented,
)
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import DRIVER, NAMESPACE, RECORDER, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import inflates, is_at_rest

_ANSWER_SECONDS = 25.0
_SENT_SECONDS = 0.5
_LONG_SECONDS = 3.0
_WATCHED_SECONDS = 3.0
_HOUR = 3600.0
_PLUG_SECONDS = 2.5


@injects(
    "queued",
    "a goal to a frozen node, then stop and reset",
    "a goal to a frozen node, its client gone",
    "a goal to a node frozen for 3 s",
    "a goal that is sent again",
    "a lease, the driver frozen for 3 s",
    "a lease an hour old",
    "a lease of the epoch before",
)
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
            if wrong := stack.watch.stop_and_reset(_ANSWER_SECONDS):
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
        if "stop and reset" in variant and (wrong := stack.watch.stop_and_reset(_ANSWER_SECONDS)):
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


@injects(
    "unseen fault", "a stop, then another", "a pulled plug, then a stop", "asked for an hour ago", "that says nothing"
)
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


_PLAYED = 40
_BEGUN_SECONDS = 10.0
_RECORDED_SECONDS = 3.0
_CLOSED_SECONDS = 10.0
_VENTED_SECONDS = 3.0
_ANEW = ", stamped anew"


@injects(
    "stale bag",
    "while the robot moves",
    "when its commander has died",
    f"when its commander has died{_ANEW}",
    "beside a held shape",
    f"beside a held shape{_ANEW}",
    f"after stop and reset{_ANEW}",
)
def _inject(stack: RigStack, variant: str) -> Outcome:
    """Close the recording, and play its last commands; stamped anew, as some players do, their lease is dead."""
    commands = _recorded_commands(stack)
    anew = variant.endswith(_ANEW)

    def play() -> None:
        for command in commands:
            message = command
            if anew:
                message = deserialize_message(command, ActuatorCommand)
                message.header.stamp = stamp_from_seconds(time.time())
            stack.watch.commands.publish(message)
            time.sleep(1.0 / RATE)

    match variant.removesuffix(_ANEW):
        case "while the robot moves":
            return rejects(stack, play)
        case "beside a held shape":
            with HeldShape(stack):
                return rejects(stack, play)
        case "after stop and reset":
            began = time.monotonic()
            stack.silence_commander()
            if wrong := stack.watch.stop_and_reset(_CLOSED_SECONDS):
                return judged(wrong, hung=True)
            return stays_vented(stack, judged(None, "vented by the stop"), began, play)
    moment = stack.silence_commander()
    if not anew:  # old commands are no sign of life
        play()
    outcome = vents_unheard(stack, moment)
    wait_for(lambda: not stack.watch.lease[0], _VENTED_SECONDS)
    return stays_vented(stack, outcome, moment, play)


def _recorded_commands(stack: RigStack) -> list[bytes]:
    """The last commands (CDR) in the stack's recording, which ends by this.

    Raises:
        SoftformError: If there are none.
    """
    recorder, bag = stack.required(RECORDER), stack.bag
    wait_for(lambda: any(file.stat().st_size for file in bag.glob("*.mcap")), _BEGUN_SECONDS)
    time.sleep(_RECORDED_SECONDS)  # the recorder of the last fault's recording has just been replaced
    recorder.terminate()
    if not wait_for(lambda: not is_running(recorder), _CLOSED_SECONDS):
        raise SoftformError("The recorder did not close its bag.", "See the launch's log.")
    with OpenRecording(bag_parts(bag)) as recording:
        topics = recording.topics(["actuator_command"], with_commands=True)
        commands = [command for _, _, command in recording.messages(topics)]
    if not commands:
        raise SoftformError(f"{bag} holds no commands.", "See the launch's log.")
    return commands[-_PLAYED:]
