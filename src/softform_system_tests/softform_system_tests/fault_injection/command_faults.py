"""Commands that must not be followed, and commanders that disagree."""

import math
import time
from collections.abc import Sequence

from softform_core.robots import Robot
from softform_interfaces.msg import ActuatorCommand
from softform_interfaces.srv import Lease
from softform_ros.conversions import stamp_from_seconds
from softform_system_tests.fault_injection.commander import RATE
from softform_system_tests.fault_injection.fault_class import disturbance, undisturbed, vents
from softform_system_tests.fault_injection.outcome import Outcome
from softform_system_tests.fault_injection.process_faults import COMMAND_TIMEOUT
from softform_system_tests.fault_injection.rig_stack import COMMANDER, DRIVER, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for

_REPEATS = 5
_PAUSE_SECONDS = 0.02
_REPORTED_SECONDS = 2.5
_ALONE = "NaN, and nothing else"
_TOGETHER_SECONDS = 1.5
_OWN_SHARE = 0.8  # the highest that the commander asks for


class WrongCommands:
    """Commands that the driver has to reject, under the lease of who holds it, between those that it follows."""

    name = "commands"
    variants = (
        "NaN",
        "infinity",
        "1e300 Pa",
        "above the range",
        "below the range",
        "too few actuators",
        "no actuator",
        "unknown names",
        "a name twice",
        "more names than values",
        "kPa",
        "no unit",
        "a second old",
        "of the day before",
        "from the future",
        "without a stamp",
        "without a lease",
        "under a dead lease",
        "under the lease of another",
        _ALONE,
    )

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """Publish such commands."""
        if variant == _ALONE:
            return self._alone(stack)
        rejected = stack.watch.count(DRIVER, "rejected commands")
        moment = time.monotonic()
        for _ in range(_REPEATS):
            stack.watch.commands.publish(wrong_command(stack.robot, variant, stack.watch.lease, time.time()))
            time.sleep(_PAUSE_SECONDS)
        is_reported = wait_for(lambda: stack.watch.count(DRIVER, "rejected commands") > rejected, _REPORTED_SECONDS)
        reported = stack.watch.value(DRIVER, "last rejection") if is_reported else None
        return undisturbed(stack, self.name, variant, moment, reported)

    def _alone(self, stack: RigStack) -> Outcome:
        """A rejected command is no sign of life: the robot is vented as if none had come."""
        began = stack.silence_commander()
        observable = began + COMMAND_TIMEOUT - 1.0 / RATE
        while time.monotonic() < observable + _PAUSE_SECONDS:
            stack.watch.commands.publish(wrong_command(stack.robot, "NaN", stack.watch.lease, time.time()))
            time.sleep(_PAUSE_SECONDS)
        return vents(stack, self.name, _ALONE, began, observable, latches=False)


def wrong_command(robot: Robot, variant: str, lease: tuple[str, int], now: float) -> ActuatorCommand:
    """A command that must be rejected."""
    names: Sequence[str] = robot.actuators
    units: Sequence[str] = [robot.unit] * len(names)
    values = [0.5 * float(top) for top in robot.actuator_max]
    span = float(robot.actuator_max[0] - robot.actuator_min[0])
    (source, number), stamp = lease, now
    match variant:
        case "NaN":
            values[0] = math.nan
        case "infinity":
            values[0] = math.inf
        case "1e300 Pa":
            values[-1] = 1e300
        case "above the range":
            values[0] = float(robot.actuator_max[0]) + 0.01 * span
        case "below the range":
            values[0] = float(robot.actuator_min[0]) - 0.01 * span
        case "too few actuators":
            names, units, values = names[:-1], units[:-1], values[:-1]
        case "no actuator":
            names, units, values = [], [], []
        case "unknown names":
            names = [f"x{name}" for name in names]
        case "a name twice":
            names = [names[1], *names[1:]]
        case "more names than values":
            values = values[:-1]
        case "kPa":
            units, values = ["kPa", *units[1:]], [1e-3 * values[0], *values[1:]]
        case "no unit":
            units = []
        case "a second old":
            stamp = now - 1.0
        case "of the day before":
            stamp = now - 86400.0
        case "from the future":
            stamp = now + 2.0
        case "without a stamp":
            stamp = 0.0
        case "without a lease":
            source, number = "stranger", 0
        case "under a dead lease":
            number -= 1
        case "under the lease of another":
            source = "stranger"
        case _:
            raise ValueError(variant)
    command = ActuatorCommand(source=source, lease=number, name=list(names), unit=list(units), value=values)
    command.header.stamp = stamp_from_seconds(stamp)
    return command


class TwoCommanders:
    """Two programs that want to command at once: the lease goes to one, and the other one waits until it is free."""

    name = "two commanders"
    variants = ("both ask", "the holder dies", "both die")

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """Let another one ask, again and again, and command far above the first."""
        moment = time.monotonic()
        other = stack.start_commander(0.85, 1.0, "other")
        try:
            time.sleep(2.0 * _TOGETHER_SECONDS)  # it takes a second to start
            if (wrong := disturbance(stack, moment) or _followed(stack, moment)) is not None:
                return Outcome(self.name, variant, False, wrong)
            if (wrong := not_rejected(stack)) is not None:
                return Outcome(self.name, variant, False, wrong)
            if variant == "both ask":
                return undisturbed(stack, self.name, variant, moment, "the other is rejected, the first goes on")
            if variant == "both die":
                other.kill()
            died = stack.silence_commander()
            vented = vents(stack, self.name, variant, died, died + COMMAND_TIMEOUT - 1.0 / RATE, latches=False)
            if not vented.safe or variant == "both die":
                return vented
            if not wait_for(lambda: stack.watch.lease[0] == "other", _REPORTED_SECONDS):
                return Outcome(self.name, variant, False, "the other one was not given the lease")
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
