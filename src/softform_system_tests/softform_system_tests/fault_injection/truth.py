"""What the rig's actuators truly do, beside what the driver says of them."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import Robot
from softform_system_tests.fault_injection.outcome import Outcome, milliseconds
from softform_system_tests.fault_injection.wire_log_reader import TrueValues, WireLogReader

EMPTY_SECONDS = 5.0
"""s within which all actuators have to be at rest."""

_ORDER_SECONDS = 0.2
"""s by which a message may come late: what it says must have been wrong for so long."""

_FALLEN = 0.9  # of all pressure together


class Watched(Protocol):
    """A stack whose actuators can be looked at."""

    robot: Robot
    wire: WireLogReader


def is_at_rest(robot: Robot, values: Array, blind: Collection[int] = ()) -> bool:
    """Whether actuators with the true values (k,) are safe, but for those of some numbers.

    A chamber is if its pressure is within the tolerance `follow` of the safe one, a tendon also if it is slacker.
    """
    excess = values - robot.safe[: len(values)]
    may_be_lower = np.array(robot.actuator_quantities[: len(values)]) == "displacement"
    excess = np.where(may_be_lower, excess, np.abs(excess))
    allowed = robot.actuator_tolerances.follow[: len(values)]
    return bool(np.delete(excess <= allowed, list(blind)).all())


def rested(stack: Watched, outcome: Outcome, since: float, observable: float | None = None) -> Outcome:
    """Judge that all actuators truly come to rest after a moment; timed from `observable`, as is when air left.

    Moments are s of `time.monotonic`; without `observable` nothing is timed.
    """
    wire, robot = stack.wire, stack.robot
    empty = wire.first_values(lambda values: is_at_rest(robot, values), since, EMPTY_SECONDS)
    outcome = replace(outcome, at_rest=empty is not None)
    if empty is None:
        values = [one.values for one in wire.true_values(since)[-1:]]
        told = ", ".join(f"{value:.4g}" for value in values[0]) if values else "unknown"
        return replace(outcome, safe=False, found=f"{outcome.found}, but the actuators are at {told} {robot.unit}")
    if observable is None:
        return outcome
    if empty <= observable:
        return replace(outcome, falls_ms=0.0, empty_ms=0.0)
    before = wire.true_values(observable - 1.0)
    full = next((one.values.sum() for one in reversed(before) if one.time <= observable), None)
    fallen = [one.time for one in before if full and one.time > observable and one.values.sum() < _FALLEN * full]
    falls_ms = milliseconds(fallen[0], observable) if fallen else None
    return replace(outcome, falls_ms=falls_ms, empty_ms=milliseconds(empty, observable))


def false_reports(
    robot: Robot, reports: Sequence[tuple[float, str]], wire: WireLogReader, blind: Collection[int] = ()
) -> list[str]:
    """Which reports that all is safe, each with its moment, came while an actuator truly was not at rest all the time.

    Actuators of the numbers `blind` are left out: their sensors are cut off from them.
    """
    if not reports:
        return []
    samples, found = wire.true_values(reports[0][0] - 1.0), []
    times = [one.time for one in samples]
    for at, what in reports:
        first, last = np.searchsorted(times, (at - _ORDER_SECONDS, at))
        while_told: list[TrueValues] = samples[first:last]
        if while_told and not any(is_at_rest(robot, one.values, blind) for one in while_told):
            found.append(f"'{what}' at {while_told[-1].values.max():.4g} {robot.unit}")
    return found


def wait_until_high(stack: Watched, number: int, share: float, seconds: float) -> bool:
    """Wait until an actuator truly is above a share of its range; returns whether it came to that in time."""
    low, high = stack.robot.actuator_min[number], stack.robot.actuator_max[number]
    lowest = low + share * (high - low)
    return stack.wire.first_values(lambda values: bool(values[number] > lowest), time.monotonic(), seconds) is not None
