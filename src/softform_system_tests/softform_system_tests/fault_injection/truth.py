"""What truly happened: requests on the wire, values of the actuators, beside what the driver says of them."""

import bisect
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import Robot
from softform_core.units import PA_PER_KPA
from softform_core.wire_event import WireEvent
from softform_system_tests.fault_injection.outcome import Outcome, milliseconds

_POLL_SECONDS = 0.01
_SELECT, _TARGET, _VENT = "SC=", "T=", "V"


@dataclass(frozen=True)
class SentTarget:
    """A target that reached the board: which channel, Pa, when.

    It was sent after its channel was `selected`; a board that slept meanwhile reads it, at `time`, only when it wakes.
    """

    selected: float
    time: float
    channel: int
    pressure: float


class TrueValues(NamedTuple):
    """What the actuators truly had at a moment, s of `time.monotonic`: (k,) in the unit of the robot's description."""

    time: float
    values: Array


class WireLogReader:
    """Reads the log while the rig writes it."""

    def __init__(self, path: Path) -> None:
        """Keep where it is; it may not be there yet."""
        self._path = path
        self._offset = 0
        self._rest = ""
        self._events: list[WireEvent] = []
        self._true: list[TrueValues] = []
        self._lock = threading.Lock()

    def events(self, since: float) -> list[WireEvent]:
        """Everything after a moment, s of `time.monotonic`."""
        with self._lock:
            self._read()
            return list(self._newest_first(since))[::-1]

    def first(self, matches: Callable[[WireEvent], bool], since: float, seconds: float) -> WireEvent | None:
        """The first event after `since` that matches, waited for up to `seconds` from now; None if none came."""
        deadline = time.monotonic() + seconds
        while True:
            found = next(filter(matches, self.events(since)), None)
            if found is not None or time.monotonic() > deadline:
                return found
            time.sleep(_POLL_SECONDS)

    def first_vent(self, since: float, seconds: float) -> WireEvent | None:
        """The first vent request, as `first`."""
        return self.first(is_vent, since, seconds)

    def targets(self, since: float) -> list[SentTarget]:
        """Targets that were sent, with the channel that was selected before."""
        channel, selected, sent = -1, 0.0, []
        for event in self.events(since):
            if event.side == "host" and event.text.startswith(_SELECT):
                channel, selected = int(event.text.removeprefix(_SELECT)), event.time
            elif event.side == "host" and event.text.startswith(_TARGET) and channel >= 0:
                kilopascal = float(event.text.removeprefix(_TARGET))
                sent.append(SentTarget(selected, event.time, channel, kilopascal * PA_PER_KPA))
        return sent

    def true_values(self, since: float) -> list[TrueValues]:
        """What the actuators truly had after a moment, s of `time.monotonic`."""
        with self._lock:
            self._read()
            return self._true[bisect.bisect_right(self._true, since, key=lambda one: one.time) :]

    def first_values(self, matches: Callable[[Array], bool], since: float, seconds: float) -> float | None:
        """When the true values (k,) first matched after `since`; None if they do not within `seconds` from now."""
        deadline = time.monotonic() + seconds
        while True:
            found = next((one.time for one in self.true_values(since) if matches(one.values)), None)
            if found is not None or time.monotonic() > deadline:
                return found
            time.sleep(_POLL_SECONDS)

    def _newest_first(self, since: float) -> Iterator[WireEvent]:
        for event in reversed(self._events):
            if event.time <= since:
                return
            yield event

    def _read(self) -> None:
        if not self._path.exists():
            return
        with self._path.open(encoding="latin-1", newline="\n") as file:
            file.seek(self._offset)
            text = file.read()
            self._offset = file.tell()
        *lines, self._rest = (self._rest + text).split("\n")
        for event in map(WireEvent.from_line, lines):
            if event.side == "true":
                self._true.append(TrueValues(event.time, np.array(event.text.split(), dtype=float)))
            else:
                self._events.append(event)


def is_vent(event: WireEvent) -> bool:
    """Whether it asks the board to vent."""
    return event.side == "host" and event.text == _VENT


def inflates(event: WireEvent) -> bool:
    """Whether it gives a chamber a target above ambient; a board that is started at zero targets measures only."""
    return event.side == "host" and event.text.startswith(_TARGET) and float(event.text.removeprefix(_TARGET)) > 0.0


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
        while_told, then = samples[first:last], _between(samples[max(0, last - 1) : last + 1], at)
        if while_told and not any(is_at_rest(robot, one.values, blind) for one in [*while_told, *then]):
            found.append(f"'{what}' at {while_told[-1].values.max():.4g} {robot.unit}")
    return found


def _between(neighbours: Sequence[TrueValues], at: float) -> list[TrueValues]:
    """What the actuators had at a moment between two samples, 33 ms apart: a tendon goes by 2 mm meanwhile."""
    if len(neighbours) < 2:
        return []
    (begin, before), (end, after) = neighbours
    share = float(np.interp(at, (begin, end), (0.0, 1.0)))
    return [TrueValues(at, before + share * (after - before))]


def wait_until_high(stack: Watched, number: int, share: float, seconds: float) -> bool:
    """Wait until an actuator truly is above a share of its range; returns whether it came to that in time."""
    low, high = stack.robot.actuator_min[number], stack.robot.actuator_max[number]
    lowest = low + share * (high - low)
    return stack.wire.first_values(lambda values: bool(values[number] > lowest), time.monotonic(), seconds) is not None
