"""Commands that must not be followed, and commanders that disagree."""

import math
import time
from collections.abc import Sequence

from softform_core.robots import Robot
from softform_interfaces.msg import ChamberPressures
from softform_system_tests.fault_injection.commander import RATE
from softform_system_tests.fault_injection.fault_class import disturbance, undisturbed, vents
from softform_system_tests.fault_injection.outcome import Outcome
from softform_system_tests.fault_injection.process_faults import COMMAND_TIMEOUT
from softform_system_tests.fault_injection.rig_stack import DRIVER, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for

_REPEATS = 5
_PAUSE_SECONDS = 0.02
_REPORTED_SECONDS = 2.5
_ALONE = "NaN, and nothing else"
_TOGETHER_SECONDS = 1.5


class WrongCommands:
    """Commands that the driver has to reject, between those that it follows."""

    name = "commands"
    variants = (
        "NaN",
        "infinity",
        "1e300 Pa",
        "above the range",
        "below the range",
        "too few chambers",
        "no chamber",
        "unknown names",
        "a name twice",
        "more names than pressures",
        _ALONE,
    )

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """Publish such commands."""
        message = wrong_command(stack.robot, variant)
        if variant == _ALONE:
            return self._alone(stack, message)
        rejected = stack.watch.count(DRIVER, "rejected commands")
        moment = time.monotonic()
        for _ in range(_REPEATS):
            stack.watch.commands.publish(message)
            time.sleep(_PAUSE_SECONDS)
        told = wait_for(lambda: stack.watch.count(DRIVER, "rejected commands") > rejected, _REPORTED_SECONDS)
        reported = stack.watch.value(DRIVER, "last rejection") if told else None
        return undisturbed(stack, self.name, variant, moment, reported)

    def _alone(self, stack: RigStack, message: ChamberPressures) -> Outcome:
        """A rejected command is no sign of life: the robot is vented as if none had come."""
        began = stack.silence_commander()
        observable = began + COMMAND_TIMEOUT - 1.0 / RATE
        while time.monotonic() < observable + _PAUSE_SECONDS:
            stack.watch.commands.publish(message)
            time.sleep(_PAUSE_SECONDS)
        return vents(stack, self.name, _ALONE, began, observable, latches=False)


def wrong_command(robot: Robot, variant: str) -> ChamberPressures:
    """A command that must be rejected."""
    names: Sequence[str] = robot.actuators
    pressures = [0.5 * float(top) for top in robot.actuator_max]
    span = float(robot.actuator_max[0] - robot.actuator_min[0])
    match variant:
        case "NaN" | "NaN, and nothing else":
            pressures[0] = math.nan
        case "infinity":
            pressures[0] = math.inf
        case "1e300 Pa":
            pressures[-1] = 1e300
        case "above the range":
            pressures[0] = float(robot.actuator_max[0]) + 0.01 * span
        case "below the range":
            pressures[0] = float(robot.actuator_min[0]) - 0.01 * span
        case "too few chambers":
            names, pressures = names[:-1], pressures[:-1]
        case "no chamber":
            names, pressures = [], []
        case "unknown names":
            names = [f"x{name}" for name in names]
        case "a name twice":
            names = [names[1], *names[1:]]
        case "more names than pressures":
            pressures = pressures[:-1]
        case _:
            raise ValueError(variant)
    return ChamberPressures(name=list(names), pressure=pressures)


class TwoCommanders:
    """Two programs that command at once: the newest command is followed, at the slew rate; either may die."""

    name = "two commanders"
    variants = ("they disagree", "one of them dies", "a stranger says one thing once", "both die")

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """Let another one command."""
        moment = time.monotonic()
        if variant == "a stranger says one thing once":
            stack.watch.commands.publish(_at_share(stack.robot, 1.0))
            time.sleep(_TOGETHER_SECONDS)
            return undisturbed(stack, self.name, variant, moment, "a valid command is followed, the next one too")
        other = stack.start_commander(0.85, 1.0)
        try:
            highest = 0.8 * float(stack.robot.actuator_max[0])
            joined = wait_for(
                lambda: any(sent.pressure > highest for sent in stack.wire.targets(moment)), 3.0 * _REPORTED_SECONDS
            )
            if not joined:
                return Outcome(self.name, variant, False, "the second commander was not followed at all")
            time.sleep(_TOGETHER_SECONDS)
            if variant == "they disagree":
                return undisturbed(stack, self.name, variant, moment, "both are valid; the newest is followed")
            other.kill()
            died = time.monotonic()
            if variant == "both die":
                died = stack.silence_commander()
                wrong = disturbance(stack, moment)
                if wrong is not None:
                    return Outcome(self.name, variant, False, wrong)
                return vents(stack, self.name, variant, died, died + COMMAND_TIMEOUT - 1.0 / RATE, latches=False)
            time.sleep(COMMAND_TIMEOUT + 1.0 / RATE)
            return undisturbed(stack, self.name, variant, moment, "the other one is followed")
        finally:
            other.kill()
            other.wait()


def _at_share(robot: Robot, share: float) -> ChamberPressures:
    pressures = robot.actuator_min + share * (robot.actuator_max - robot.actuator_min)
    return ChamberPressures(name=robot.actuators, pressure=pressures.tolist())
