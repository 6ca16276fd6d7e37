"""The OpenPneu board over Protocol B: documented by its authors, never seen on hardware (see docs/boards.md).

The board speaks only when it is asked, and does not say of which channel a pressure is: so one pressure is asked for at
a time, and after an answer that did not come everything is dropped up to the answer to `AT+ADD`.

It lets no air out of a channel that it regulates unless that is 2 kPa above its target. So a robot at rest is not
regulated at all: its channels stay off, open to the atmosphere, until one is to have pressure.
"""

from collections.abc import Callable, Sequence

import numpy as np

from softform_actuation.device import DeviceError, DeviceLostError, never
from softform_actuation.serial_link import SerialLink
from softform_core.arrays import Array
from softform_pneumatics.boards import protocol_b as protocol
from softform_pneumatics.boards.ascii_board import BOOT_SECONDS, STANDSTILL_SECONDS, AsciiBoard, of_kind
from softform_pneumatics.boards.interface import Measurement
from softform_pneumatics.boards.lines import BAUD_RATE, CHANNELS
from softform_pneumatics.boards.protocol_b import Reply, ReplyKind, ReplyParser

_READ_SECONDS = 0.1
_ROUND_TRIP_SECONDS = 0.005
_SET_SECONDS = 0.1
_AT_REST = 500.0
"""Pa: targets of a robot at rest are zero but for what its sensors are off by."""


class OpenPneuBoardB(AsciiBoard[Reply]):
    """The OpenPneu board over Protocol B (see `protocol_b`); a `PressureBoard`."""

    vent_request, vent_reply = protocol.VENT_REQUEST, ReplyKind.STOPPED_ALL

    def __init__(self, link: SerialLink, channels: Sequence[int], boot_seconds: float = BOOT_SECONDS) -> None:
        super().__init__(link, ReplyParser(), boot_seconds)
        self._channels = list(channels)
        self._address: int | None = None
        self._measures = False
        self._in_step = True
        self._targets = self._rest = np.zeros(CHANNELS)
        self._regulates = False
        self._pressures = np.zeros(CHANNELS)
        self._unread = list(self._channels)
        self._round_started = 0.0

    @property
    def identity(self) -> str:
        """Which board, on which port."""
        address = "" if self._address is None else f" (address {self._address:02d})"
        return f"OpenPneu, Protocol B{address} on {self._link.path}"

    def _shake_hands(self, interrupted: Callable[[], bool]) -> None:
        try:
            self._request(protocol.ALIVE_REQUEST, of_kind(ReplyKind.DONE), self._first_attempts, interrupted)
            self._address = int(self._request(protocol.ADDRESS_REQUEST, of_kind(ReplyKind.ADDRESS)).value)
        except DeviceLostError:
            raise
        except DeviceError as error:
            raise DeviceError(
                f"What is on {self._link.path} does not speak OpenPneu's Protocol B (AT, AT+ADD) at {BAUD_RATE} baud; "
                f"its first bytes are {self._link.first_bytes!r}.",
                "Check the board's power and cable, and the parameters 'port' and 'board'.",
            ) from error

    def start(self, targets: Array) -> None:
        """Set all ten targets (Pa); pressures are asked for from now on.

        Channels are regulated at once if one of the targets is not that of a robot at rest, else once others are given.
        """
        self._forget_deafness()  # what it did not confirm before it was vented says nothing of now
        with self._vented_if_it_fails():
            self._targets, self._rest = targets.copy(), targets.copy()
            self._request(protocol.targets_request(targets.tolist()), of_kind(ReplyKind.DONE))
            if np.abs(targets).max() > _AT_REST:
                self._is_vented = False
                self._request(protocol.CONTROL_ALL_REQUEST, of_kind(ReplyKind.CONTROL_ALL))
                self._regulates = True
        self._begin_round()

    def observe(self) -> None:
        """Ask for pressures from now on, without regulating."""
        self._begin_round()

    def vent(self) -> bool:
        """Send `COFF:ALL`, at most three times, until the board says `ALL OFF`."""
        self._measures = self._regulates = False
        return super().vent()

    def set_targets(self, targets: Array, interrupted: Callable[[], bool] = never) -> bool:
        """Send all targets in one request, each time, and regulate from the first on that is not at rest.

        DeviceError if the board has confirmed none for half a second; see `PressureBoard`.
        """
        rejected = self._rejected_requests
        self._targets = np.where(np.isnan(targets), self._targets, targets)
        if not self._regulates and np.array_equal(self._targets, self._rest):
            return True
        request = protocol.targets_request(self._targets.tolist())
        asked = self.clock.now()
        done = self._ask(request, of_kind(ReplyKind.DONE), asked + _SET_SECONDS, interrupted) is not None
        # To regulate now would inflate what the guardian has vented, had this process stood still.
        done = done and self.clock.now() < asked + STANDSTILL_SECONDS
        if done and not self._regulates:
            self._is_vented, request = False, protocol.CONTROL_ALL_REQUEST
            reply = self._ask(request, of_kind(ReplyKind.CONTROL_ALL), asked + _SET_SECONDS, interrupted)
            done = self._regulates = reply is not None
        if done and rejected == self._rejected_requests:
            return True
        self._in_step = False
        self._count_as_deaf(request, asked)
        return False

    def _gather(self, deadline: float) -> None:
        """Ask for one pressure after the other, until all of the robot's are new."""
        remaining = deadline - self.clock.now()
        if self._measures and remaining >= _ROUND_TRIP_SECONDS:
            self._read_next(min(deadline, self.clock.now() + _READ_SECONDS))
        else:
            self._receive(remaining)

    def measure(self) -> dict[int, float]:
        """Ask for all pressures of the robot's channels."""
        readings = {}
        for channel in self._channels:
            if not self._get_in_step(self.clock.now() + _READ_SECONDS):
                raise DeviceError(f"{self.identity} does not answer.", "Check its power, its cable and its firmware.")
            unanswered = self._unanswered_requests
            readings[channel] = self._request(protocol.read_request(channel), of_kind(ReplyKind.PRESSURE)).value
            self._in_step = unanswered == self._unanswered_requests
        return readings

    def _begin_round(self) -> None:
        self._measurements.clear()
        self._measures = True
        self._unread = list(self._channels)

    def _read_next(self, deadline: float) -> None:
        channel = self._unread[0]
        if not self._get_in_step(deadline):
            return
        if len(self._unread) == len(self._channels):
            self._round_started = self.clock.now()
        rejected = self._rejected_requests
        reply = self._ask(protocol.read_request(channel), of_kind(ReplyKind.PRESSURE), deadline)
        if reply is None or rejected != self._rejected_requests:
            self._in_step = False
            return
        self._pressures[channel] = reply.value
        self._unread.pop(0)
        if not self._unread:
            self._measurements.append(Measurement(self._pressures.copy(), self._round_started))
            self._unread = list(self._channels)

    def _get_in_step(self, deadline: float) -> bool:
        """Make sure that no late answer is still to come."""
        if not self._in_step:
            self._in_step = self._ask(protocol.ADDRESS_REQUEST, of_kind(ReplyKind.ADDRESS), deadline) is not None
        return self._in_step

    def _take(self, message: Reply, arrived: float) -> None:
        self._replies.append(message)
        if message.kind is ReplyKind.DONE:
            self._forget_deafness()  # also by an answer that came too late for its request
        if message.kind in (ReplyKind.UNKNOWN_REQUEST, ReplyKind.UNTERMINATED_REQUEST):
            self._rejected_requests += 1
