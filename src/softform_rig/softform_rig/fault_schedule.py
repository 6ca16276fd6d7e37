"""When which fault is on, and what became of it. Without ROS."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from softform_rig.fault_kinds import Fault

Event = Literal["starts", "shows", "ends"]

Showing = Callable[[str], list[Fault]]
"""Faults of one kind that are on; the device that asks shows them from here on."""


@dataclass(frozen=True)
class FaultEvent:
    """Something that happened to a fault.

    Attributes:
        fault: The fault.
        event: It `starts` and `ends` by the schedule; it `shows` when a device first acts differently because of it.
        time: s of the schedule's clock.
    """

    fault: Fault
    event: Event
    time: float


@dataclass
class _Entry:
    fault: Fault
    starts: float
    ends: float
    reported: set[Event] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        """Whether all events of the fault have been reported."""
        return self.reported >= {"starts", "shows" if self.fault.kind.is_moment else "ends"}


class FaultSchedule:
    """When which fault is on, the planned ones counted from `begin`; devices ask it from their threads."""

    def __init__(self, planned: Iterable[Fault] = (), clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is on before `begin`, but by `inject`."""
        self._planned = tuple(planned)
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: list[_Entry] = []
        self._events: list[FaultEvent] = []

    def begin(self) -> None:
        """Let the planned faults count from now; what was on before is forgotten."""
        with self._lock:
            self._entries = []
        for fault in self._planned:
            self.inject(fault)

    def inject(self, fault: Fault) -> None:
        """Add a fault whose start counts from now."""
        with self._lock:
            starts = self._clock() + fault.start
            self._entries.append(_Entry(fault, starts, starts + fault.duration))

    def clear(self) -> None:
        """End all faults now, and drop those to come."""
        with self._lock:
            now = self._clock()
            self._entries = [entry for entry in self._entries if entry.starts <= now]
            for entry in self._entries:
                entry.ends = min(entry.ends, now)

    def on(self, kind: str) -> list[Fault]:
        """Faults of one kind that are on now, of one that lasts; the device that asks shows them from here on."""
        return [fault for fault in self.all_on() if fault.kind.name == kind]

    def all_on(self) -> list[Fault]:
        """Faults that last and are on now."""
        with self._lock:
            now = self._clock()
            return [entry.fault for entry in self._entries if entry.starts <= now < entry.ends]

    def take(self, kind: str) -> list[Fault]:
        """Faults of one kind that happens at once and whose time has come, each given once."""
        with self._lock:
            now = self._clock()
            due = [
                e for e in self._entries if e.fault.kind.name == kind and e.starts <= now and "shows" not in e.reported
            ]
            for entry in due:
                self._tell(entry, "shows", now)
            return [entry.fault for entry in due]

    def shows(self, fault: Fault) -> None:
        """A device reports that it acted differently because of this fault; only the first time counts."""
        with self._lock:
            for entry in self._entries:
                if entry.fault is fault and "shows" not in entry.reported:
                    self._tell(entry, "shows", self._clock())

    def events(self) -> list[FaultEvent]:
        """What has happened since the last call, in order of time."""
        with self._lock:
            now = self._clock()
            for entry in self._entries:
                if entry.starts <= now and "starts" not in entry.reported:
                    self._tell(entry, "starts", entry.starts)
                if entry.ends <= now and "ends" not in entry.reported and not entry.fault.kind.is_moment:
                    self._tell(entry, "ends", entry.ends)
            self._entries = [entry for entry in self._entries if not entry.is_over]
            events, self._events = sorted(self._events, key=lambda event: event.time), []
            return events

    def _tell(self, entry: _Entry, event: Event, at: float) -> None:
        entry.reported.add(event)
        self._events.append(FaultEvent(entry.fault, event, at))
