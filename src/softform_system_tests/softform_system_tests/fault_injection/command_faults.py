"""Commands that must not be followed, and commanders that disagree."""

import math
import time
from collections.abc import Callable
from typing import Any

from std_msgs.msg import Header

from softform_core.robots import Robot, load_robot
from softform_interfaces.msg import ActuatorCommand
from softform_interfaces.srv import Lease
from softform_ros.conversions import stamp_from_seconds
from softform_system_tests.fault_injection.commander import RATE
from softform_system_tests.fault_injection.fault_class import (
    COMMAND_TIMEOUT,
    disturbance,
    injects,
    rejects,
    undisturbed,
    vents_unheard,
)
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import COMMANDER, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for

_REPEATS = 5
_PAUSE_SECONDS = 0.02
_REPORTED_SECONDS = 2.5
_ALONE = "NaN, and nothing else"
_TOGETHER_SECONDS = 1.5
_OWN_SHARE = 0.8  # the highest that the commander asks for


def _wrong_commands(stack: RigStack, variant: str) -> Outcome:
    """Publish commands under the lease of who holds it, between those that the driver follows."""
    if variant == _ALONE:
        return _alone(stack)

    def command() -> None:
        for _ in range(_REPEATS):
            stack.watch.commands.publish(wrong_command(stack.robot, variant, stack.watch.command, time.time()))
            time.sleep(_PAUSE_SECONDS)

    return rejects(stack, command)


def _alone(stack: RigStack) -> Outcome:
    """A rejected command is no sign of life: the robot is vented as if none had come."""
    began = stack.silence_commander()
    while time.monotonic() < began + COMMAND_TIMEOUT - 1.0 / RATE + _PAUSE_SECONDS:
        stack.watch.commands.publish(wrong_command(stack.robot, "NaN", stack.watch.command, time.time()))
        time.sleep(_PAUSE_SECONDS)
    return vents_unheard(stack, began)


def wrong_command(robot: Robot, variant: str, right: ActuatorCommand, now: float) -> ActuatorCommand:
    """A command that must be rejected, under the lease of a right one and with its key, which whoever listens has."""
    values = [0.5 * float(top) for top in robot.actuator_max]
    units = robot.actuator_units
    command = ActuatorCommand(
        source=right.source,
        lease=right.lease,
        key=right.key,
        fingerprint=right.fingerprint,
        name=list(robot.actuators),
        unit=units,
        value=values,
    )
    command.header.stamp = stamp_from_seconds(now)
    for field, value in _WRONG[variant](command, robot, now).items():
        setattr(command, field, value)
    return command


def _beyond(robot: Robot, share: float) -> float:
    """A value at a share of the first actuator's range."""
    low, high = float(robot.actuator_min[0]), float(robot.actuator_max[0])
    return low + share * (high - low)


def _stamped(seconds: float) -> dict[str, Any]:
    return {"header": Header(stamp=stamp_from_seconds(seconds))}


_WRONG: dict[str, Callable[[ActuatorCommand, Robot, float], dict[str, Any]]] = {
    "NaN": lambda right, robot, now: {"value": [math.nan, *right.value[1:]]},
    "infinity": lambda right, robot, now: {"value": [math.inf, *right.value[1:]]},
    "1e300 Pa": lambda right, robot, now: {"value": [*right.value[:-1], 1e300]},
    "above the range": lambda right, robot, now: {"value": [_beyond(robot, 1.01), *right.value[1:]]},
    "below the range": lambda right, robot, now: {"value": [_beyond(robot, -0.01), *right.value[1:]]},
    "too few actuators": lambda right, robot, now: {
        field: getattr(right, field)[:-1] for field in ("name", "unit", "value")
    },
    "no actuator": lambda right, robot, now: {"name": [], "unit": [], "value": []},
    "unknown names": lambda right, robot, now: {"name": [f"x{name}" for name in right.name]},
    "a name twice": lambda right, robot, now: {"name": [right.name[1], *right.name[1:]]},
    "more names than values": lambda right, robot, now: {"value": right.value[:-1]},
    "kPa": lambda right, robot, now: {
        "unit": ["kPa", *right.unit[1:]],
        "value": [1e-3 * right.value[0], *right.value[1:]],
    },
    "no unit": lambda right, robot, now: {"unit": []},
    "a second old": lambda right, robot, now: _stamped(now - 1.0),
    "of the day before": lambda right, robot, now: _stamped(now - 86400.0),
    "from the future": lambda right, robot, now: _stamped(now + 2.0),
    "without a stamp": lambda right, robot, now: _stamped(0.0),
    "without a lease": lambda right, robot, now: {"source": "stranger", "lease": 0},
    "under a dead lease": lambda right, robot, now: {"lease": right.lease - 1},
    "without its key": lambda right, robot, now: {"key": 0},
    "for another robot": lambda right, robot, now: {"fingerprint": load_robot("compressible").command_fingerprint()},
    "for no robot": lambda right, robot, now: {"fingerprint": ""},
    "under the lease of another": lambda right, robot, now: {"source": "stranger"},
}
"""In which fields a wrong command differs from a right one."""

injects("commands", *_WRONG, _ALONE)(_wrong_commands)


@injects("two commanders", "both ask", "the holder dies", "both die")
def _two_commanders(stack: RigStack, variant: str) -> Outcome:
    """Let another one ask, again and again, and command far above the first."""
    moment = time.monotonic()
    other = stack.start_commander(0.85, 1.0, "other")
    try:
        time.sleep(2.0 * _TOGETHER_SECONDS)  # it takes a second to start
        if (wrong := disturbance(stack, moment) or _followed(stack, moment) or not_rejected(stack)) is not None:
            return judged(wrong)
        if variant == "both ask":
            return undisturbed(stack, moment, "the other is rejected, the first goes on")
        if variant == "both die":
            other.kill()
        vented = vents_unheard(stack, stack.silence_commander())
        if not vented.safe or variant == "both die":
            return vented
        if not wait_for(lambda: stack.watch.lease[0] == "other", _REPORTED_SECONDS):
            return judged("the other one was not given the lease")
        return vented
    finally:
        other.kill()
        other.wait()


def not_rejected(stack: RigStack) -> str | None:
    """Answer to another request for the lease; None if it was rejected with the name of the holder."""
    answer = stack.watch.ask_for_lease("stranger", _REPORTED_SECONDS)
    if answer is None:
        return "the driver does not answer who asks for the lease"
    rejected = not answer.success and answer.error_code == Lease.Response.HELD
    if rejected and answer.holder == COMMANDER and COMMANDER in answer.message:
        return None
    return f"the commander that asked for the lease got the answer: {answer.message or 'you hold it'}"


def _followed(stack: RigStack, since: float) -> str | None:
    """What the other commander moved, None if nothing."""
    highest = (_OWN_SHARE + 0.03) * float(stack.robot.actuator_max[0])
    seen = next((sent for sent in stack.wire.targets(since) if sent.pressure > highest), None)
    return None if seen is None else f"the other commander was followed to {seen.pressure:g} Pa"
