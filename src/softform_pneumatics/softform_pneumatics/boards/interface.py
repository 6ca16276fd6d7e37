"""What the driver needs of a pneumatic board of any protocol, and what all of them do alike on their serial line."""

import collections
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from softform_actuation.device import DeviceError, DeviceLostError, never
from softform_actuation.serial_link import SerialLink
from softform_core.arrays import Array

_MEASUREMENTS_KEPT = 256


@dataclass(frozen=True)
class Measurement:
    """Pressures of all channels, Pa gauge, when the board `captured` them, in seconds of its clock."""

    pressures: Array
    captured: float


@dataclass
class WireCounters:
    """What went wrong on the wire so far; `corrupt` counts lines or packets, the others bytes and requests."""

    bytes_received: int
    bytes_dropped: int
    corrupt: int
    rejected_requests: int
    unanswered_requests: int


class Parser(Protocol):
    """What turns bytes into messages, and counts what is none."""

    corrupt: int
    dropped_bytes: int


class PressureBoard(ABC):
    """A board that regulates pressures by itself.

    What it says of itself when it is first opened is noted; another one that is there later is vented and not used.

    Channels are numbered from 0; pressures are Pa gauge. Every method may raise `DeviceError`, and `DeviceLostError`
    once the connection is gone. A link that is open already is taken over by `open`.

    Attributes:
        clock: The clock of its line.
        pressure_min: Lowest pressure that each channel can measure and hold, (channels,) Pa.
        pressure_max: Highest pressure that each channel can measure and hold, (channels,) Pa.
        vent_threshold: How far (Pa) above its target it vents a channel. None unless each measurement is a reading by
            which the firmware of OpenPneu decided what pump and valve do next.
    """

    baud_rate: ClassVar[int]
    emergency: bytes
    """What the guardian writes to vent it; understood behind half of another request."""
    vent_threshold: float | None = None

    def __init__(
        self, link: SerialLink, parser: Parser, pressure_min: Array, pressure_max: Array, boot_seconds: float = 0.0
    ) -> None:
        self._link, self.clock, self._counts, self._boot_seconds = link, link.clock, parser, boot_seconds
        self.pressure_min, self.pressure_max = pressure_min, pressure_max
        self._measurements: collections.deque[Measurement] = collections.deque(maxlen=_MEASUREMENTS_KEPT)
        self._is_vented = False
        self._known = ""
        self._rejected_requests = self._unanswered_requests = 0

    @property
    @abstractmethod
    def identity(self) -> str:
        """Which board, on which port: for logs, diagnostics, and to know it again."""

    @property
    def counters(self) -> WireCounters:
        """What went wrong on the wire so far."""
        return WireCounters(
            self._link.bytes_received,
            self._counts.dropped_bytes,
            self._counts.corrupt,
            self._rejected_requests,
            self._unanswered_requests,
        )

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """Open the port, wait for the board to boot, make sure what it is, and vent it; gives up once `interrupted`.

        Raises:
            PortError: If the port cannot be opened.
            DeviceError: If what is there is another board, or does not confirm that it vents.
        """
        self._measurements.clear()  # those of a connection before this one are no sign of life
        booted = self.clock.now()
        if not self._link.is_open:
            self._link.for_strangers = self.emergency  # whatever board is there instead: venting it harms nobody
            self._link.open(self.baud_rate)
            booted += self._boot_seconds
        try:
            self._is_vented = True  # until it is known to be this board, nothing may be sent to it unasked
            self._link.guard(self.emergency)
            self._wait_for_boot(booted, interrupted)
            self._shake_hands(interrupted)
            self._require_same()
            self._is_vented = False
            if not self.vent():
                raise DeviceError(f"{self.identity} does not confirm that it vents.", "Cut its power and check it.")
        except BaseException:
            self.close()
            raise

    def _require_same(self) -> None:
        found, self._known = self.identity, self._known or self.identity
        if found != self._known:
            self.vent()  # harms nobody
            raise DeviceError(
                f"{self._known} was there at configure, {found} is there now.",
                "Put the cables back, or configure the driver again for what is plugged in.",
            )

    def _wait_for_boot(self, booted: float, interrupted: Callable[[], bool]) -> None:
        while (remaining := booted - self.clock.now()) > 0.0 and not interrupted():
            self._receive(remaining)
            if self._measurements:
                # It streams: a driver that died left it holding pressure. Nothing else sends such messages.
                self.vent()
                return

    @contextlib.contextmanager
    def _vented_if_it_fails(self) -> Iterator[None]:
        """Vent it on a `DeviceError`, unless the connection is gone."""
        try:
            yield
        except DeviceLostError:
            raise
        except DeviceError:
            self.vent()
            raise

    @abstractmethod
    def _shake_hands(self, interrupted: Callable[[], bool]) -> None:
        """Make sure that it is the right board; DeviceError if not."""

    @abstractmethod
    def start(self, targets: Array) -> None:
        """Set every target, (channels,) Pa, then regulate and stream measurements; what fails ends vented."""

    @abstractmethod
    def set_targets(self, targets: Array, interrupted: Callable[[], bool] = never) -> bool:
        """Keep the board at these targets, (channels,) Pa: called again and again, for what is lost is sent anew.

        NaN leaves a channel at the target it has.

        Stops early once `interrupted` says so; what was left comes first the next time. Returns whether all changed
        targets were sent.
        """

    @abstractmethod
    def observe(self) -> None:
        """Stream measurements while everything is open to the atmosphere and nothing is regulated; `vent` ends it."""

    @abstractmethod
    def vent(self) -> bool:
        """Open everything to the atmosphere and stop regulating; return whether the board confirmed it."""

    def read(self, timeout: float) -> list[Measurement]:
        """Return the measurements that arrived, oldest first, waiting up to `timeout` seconds for the first."""
        deadline = self.clock.now() + timeout
        while not self._measurements:
            remaining = deadline - self.clock.now()
            self._gather(deadline)
            if remaining <= 0.0:
                break
        measurements = list(self._measurements)
        self._measurements.clear()
        return measurements

    def _gather(self, deadline: float) -> None:
        """Take what arrives up to `deadline`, s; a board that speaks only when it is asked is asked."""
        self._receive(deadline - self.clock.now())

    @abstractmethod
    def _receive(self, timeout: float) -> None:
        """Take what arrives within `timeout` s."""

    @abstractmethod
    def measure(self) -> dict[int, float]:
        """Ask a vented board for the pressures of all channels that the robot uses, Pa by channel; it stays vented.

        Raises:
            DeviceError: If it does not tell them.
        """

    def check_alive(self) -> None:
        """Ask a vented board for a sign of life; by default it is measured.

        Raises:
            DeviceError: If it does not answer.
        """
        self.measure()

    def close(self) -> None:
        """Close the port; the guardian leaves with it, and vents the board first if that was never confirmed."""
        self._link.close(emergency=not self._is_vented)
