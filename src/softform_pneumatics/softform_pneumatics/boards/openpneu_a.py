"""The OpenPneu board over Protocol A, as its published firmware speaks it."""

from collections.abc import Callable

import numpy as np

from softform_actuation.device import DeviceError, DeviceLostError, never
from softform_actuation.serial_link import SerialLink
from softform_core.arrays import Array
from softform_pneumatics.boards import protocol_a as protocol
from softform_pneumatics.boards.ascii_board import ATTEMPTS, BOOT_SECONDS, STANDSTILL_SECONDS, AsciiBoard, of_kind
from softform_pneumatics.boards.interface import Measurement
from softform_pneumatics.boards.lines import BAUD_RATE, CHANNELS
from softform_pneumatics.boards.protocol_a import Message, Reply, ReplyKind, StreamLine, StreamParser

_ADDRESS = "OpenPneu2.0"
_CONFIRM_SECONDS = 0.1
_STREAM_SECONDS = 0.5
_LOOKS = 2
_WIRE_RESOLUTION = 1.0  # Pa: the codec's last decimal
_ROUNDED = 10.0  # Pa: the board prints two decimals

# A stream line of about 62 bytes, 10 bits each, leaves the board after the measurement and arrives this much later.
_STREAM_LINE_SECONDS = 62 * 10 / BAUD_RATE


class OpenPneuBoardA(AsciiBoard[Message]):
    """The OpenPneu board over Protocol A (see `protocol_a`); booted `boot_seconds` after its port is opened.

    It vents a channel `vent_threshold` Pa above its target: its own 2 kPa are two fifths of a soft membrane's range.
    """

    vent_request, vent_reply = protocol.VENT_REQUEST, ReplyKind.STOPPED
    vent_threshold: float

    def __init__(self, link: SerialLink, vent_threshold: float, boot_seconds: float = BOOT_SECONDS) -> None:
        super().__init__(link, StreamParser(), boot_seconds)
        self.vent_threshold = vent_threshold
        self._version = ""
        self._sent = np.full(CHANNELS, np.nan)
        self._refresh = 0
        self._rejected_seen = 0

    @property
    def identity(self) -> str:
        """Which board, on which port."""
        return f"{_ADDRESS}{f' (firmware {self._version})' if self._version else ''} on {self._link.path}"

    def _shake_hands(self, interrupted: Callable[[], bool]) -> None:
        try:
            self._request(protocol.ALIVE_REQUEST, of_kind(ReplyKind.ALIVE), self._first_attempts, interrupted)
            address = self._request(protocol.ADDRESS_REQUEST, of_kind(ReplyKind.ADDRESS))
        except DeviceLostError:
            raise
        except DeviceError as error:
            if not self._link.first_bytes:
                raise DeviceError(
                    f"Nothing answers on {self._link.path} at {BAUD_RATE} baud.",
                    "Check the board's power and cable, and that 'port' names the right device.",
                ) from error
            raise DeviceError(
                f"What is on {self._link.path} does not speak the OpenPneu protocol (AT, AT+ADDRESS); its first bytes "
                f"are {self._link.first_bytes!r}.",
                "Check that 'port' names the board, and that its firmware is OpenPneu 2.0.",
            ) from error
        if not isinstance(address, Reply) or address.value != _ADDRESS:
            raise DeviceError(f"The board on {self._link.path} is '{address}'.", f"This driver is for {_ADDRESS}.")
        version = self._request(protocol.VERSION_REQUEST, of_kind(ReplyKind.VERSION))
        self._version = str(version.value) if isinstance(version, Reply) else ""

    def start(self, targets: Array) -> None:
        """Set the vent threshold and all ten targets (Pa), then start control and stream (`C`)."""
        with self._vented_if_it_fails():
            # A board that has booted meanwhile has forgotten its threshold.
            self._request(protocol.threshold_request(self.vent_threshold), self._confirms_threshold)
            self._put_targets(targets)
            self._stream()

    def _confirms_threshold(self, message: Message) -> bool:
        """Whether the board has understood the threshold, not another one: nothing would show that later."""
        return (
            isinstance(message, Reply)
            and message.kind is ReplyKind.THRESHOLD_SET
            and abs(float(message.value) - self.vent_threshold) <= _ROUNDED
        )

    def observe(self) -> None:
        """Start the stream with all channels stopped: `PP` before and after `C`, and targets of zero."""
        with self._vented_if_it_fails():
            self._put_targets(np.zeros(CHANNELS))
            self._link.write(protocol.STOP_ALL_CHANNELS_REQUEST)
            self._stream()
            self._link.write(protocol.STOP_ALL_CHANNELS_REQUEST)

    def _put_targets(self, targets: Array) -> None:
        # Late answers to what was sent before, such as the line end of a second vent, come before this one.
        self._request(protocol.ALIVE_REQUEST, of_kind(ReplyKind.ALIVE))
        rejected = self._rejected_requests
        self._forget_deafness()  # what it did not confirm before it was vented says nothing of now
        self._sent[:] = np.nan
        for attempt in range(ATTEMPTS):
            if self.set_targets(targets):
                break
            if attempt == ATTEMPTS - 1:
                raise DeviceError(f"{self.identity} does not confirm its channels.", "Check power, cable and firmware.")
        # `T=` is not answered when it is understood, and in order when it is not: this reply closes the account.
        self._request(protocol.ALIVE_REQUEST, of_kind(ReplyKind.ALIVE))
        if self._rejected_requests != rejected:
            raise DeviceError(f"{self.identity} rejected a target.", "Check the cable for disturbances.")
        self._rejected_seen = self._rejected_requests

    def _stream(self) -> None:
        self._is_vented = False
        self._measurements.clear()
        self._request(protocol.START_REQUEST, of_kind(ReplyKind.STARTED))

    def set_targets(self, targets: Array, interrupted: Callable[[], bool] = never) -> bool:
        """Send the targets that changed, the largest change first, and one that did not; see `PressureBoard`.

        A target has no reply: only its channel is confirmed beforehand, and a target that gets lost is not reported. So
        one unchanged target is sent again each time, and all are once the board has rejected something.

        Raises:
            DeviceError: If the board has confirmed no channel for half a second.
        """
        if self._rejected_requests != self._rejected_seen:
            self._rejected_seen = self._rejected_requests
            self._sent[:] = np.nan
        self._refresh = (self._refresh + 1) % CHANNELS
        for channel in self._due(targets):
            if interrupted() or not self._set_target(channel, float(targets[channel]), interrupted):
                return False
        return True

    def _due(self, targets: Array) -> list[int]:
        change = np.where(np.isnan(self._sent), np.inf, np.abs(targets - self._sent))
        change[np.isnan(targets)] = 0.0
        due = [int(c) for c in np.argsort(-change, kind="stable") if change[c] >= _WIRE_RESOLUTION / 2]
        if self._refresh not in due and not np.isnan(targets[self._refresh]):
            due.append(self._refresh)
        return due

    def _set_target(self, channel: int, pressure: float, interrupted: Callable[[], bool]) -> bool:
        asked, request = self.clock.now(), protocol.select_channel_request(channel)
        confirmed = self._ask(
            request,
            lambda reply: reply == Reply(ReplyKind.CHANNEL_SELECTED, channel),
            asked + _CONFIRM_SECONDS,
            interrupted,
        )
        if confirmed is None:
            self._count_as_deaf(request, asked)
            return False
        if self.clock.now() > asked + STANDSTILL_SECONDS:
            return False  # a target now would inflate what the guardian has vented
        self._link.write(protocol.target_request(pressure))
        self._sent[channel] = pressure
        return True

    def check_alive(self) -> None:
        """Ask for the pressure of channel 0, the only one that a vented board tells."""
        self._request(protocol.PRESSURE_REQUEST, of_kind(ReplyKind.PRESSURE))

    def measure(self) -> dict[int, float]:
        """Let the stopped board stream for a moment: nothing else tells the pressures of all channels."""
        try:
            self.observe()
            end = self.clock.now() + _STREAM_SECONDS
            while len(self._measurements) < _LOOKS and (remaining := end - self.clock.now()) > 0.0:
                self._receive(remaining)
            looks = np.array([one.pressures for one in self._measurements])
        finally:
            confirmed = self.vent()
            self._measurements.clear()
        if not confirmed:
            raise DeviceError(f"{self.identity} does not confirm that it vents.", "Cut its power and check it.")
        if len(looks) < _LOOKS:
            raise DeviceError(f"{self.identity} does not stream its pressures.", "Check its firmware and cable.")
        # The worst of several: one corrupt line that looks like a good one must not tell that a chamber is empty.
        worst = looks[np.abs(looks).argmax(axis=0), np.arange(CHANNELS)]
        return {channel: float(pressure) for channel, pressure in enumerate(worst)}

    def _take(self, message: Message, arrived: float) -> None:
        match message:
            case StreamLine(pressures):
                self._measurements.append(Measurement(np.array(pressures), arrived - _STREAM_LINE_SECONDS))
            case Reply(kind):
                self._replies.append(message)
                if kind is ReplyKind.CHANNEL_SELECTED:
                    self._forget_deafness()  # also by an answer that came too late for its request
                if kind in (ReplyKind.UNKNOWN_REQUEST, ReplyKind.UNTERMINATED_REQUEST):
                    self._rejected_requests += 1
