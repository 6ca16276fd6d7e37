"""What the two ASCII boards have in common: a guarded line, requests that are confirmed, and measurements set aside."""

import collections
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from softform_actuation.clock import Clock
from softform_actuation.device import DeviceError, DeviceLostError, never
from softform_actuation.guardian import SILENCE_SECONDS
from softform_actuation.serial_link import SerialLink
from softform_core.units import PA_PER_KPA
from softform_pneumatics.boards.interface import Measurement, WireCounters
from softform_pneumatics.boards.lines import LineParser

CHANNELS = 10
BAUD_RATE = 115200
BOOT_SECONDS = 1.5
REPLY_SECONDS = 0.3
STANDSTILL_SECONDS = 0.5 * SILENCE_SECONDS
"""A confirmation that took longer: this process stood still, and its guardian may have vented since the request."""
ATTEMPTS = 3
_FIRST_VENT_SECONDS = 0.1
"""Without a reply by then the vent is requested again; it must be on the wire within 250 ms."""
_DEAF_SECONDS = 0.5
_DEAF_REQUESTS = 5
"""So many in a row besides: over half a second in which this process did not run says nothing of the board."""

_PATIENCE = 3.0  # boots may take so many times as long as they should, before the board counts as silent
_MEASUREMENTS_KEPT = 256
_REPLIES_KEPT = 64
_EVEN_CHANNEL_MIN_KPA, _ODD_CHANNEL_MIN_KPA, _CHANNEL_MAX_KPA = -100.0, 0.0, 100.0

Message = TypeVar("Message")


def first_attempts(boot_seconds: float) -> int:
    """How often the first request is sent to a board that may boot slowly."""
    return max(ATTEMPTS, math.ceil(_PATIENCE * boot_seconds / REPLY_SECONDS))


class AsciiBoard(ABC, Generic[Message]):
    """An OpenPneu board, whichever of its two protocols it speaks.

    A subclass says how to shake hands, what the vent request is, and what a message means.
    A link that is open already is taken over by `open`.
    """

    vent_request: bytes

    def __init__(self, link: SerialLink, parser: LineParser[Message], boot_seconds: float = BOOT_SECONDS) -> None:
        self._link = link
        self._parser = parser
        self._boot_seconds = boot_seconds
        self._replies: collections.deque[Message] = collections.deque(maxlen=_REPLIES_KEPT)
        self._measurements: collections.deque[Measurement] = collections.deque(maxlen=_MEASUREMENTS_KEPT)
        self._is_vented = False
        self._rejected_requests = 0
        self._unanswered_requests = 0
        self._deaf_since: float | None = None
        self._deaf_requests = 0
        even = np.arange(CHANNELS) % 2 == 0
        self._pressure_min = np.where(even, _EVEN_CHANNEL_MIN_KPA, _ODD_CHANNEL_MIN_KPA) * PA_PER_KPA
        self._pressure_max = np.full(CHANNELS, _CHANNEL_MAX_KPA * PA_PER_KPA)

    @property
    @abstractmethod
    def identity(self) -> str:
        """Which board, on which port."""

    @property
    def clock(self) -> Clock:
        """The clock of its line."""
        return self._link.clock

    @property
    def pressure_min(self) -> NDArray[np.float64]:
        """Lowest pressure that each channel can measure, (10,) Pa: the odd channels' sensors know no vacuum."""
        return self._pressure_min

    @property
    def pressure_max(self) -> NDArray[np.float64]:
        """Highest pressure that each channel can measure, (10,) Pa."""
        return self._pressure_max

    @property
    def counters(self) -> WireCounters:
        """What went wrong on the wire so far."""
        return WireCounters(
            self._link.bytes_received,
            self._parser.dropped_bytes,
            self._parser.corrupt_lines,
            self._rejected_requests,
            self._unanswered_requests,
        )

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """Open the port, wait for the board to boot, make sure what it is, and vent it.

        Raises:
            PortError: If the port cannot be opened.
            DeviceError: If what is there is another board, or does not confirm that it vents.
        """
        self._measurements.clear()  # those of a connection before this one are no sign of life
        booted = self.clock.now()
        if not self._link.is_open:
            self._link.open(BAUD_RATE)
            booted += self._boot_seconds
        try:
            self._is_vented = True  # until it is known to be this board, nothing may be sent to it unasked
            # A line end first: the driver may have died within another request.
            self._link.guard(b"\r\n" + self.vent_request)
            self._wait_for_boot(booted, interrupted)
            self._shake_hands(interrupted)
            self._is_vented = False
            if not self.vent():
                raise DeviceError(f"{self.identity} does not confirm that it vents.", "Cut its power and check it.")
        except BaseException:
            self.close()
            raise

    def vent(self) -> bool:
        """Send the vent request, at most three times, until the board confirms it.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        self._replies.clear()
        self._link.write(self.vent_request)  # before anything else can fail
        try:
            if self._awaited(self._confirms_vent, self.clock.now() + _FIRST_VENT_SECONDS) is None:
                # A line end first: with one lost on the wire the request was a part of what was sent before.
                self._request(b"\r\n" + self.vent_request, self._confirms_vent, ATTEMPTS - 1)
        except DeviceLostError:
            raise
        except DeviceError:
            return False
        self._is_vented = True
        return True

    def close(self) -> None:
        """Close the port; the guardian leaves with it, and vents the board first if that was never confirmed."""
        self._link.close(emergency=not self._is_vented)

    def _wait_for_boot(self, booted: float, interrupted: Callable[[], bool]) -> None:
        while (remaining := booted - self.clock.now()) > 0.0 and not interrupted():
            self._receive(remaining)
            if self._measurements:
                # It streams: a driver that died left it holding pressure. Nothing else prints such lines.
                self.vent()
                return

    @property
    def _first_attempts(self) -> int:
        return first_attempts(self._boot_seconds)

    @abstractmethod
    def _shake_hands(self, interrupted: Callable[[], bool]) -> None:
        """Make sure that it is the right board; DeviceError if not."""

    @abstractmethod
    def _confirms_vent(self, message: Message) -> bool:
        """Whether a message confirms the vent request."""

    @abstractmethod
    def _take(self, message: Message, arrived: float) -> None:
        """Set one message aside."""

    def _request(
        self,
        request: bytes,
        confirms: Callable[[Message], bool],
        attempts: int = ATTEMPTS,
        interrupted: Callable[[], bool] = never,
    ) -> Message:
        for _ in range(attempts):
            reply = self._ask(request, confirms, self.clock.now() + REPLY_SECONDS, interrupted)
            if reply is not None:
                return reply
            if interrupted():
                raise DeviceError(f"Opening {self._link.path} was interrupted.", "Configure again if that is meant.")
        raise DeviceError(
            f"{self.identity} does not answer {request.decode().strip()!r} as it should.",
            "Check its power, its cable and its firmware.",
        )

    def _ask(
        self,
        request: bytes,
        confirms: Callable[[Message], bool],
        deadline: float,
        interrupted: Callable[[], bool] = never,
    ) -> Message | None:
        """Send once and return the reply that confirms; None after `deadline` or once `interrupted`."""
        self._receive(0.0)  # what is there already answers an earlier request
        self._replies.clear()
        self._link.write(request)
        return self._awaited(confirms, deadline, interrupted)

    def _awaited(
        self, confirms: Callable[[Message], bool], deadline: float, interrupted: Callable[[], bool] = never
    ) -> Message | None:
        """The reply that confirms; None after `deadline` or once `interrupted`."""
        remaining = deadline - self.clock.now()
        while not interrupted():
            self._receive(remaining)
            while self._replies:
                reply = self._replies.popleft()
                if confirms(reply):
                    return reply
            # Looked at once more after the deadline: this process may have been late, not the board.
            if remaining <= 0.0:
                self._unanswered_requests += 1
                return None
            remaining = deadline - self.clock.now()
        return None

    def _count_as_deaf(self, request: bytes, asked: float) -> None:
        """A target that was asked for at a time, s, was not confirmed.

        Raises:
            DeviceError: If the board has confirmed none for half a second, and five in a row.
        """
        self._deaf_since = self._deaf_since or asked
        self._deaf_requests += 1
        if self.clock.now() - self._deaf_since > _DEAF_SECONDS and self._deaf_requests >= _DEAF_REQUESTS:
            self._forget_deafness()
            raise DeviceError(
                f"{self.identity} does not confirm {request.decode().strip()!r}.",
                "Check its power, its cable and its firmware.",
            )

    def _forget_deafness(self) -> None:
        self._deaf_since = None
        self._deaf_requests = 0

    def _receive(self, timeout: float) -> None:
        data = self._link.receive(timeout)
        arrived = self.clock.now()
        for message in self._parser.feed(data):
            self._take(message, arrived)

    def _taken_measurements(self) -> list[Measurement]:
        measurements = list(self._measurements)
        self._measurements.clear()
        return measurements
