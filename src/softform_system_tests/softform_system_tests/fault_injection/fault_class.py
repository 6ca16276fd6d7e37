"""What a class of faults is, and what most of them look at."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from softform_interfaces.msg import DriverState
from softform_system_tests.fault_injection.commander import RATE
from softform_system_tests.fault_injection.outcome import Outcome, judged, milliseconds
from softform_system_tests.fault_injection.rig_stack import DRIVER, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import SentTarget, inflates, rested

COMMAND_TIMEOUT = 1.0
"""s without a command after which the driver vents: its parameter in config/nodes/actuation.yaml."""

VENT_PATIENCE = 3.0
"""s to wait for a vent that is due; later ones count as none."""

FAULT_SECONDS = 3.0
"""s for the driver to say so: it asks the board to confirm the vent first, three times."""

LATCHED_SECONDS = 0.6
"""s for which a latch is watched."""

_REJECTED_SECONDS = 2.5


Injection = Callable[[Any, str], Outcome]
"""Injects a variant of a fault into a stack that moves, and judges what happens; others bring back what it broke."""


class FaultClass(NamedTuple):
    """Faults of one kind: what may be injected, what does, and into which of `campaign.STACKS`."""

    variants: tuple[str, ...]
    inject: Injection
    stack: str


CLASSES: dict[str, FaultClass] = {}
"""By name; the modules of faults fill it as they are imported."""


def injects(name: str, *variants: str, stack: str = "rig") -> Callable[[Injection], Injection]:
    """Make a class of faults of a function that injects these variants."""

    def registered(inject: Injection) -> Injection:
        CLASSES[name] = FaultClass(variants, inject, stack)
        return inject

    return registered


def vents(stack: RigStack, began: float, observable: float, latches: bool = False, empties: bool = True) -> Outcome:
    """Judge a fault after which the robot must be vented, and stay so.

    When it began, and when it could be observed at the latest, a silence only when its time is up, are s of
    `time.monotonic`. If it latches, the driver must be at fault, until `reset`. If it empties, the board obeys: then
    the chambers truly have to be empty soon.
    """
    vent = stack.wire.first_vent(began, max(0.0, observable - time.monotonic()) + VENT_PATIENCE)
    if vent is None:
        return judged("no vent request came on the wire")
    vent_ms = max(0.0, milliseconds(vent.time, observable))
    wrong = not_latched(stack, vent.time) if latches else None
    found = f"vented after {vent_ms:g} ms"
    outcome = judged(wrong and f"{found}, but {wrong}", found, vent_ms)
    return rested(stack, outcome, vent.time, observable) if empties and outcome.safe else outcome


def vents_unheard(stack: RigStack, silent_since: float, period: float = 1.0 / RATE) -> Outcome:
    """Judge the vent that is due where no command comes any more; the last one was up to one period, s, old."""
    heard = max(silent_since - period, min(stack.watch.command_at, silent_since))
    return vents(stack, silent_since, heard + COMMAND_TIMEOUT)


def also_latched(stack: RigStack, outcome: Outcome, since: float, who: str, found: str) -> Outcome:
    """Judge, where the robot was vented after a moment, whether `who` is also latched since that vent."""
    if not outcome.safe:
        return outcome
    vent = stack.wire.first_vent(since, 0.0)
    assert vent is not None
    wrong = not_latched(stack, vent.time)
    more = f", but {who}{wrong}" if wrong else f"; {found}"
    return replace(outcome, safe=wrong is None, found=outcome.found + more)


def not_latched(stack: RigStack, since: float) -> str | None:
    """What let air in although the driver should be at fault since a moment, None if all is well."""
    wait_for(lambda: stack.watch.driver_state == DriverState.FAULT, FAULT_SECONDS)
    if stack.watch.driver_state != DriverState.FAULT:
        return "no fault is latched"
    time.sleep(LATCHED_SECONDS)  # the commander goes on: a latch must hold against it
    refilled = next((event for event in stack.wire.events(since) if inflates(event)), None)
    return None if refilled is None else f"{refilled.text!r} came on the wire"


def undisturbed(stack: RigStack, since: float, reported: str | None) -> Outcome:
    """Judge a fault that must not move the robot: it is held, no target is wild, and somebody reported it."""
    wrong = disturbance(stack, since) or ("nobody reported it" if reported is None else None)
    return judged(wrong, f"held; reported: {reported}")


def rejects(stack: RigStack, command: Callable[[], None]) -> Outcome:
    """Judge commands that the driver must reject, and say so, while the robot goes on."""
    rejected, began = stack.watch.count(DRIVER, "rejected commands"), time.monotonic()
    command()
    is_reported = wait_for(lambda: stack.watch.count(DRIVER, "rejected commands") > rejected, _REJECTED_SECONDS)
    return undisturbed(stack, began, stack.watch.value(DRIVER, "last rejection") if is_reported else None)


def disturbance(stack: RigStack, since: float) -> str | None:
    """How the robot's motion was disturbed since a moment, None if it was not."""
    if stack.wire.first_vent(since, 0.0) is not None:
        return "the robot was vented"
    if stack.watch.driver_left_running_since(since):
        return f"the driver did not go on: {stack.watch.driver_reason}"
    if time.monotonic() - stack.watch.values_at > _SILENT_SECONDS:
        return "no more values were measured"
    return wild_target(stack, since)


def wild_target(stack: RigStack, since: float) -> str | None:
    """The first target on the wire that is out of the robot's range or comes too fast; None if there is none."""
    robot, (device,) = stack.robot, stack.robot.devices
    last: dict[int, SentTarget] = {}
    for sent in stack.wire.targets(since):
        if sent.channel not in device.channels:
            continue
        chamber = robot.served_by(device)[device.channels.index(sent.channel)]
        low, high = robot.actuator_min[chamber] - _ROUNDING, robot.actuator_max[chamber] + _ROUNDING
        if not low <= sent.pressure <= high:
            return f"channel {sent.channel} was sent to {sent.pressure:g} Pa"
        if sent.channel in last:
            before = last[sent.channel]
            step = abs(sent.pressure - before.pressure)
            if step > robot.slew_rate[chamber] * (sent.time - before.selected + _STEP_SLACK_SECONDS) + _ROUNDING:
                return f"channel {sent.channel} was sent from {before.pressure:g} to {sent.pressure:g} Pa at once"
        last[sent.channel] = sent
    return None


_SILENT_SECONDS = 2.0
_ROUNDING = 10.0  # Pa: the wire's last decimal
_STEP_SLACK_SECONDS = 0.2
"""A loop that was held up makes one longer step, up to this: the driver bounds it."""
