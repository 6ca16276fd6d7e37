"""What the two ASCII boards have in common: a guarded line, requests that are confirmed, and measurements set aside."""

import collections
import math
from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import ClassVar, Generic

import numpy as np

from softform_actuation.device import DeviceError, DeviceLostError, never
from softform_actuation.guardian import SILENCE_SECONDS
from softform_actuation.serial_link import SerialLink
from softform_core.units import PA_PER_KPA
from softform_pneumatics.boards.interface import PressureBoard
from softform_pneumatics.boards.lines import BAUD_RATE, CHANNELS, LineParser, Message

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
_REPLIES_KEPT = 64
_EVEN_CHANNEL_MIN_KPA, _ODD_CHANNEL_MIN_KPA, _CHANNEL_MAX_KPA = -100.0, 0.0, 100.0


def first_attempts(boot_seconds: float) -> int:
    """How often the first request is sent to a board that may boot slowly."""
    return max(ATTEMPTS, math.ceil(_PATIENCE * boot_seconds / REPLY_SECONDS))


class AsciiBoard(PressureBoard, Generic[Message]):
    """An OpenPneu board, whichever of its two protocols it speaks: ten channels, of which the odd know no vacuum.

    A subclass says how to shake hands, what requests and confirms a vent, and what a message means.
    """

    baud_rate = BAUD_RATE
    vent_request: ClassVar[bytes]
    vent_reply: ClassVar[Enum]

    def __init__(self, link: SerialLink, parser: LineParser[Message], boot_seconds: float) -> None:
        lowest = np.where(np.arange(CHANNELS) % 2 == 0, _EVEN_CHANNEL_MIN_KPA, _ODD_CHANNEL_MIN_KPA) * PA_PER_KPA
        super().__init__(link, parser, lowest, np.full(CHANNELS, _CHANNEL_MAX_KPA * PA_PER_KPA), boot_seconds)
        # A line end first: the driver may have died within another request.
        self.emergency = b"\r\n" + self.vent_request
        self._parser, self._first_attempts = parser, first_attempts(boot_seconds)
        self._replies: collections.deque[Message] = collections.deque(maxlen=_REPLIES_KEPT)
        self._deaf_since: float | None = None
        self._deaf_requests = 0

    def vent(self) -> bool:
        """Send the vent request, at most three times, until the board confirms it."""
        self._replies.clear()
        self._link.write(self.vent_request)  # before anything else can fail
        try:
            if self._awaited(of_kind(self.vent_reply), self.clock.now() + _FIRST_VENT_SECONDS) is None:
                # A line end first: with one lost on the wire the request was a part of what was sent before.
                self._request(b"\r\n" + self.vent_request, of_kind(self.vent_reply), ATTEMPTS - 1)
        except DeviceLostError:
            raise
        except DeviceError:
            return False
        self._is_vented = True
        return True

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


def of_kind(kind: Enum) -> Callable[[object], bool]:
    """Whether a message is a reply of this kind."""
    return lambda message: getattr(message, "kind", None) is kind
