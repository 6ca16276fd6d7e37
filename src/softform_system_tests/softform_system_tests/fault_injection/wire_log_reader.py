"""What arrived on the emulated board's wire, and what pressures its chambers truly had, as the rig logs it."""

import bisect
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.units import PA_PER_KPA
from softform_core.wire_event import WireEvent

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
