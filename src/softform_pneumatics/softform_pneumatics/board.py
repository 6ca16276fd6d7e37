"""Pneumatic boards behind one small interface, and the OpenPneu board behind a serial port."""

import collections
import select
import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import serial
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.units import PA_PER_KPA
from softform_pneumatics import protocol
from softform_pneumatics.guardian import Guardian
from softform_pneumatics.ports import open_port
from softform_pneumatics.protocol import LineParser, Reply, ReplyKind, StreamLine


class BoardError(SoftformError):
    """The board does not do what it was asked."""


class BoardLostError(BoardError):
    """The connection to the board is gone."""


@dataclass(frozen=True)
class Measurement:
    """Pressures of all channels at one moment.

    Args:
        pressures: (channels,) Pa gauge.
        captured: When the board measured them, in seconds of `time.monotonic`.
    """

    pressures: NDArray[np.float64]
    captured: float


class PressureBoard(Protocol):
    """What the driver needs of a board that regulates pressures by itself.

    Channels are numbered from 0; pressures are Pa gauge. Every method may raise `BoardError`, and `BoardLostError` once
    the connection is gone.
    """

    @property
    def identity(self) -> str:
        """Which board, on which port: for logs and diagnostics."""
        ...

    @property
    def pressure_min(self) -> NDArray[np.float64]:
        """Lowest pressure that each channel can measure, (channels,) Pa."""
        ...

    @property
    def pressure_max(self) -> NDArray[np.float64]:
        """Highest pressure that each channel can measure, (channels,) Pa."""
        ...

    @property
    def corrupt_lines(self) -> int:
        """What arrived and could not be understood, so far."""
        ...

    @property
    def refused_requests(self) -> int:
        """Requests that the board did not understand, so far."""
        ...

    def open(self) -> None:
        """Connect, make sure that it is the right board, and vent it."""
        ...

    def start(self) -> None:
        """Set every target to zero, then regulate and stream measurements."""
        ...

    def set_target(self, channel: int, pressure: float) -> None:
        """Give one channel a target."""
        ...

    def vent(self) -> bool:
        """Open everything to the atmosphere and stop regulating; return whether the board confirmed it."""
        ...

    def read(self, timeout: float) -> list[Measurement]:
        """Return the measurements that arrived, oldest first, waiting up to `timeout` seconds for the first."""
        ...

    def check_alive(self) -> dict[int, float]:
        """Ask a board that does not stream for a sign of life; return what pressures it tells, Pa by channel."""
        ...

    def close(self) -> None:
        """Let go of the board; never raises."""
        ...


_ADDRESS = "OpenPneu2.0"
_BOOT_SECONDS = 1.5
_REPLY_SECONDS = 0.3
_ATTEMPTS = 3
_FIRST_BYTES = 64
_MEASUREMENTS_KEPT = 256
_EVEN_CHANNEL_MIN_KPA, _ODD_CHANNEL_MIN_KPA, _CHANNEL_MAX_KPA = -100.0, 0.0, 100.0

# A stream line of about 62 bytes, 10 bits each, leaves the board after the measurement and arrives this much later.
_STREAM_LINE_SECONDS = 62 * 10 / protocol.BAUD_RATE


class OpenPneuBoard:
    """The OpenPneu board over Protocol A (see `protocol`); a `PressureBoard`."""

    def __init__(self, port: str, vent_threshold: float, boot_seconds: float = _BOOT_SECONDS) -> None:
        """Describe the board; nothing is opened before `open`.

        Args:
            port: Device path, e.g. /dev/ttyUSB0.
            vent_threshold: By how much (Pa) a channel may lie above its target before the board vents it. The board's
                own 2 kPa are two fifths of a soft membrane's range.
            boot_seconds: How long the board boots once its port is opened.
        """
        self._path = port
        self._vent_threshold = vent_threshold
        self._boot_seconds = boot_seconds
        self._port: serial.Serial | None = None
        self._guardian: Guardian | None = None
        self._parser = LineParser()
        self._replies: collections.deque[Reply] = collections.deque(maxlen=64)
        self._measurements: collections.deque[Measurement] = collections.deque(maxlen=_MEASUREMENTS_KEPT)
        self._first_bytes = b""
        self._version = ""
        self._refused_requests = 0
        self._is_vented = False
        even = np.arange(protocol.CHANNELS) % 2 == 0
        self._pressure_min = np.where(even, _EVEN_CHANNEL_MIN_KPA, _ODD_CHANNEL_MIN_KPA) * PA_PER_KPA
        self._pressure_max = np.full(protocol.CHANNELS, _CHANNEL_MAX_KPA * PA_PER_KPA)

    @property
    def identity(self) -> str:
        """Which board, on which port."""
        return f"{_ADDRESS}{f' (firmware {self._version})' if self._version else ''} on {self._path}"

    @property
    def pressure_min(self) -> NDArray[np.float64]:
        """Lowest pressure that each channel can measure, (10,) Pa: the odd channels' sensors know no vacuum."""
        return self._pressure_min

    @property
    def pressure_max(self) -> NDArray[np.float64]:
        """Highest pressure that each channel can measure, (10,) Pa."""
        return self._pressure_max

    @property
    def corrupt_lines(self) -> int:
        """Lines that could not be understood, so far."""
        return self._parser.corrupt_lines

    @property
    def refused_requests(self) -> int:
        """Requests that the board answered with an error, so far."""
        return self._refused_requests

    @property
    def guardian_process_id(self) -> int | None:
        """Process id of the guardian that vents the board should this process die; None while closed."""
        return None if self._guardian is None else self._guardian.process_id

    def open(self) -> None:
        """Open the port, wait for the board to boot, make sure what it is, vent it and set its vent threshold.

        Raises:
            PortError: If the port cannot be opened.
            BoardError: If what is there is no OpenPneu board, or does not confirm that it vents.
        """
        self._port = open_port(self._path, protocol.BAUD_RATE)
        try:
            self._parser = LineParser()
            self._replies.clear()
            self._measurements.clear()
            self._first_bytes = b""
            self._is_vented = True  # until it is known to be an OpenPneu board, nothing may be sent to it unasked
            self._guardian = Guardian(self._port.fileno(), protocol.VENT_REQUEST)
            self._wait_for_boot()
            self._shake_hands()
            self._is_vented = False
            if not self.vent():
                raise BoardError(f"{self.identity} does not confirm that it vents.", "Cut its power and check it.")
            self._request(protocol.threshold_request(self._vent_threshold), ReplyKind.THRESHOLD_SET)
        except BaseException:
            self.close()
            raise

    def _wait_for_boot(self) -> None:
        booted = time.monotonic() + self._boot_seconds
        while (remaining := booted - time.monotonic()) > 0.0:
            if self.read(remaining):
                # It streams: a driver that died left it holding pressure. Nothing else prints such lines.
                self.vent()
                return

    def _shake_hands(self) -> None:
        try:
            self._request(protocol.ALIVE_REQUEST, ReplyKind.ALIVE)
            address = self._request(protocol.ADDRESS_REQUEST, ReplyKind.ADDRESS)
        except BoardLostError:
            raise
        except BoardError as error:
            if not self._first_bytes:
                raise BoardError(
                    f"Nothing answers on {self._path} at {protocol.BAUD_RATE} baud.",
                    "Check the board's power and cable, and that 'port' names the right device.",
                ) from error
            raise BoardError(
                f"What is on {self._path} does not speak the OpenPneu protocol (AT, AT+ADDRESS); its first bytes are "
                f"{self._first_bytes!r}.",
                "Check that 'port' names the board, and that its firmware is OpenPneu 2.0.",
            ) from error
        if address.value != _ADDRESS:
            raise BoardError(f"The board on {self._path} is '{address.value}'.", f"This driver is for {_ADDRESS}.")
        self._version = str(self._request(protocol.VERSION_REQUEST, ReplyKind.VERSION).value)

    def start(self) -> None:
        """Set all ten targets to zero, then start control and stream (`C`).

        Raises:
            BoardError: If a request is not confirmed; the board is vented then.
        """
        refused = self._refused_requests
        self._is_vented = False
        try:
            for channel in range(protocol.CHANNELS):
                self.set_target(channel, 0.0)
            # `T=` is not answered when it is understood, and in order when it is not: this reply closes the account.
            self._request(protocol.ALIVE_REQUEST, ReplyKind.ALIVE)
            if self._refused_requests != refused:
                raise BoardError(f"{self.identity} refused a zero target.", "Check the cable for disturbances.")
            self._measurements.clear()
            self._request(protocol.START_REQUEST, ReplyKind.STARTED)
        except BoardLostError:
            raise
        except BoardError:
            self.vent()
            raise

    def set_target(self, channel: int, pressure: float) -> None:
        """Select `channel`, wait for the board to confirm that, and send its target (Pa).

        The target itself has no reply: only the measurements that follow tell that it was taken.

        Raises:
            BoardError: If the board does not confirm the channel.
        """
        self._request(protocol.select_channel_request(channel), ReplyKind.CHANNEL_SELECTED, channel)
        self._write(protocol.target_request(pressure))

    def vent(self) -> bool:
        """Send `V`, at most three times, until the board says that all motors stop.

        Raises:
            BoardLostError: If the connection is gone.
        """
        try:
            self._request(protocol.VENT_REQUEST, ReplyKind.STOPPED)
        except BoardLostError:
            raise
        except BoardError:
            return False
        self._is_vented = True
        return True

    def check_alive(self) -> dict[int, float]:
        """Ask for the pressure of channel 0, the only one that a vented board tells.

        Raises:
            BoardError: If it does not answer.
        """
        return {0: float(self._request(protocol.PRESSURE_REQUEST, ReplyKind.PRESSURE).value)}

    def read(self, timeout: float) -> list[Measurement]:
        """Return the measurements that arrived, waiting up to `timeout` seconds for the first one.

        Raises:
            BoardLostError: If the connection is gone.
        """
        deadline = time.monotonic() + timeout
        while not self._measurements:
            remaining = deadline - time.monotonic()
            self._receive(max(remaining, 0.0))
            if remaining <= 0.0:
                break
        measurements = list(self._measurements)
        self._measurements.clear()
        return measurements

    def close(self) -> None:
        """Close the port; the guardian leaves with it, and vents the board first if that was never confirmed."""
        if self._guardian is not None:
            self._guardian.end(vent=not self._is_vented)
            self._guardian = None
        if self._port is not None:
            self._port.close()
            self._port = None

    def _request(self, request: bytes, kind: ReplyKind, value: int | None = None) -> Reply:
        for _ in range(_ATTEMPTS):
            self._replies.clear()
            self._write(request)
            deadline = time.monotonic() + _REPLY_SECONDS
            while (remaining := deadline - time.monotonic()) > 0.0:
                self._receive(remaining)
                while self._replies:
                    reply = self._replies.popleft()
                    if reply.kind is kind and value in (None, reply.value):
                        return reply
        raise BoardError(
            f"{self.identity} does not answer {request.decode().strip()!r} with '{kind.value}'.",
            "Check its power, its cable and its firmware.",
        )

    def _receive(self, timeout: float) -> None:
        port = self._opened()
        if self._guardian is not None:
            self._guardian.beat()
        try:
            # A heartbeat is due even while the board is silent.
            ready, _, _ = select.select([port.fileno()], [], [], min(timeout, 0.1))
            if not ready:
                return
            data = port.read(4096)
        except OSError as error:
            raise self._lost(error) from error
        arrived = time.monotonic()
        self._first_bytes = (self._first_bytes + data)[:_FIRST_BYTES]
        for message in self._parser.feed(data):
            match message:
                case StreamLine(pressures):
                    self._measurements.append(Measurement(np.array(pressures), arrived - _STREAM_LINE_SECONDS))
                case Reply(kind):
                    self._replies.append(message)
                    if kind in (ReplyKind.UNKNOWN_REQUEST, ReplyKind.UNTERMINATED_REQUEST):
                        self._refused_requests += 1

    def _write(self, request: bytes) -> None:
        port = self._opened()
        try:
            port.write(request)
        except OSError as error:
            raise self._lost(error) from error

    def _opened(self) -> serial.Serial:
        if self._port is None:
            raise BoardLostError(f"{self._path} is not open.", "Configure the driver.")
        return self._port

    def _lost(self, error: OSError) -> BoardLostError:
        return BoardLostError(
            f"The connection to {self.identity} is lost: {error}.",
            "Cut the pressure supply if the robot stays inflated; check cable and power, then reset.",
        )
