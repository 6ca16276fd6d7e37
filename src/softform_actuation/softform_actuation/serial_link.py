"""The serial line to a device: one user, heartbeats for its guardian, and one error for every way of losing it."""

import select

import serial

from softform_actuation.clock import Clock
from softform_actuation.device import DeviceError, DeviceLostError
from softform_actuation.guardian import Guardian
from softform_actuation.ports import Adapter, adapter_of, open_port

_FIRST_BYTES = 64
LONGEST_WAIT = 0.1  # s; a heartbeat is due even while the device is silent
_CHUNK = 4096


class SerialLink:
    """Bytes to and from one port, such as /dev/ttyUSB0, by the clock of the device on it.

    The USB adapter behind it is noted when it is first opened; another one is not talked to.

    Attributes:
        path: The port.
        clock: Clock of the device.
        first_bytes: What came first since it was opened.
        bytes_received: Number of bytes so far.
        for_strangers: What is written all the same when another adapter is found: a request that makes each device of
            the family safe, whichever robot it drives. None by default.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.clock = Clock()
        self.first_bytes = b""
        self.bytes_received = 0
        self.for_strangers = b""
        self._adapter: Adapter | None = None
        self._port: serial.Serial | None = None
        self._guardian: Guardian | None = None

    @property
    def is_open(self) -> bool:
        """Whether the port is held."""
        return self._port is not None

    @property
    def guardian_process_id(self) -> int | None:
        """Process id of the guardian; None while there is none."""
        return None if self._guardian is None else self._guardian.process_id

    def open(self, baud_rate: int) -> None:
        """Take the port for this process alone.

        Raises:
            PortError: If that is not possible, and why.
            DeviceError: If another adapter is there than when it was first opened: `for_strangers` was written to it.
        """
        self._port = open_port(self.path, baud_rate)
        self.first_bytes = b""
        adapter, first = adapter_of(self.path), self._adapter
        if first is not None and (adapter is None or not first.is_same(adapter)):
            try:
                self.write(self.for_strangers)
            finally:
                self.close(emergency=False)
            raise DeviceError(
                f"{self.path} is another adapter than it was: {adapter or 'an unknown one'}, not {first}.",
                "Put the cables back, or configure the driver again for what is plugged in.",
            )
        self._adapter = adapter

    def guard(self, emergency: bytes, later: bytes = b"", seconds: float = 0.0) -> None:
        """Start the guardian, which writes `emergency` to the port should this process die or hang.

        `later`, if any, follows after some seconds, unless another driver has taken the port by then.
        It takes the place of the one before, whose request is out of date: the device is safe meanwhile.

        Raises:
            DeviceError: If it cannot be started.
        """
        if self._guardian is not None:
            self._guardian.end(emergency=False)
            self._guardian = None
        try:
            self._guardian = Guardian(self._opened().fileno(), emergency, later, seconds)
        except OSError as error:
            raise _unguarded(error) from error

    def receive(self, timeout: float) -> bytes:
        """Return what arrived, waiting up to `timeout` seconds (0.1 at most) for the first byte.

        Raises:
            DeviceLostError: If the connection is gone.
            DeviceError: If the guardian was killed and cannot be started again.
        """
        port = self._opened()
        self._beat()
        try:
            ready, _, _ = select.select([port.fileno()], [], [], min(max(timeout, 0.0), LONGEST_WAIT))
            data = bytes(port.read(_CHUNK)) if ready else b""
        except OSError as error:
            raise self._lost(error) from error
        self.bytes_received += len(data)
        self.first_bytes = (self.first_bytes + data)[:_FIRST_BYTES]
        return data

    def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            DeviceLostError: If the connection is gone, or takes nothing any more.
        """
        try:
            self._opened().write(data)
        except OSError as error:
            raise self._lost(error) from error

    def close(self, emergency: bool) -> None:
        """Let go of the port; `emergency` says whether the guardian shall write the emergency bytes as it leaves."""
        try:
            if self._guardian is not None:
                self._guardian.end(emergency)
        finally:
            self._guardian = None
            if self._port is not None:
                self._port.close()
                self._port = None

    def _beat(self) -> None:
        if self._guardian is None:
            return
        try:
            self._guardian.beat()
        except OSError as error:
            raise _unguarded(error) from error

    def _opened(self) -> serial.Serial:
        if self._port is None:
            raise DeviceLostError(f"{self.path} is not open.", "Configure the driver.")
        return self._port

    def _lost(self, error: OSError) -> DeviceLostError:
        return DeviceLostError(
            f"The connection to {self.path} is lost: {error}.",
            "Cut the supply if the robot is not safe; check cable and power.",
        )


def _unguarded(error: OSError) -> DeviceError:
    return DeviceError(
        f"The driver's guardian cannot be started: {error.strerror or error}.", "Free memory and processes, then reset."
    )
