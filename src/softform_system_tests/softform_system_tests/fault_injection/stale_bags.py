"""A bag whose commands are played onto the topic of the driver, as `ros2 bag play` does: none may be followed."""

import time

from rclpy.serialization import deserialize_message

from softform_core.errors import SoftformError
from softform_interfaces.msg import ActuatorCommand
from softform_recording.bag_reading import bag_parts
from softform_recording.replayed_topics import OpenRecording
from softform_ros.conversions import stamp_from_seconds
from softform_system_tests.fault_injection.commander import RATE
from softform_system_tests.fault_injection.fault_class import FaultClass, rejects, vents_unheard
from softform_system_tests.fault_injection.held_shape_faults import HeldShape, stays_vented
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import RECORDER, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for

_PLAYED = 40
_BEGUN_SECONDS = 10.0
_RECORDED_SECONDS = 3.0
_CLOSED_SECONDS = 10.0
_VENTED_SECONDS = 3.0
_ANEW = ", stamped anew"


def _inject(stack: RigStack, variant: str) -> Outcome:
    """Close the recording, and play it."""
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
            answers = [stack.watch.trigger(service, _CLOSED_SECONDS) for service in ("stop", "reset")]
            if not all(answer is not None and answer.success for answer in answers):
                return judged(f"stop and reset were answered: {answers}", hung=True)
            return stays_vented(stack, judged(None, "vented by the stop"), began, play)
    moment = stack.silence_commander()
    if not anew:  # old commands are no sign of life
        play()
    outcome = vents_unheard(stack, moment)
    wait_for(lambda: not stack.watch.lease[0], _VENTED_SECONDS)
    return stays_vented(stack, outcome, moment, play)


STALE_BAGS = FaultClass(
    (
        "while the robot moves",
        "when its commander has died",
        f"when its commander has died{_ANEW}",
        "beside a held shape",
        f"beside a held shape{_ANEW}",
        f"after stop and reset{_ANEW}",
    ),
    _inject,
)
"""The last commands of the stack's own recording; stamped anew, as some players do, their lease is dead."""


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
