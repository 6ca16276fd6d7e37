"""OptiTrack Motive over NatNet, by multicast or unicast UDP."""

import contextlib
import select
import socket
import time

from softform_capture.motion_capture import natnet_packets as packets
from softform_capture.motion_capture.captured_frame import CapturedFrame, MalformedPacketError, SourceLostError
from softform_capture.motion_capture.device_clock import DeviceClock, epoch_nanoseconds
from softform_core.errors import SoftformError

_LARGEST_DATAGRAM = 65_535
_RECEIVE_BUFFER = 1 << 20
_ASK_AGAIN = 0.5  # s
_KEEP_ALIVE = 1.0  # s; a server forgets a unicast client that says nothing


class NatNetSource:
    """One connection to Motive.

    Args:
        server: Address of Motive's computer.
        local_address: Address of this machine's network interface.
        command_port, data_port: As set in Motive.
        multicast_group: Multicast group set in Motive; empty for unicast.
        patience: s to wait for an answer when connecting.

    Attributes:
        malformed: Packets dropped because they could not be understood, or are not the server's.
    """

    def __init__(
        self,
        server: str,
        local_address: str = "0.0.0.0",
        command_port: int = 1510,
        data_port: int = 1511,
        multicast_group: str = "",
        patience: float = 3.0,
    ) -> None:
        self.malformed = 0
        self._host, self._local_address, self._patience = server, local_address, patience
        self._command_port, self._data_port, self._multicast_group = command_port, data_port, multicast_group
        self._sockets: list[socket.socket] = []
        self._server: packets.Server | None = None
        self._labels: packets.Labels | None = None
        self._clock = DeviceClock()
        self._asked_at = self._sent_at = -float("inf")
        self._complaint = ""  # about the last packet that was dropped

    def open(self) -> None:
        """Bind the sockets and ask the server for its version and the markers' names.

        Raises:
            SoftformError: If a socket cannot be had, or the server does not answer in time.
        """
        self.close()
        try:
            self._address = (socket.gethostbyname(self._host), self._command_port)
            self._sockets.append(self._bound_socket(self._local_address, 0))
            if self._multicast_group:
                membership = socket.inet_aton(self._multicast_group) + socket.inet_aton(self._local_address)
                self._sockets.append(self._bound_socket(self._multicast_group, self._data_port, membership))
        except OSError as error:
            self.close()
            raise SoftformError(
                f"No socket for NatNet at {self._host}: {error}.",
                "Check server, local_address, multicast_group and the ports.",
            ) from error
        deadline = time.monotonic() + self._patience
        while self._server is None or self._labels is None:
            if time.monotonic() > deadline:
                missing = "answer" if self._server is None else "names of its markers"
                self.close()
                raise SoftformError(
                    f"Motive at {self._host}:{self._command_port} gives no {missing}.",
                    f"{self._complaint} Switch streaming on in Motive (Data Streaming), and let its firewall pass UDP.",
                )
            self._ask(packets.CONNECT if self._server is None else packets.REQUEST_DESCRIPTIONS)
            self._take_datagram(0.1)

    def receive(self, timeout: float) -> CapturedFrame | None:
        """Return the next frame, or None.

        Raises:
            SourceLostError: If the sockets fail.
        """
        deadline = time.monotonic() + timeout
        while True:
            self._keep_alive()
            frame = self._take_datagram(max(0.0, deadline - time.monotonic()))
            if frame is not None or time.monotonic() >= deadline:
                return frame

    def close(self) -> None:
        """Close the sockets and forget the server."""
        for one in self._sockets:
            one.close()
        self._sockets = []
        self._server = self._labels = None
        self._asked_at = -float("inf")
        self._clock = DeviceClock()

    def _bound_socket(self, address: str, port: int, membership: bytes | None = None) -> socket.socket:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            one.bind((address, port))
            one.setblocking(False)
            if membership is not None:
                one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        except OSError:
            one.close()
            raise
        return one

    def _send(self, kind: int, text: str = "") -> None:
        with contextlib.suppress(OSError):  # a server that is gone is noticed by its silence
            self._sockets[0].sendto(packets.request(kind, text), self._address)

    def _ask(self, kind: int) -> None:
        """Ask, unless that was done a moment ago."""
        if time.monotonic() - self._asked_at < _ASK_AGAIN:
            return
        self._asked_at = time.monotonic()
        self._send(kind, "Ping" if kind == packets.CONNECT else "")

    def _keep_alive(self) -> None:
        now = time.monotonic()
        if not self._multicast_group and now - self._sent_at > _KEEP_ALIVE:
            self._sent_at = now
            self._send(packets.KEEP_ALIVE)

    def _take_datagram(self, timeout: float) -> CapturedFrame | None:
        """Wait for one datagram and use it; a frame comes back."""
        try:
            ready, _, _ = select.select(self._sockets, [], [], timeout)
            if not ready:
                return None
            data, sender = ready[-1].recvfrom(_LARGEST_DATAGRAM)
        except (BlockingIOError, InterruptedError, ConnectionError):
            return None
        except (OSError, ValueError) as error:
            raise SourceLostError(f"The socket of NatNet failed: {error}.") from error
        if sender[0] != self._address[0]:
            self.malformed += 1
            return None
        try:
            return self._use(data, time.monotonic())
        except MalformedPacketError as error:
            self.malformed += 1
            self._complaint = str(error)
            return None

    def _use(self, data: bytes, arrival: float) -> CapturedFrame | None:
        kind, buffer = packets.open_message(data)
        if kind == packets.SERVER_INFO:
            if self._server is None:
                server = packets.read_server(buffer)
                if self._multicast_group and server.group not in ("", self._multicast_group):
                    raise MalformedPacketError(
                        f"The server sends to {server.group}, not to {self._multicast_group}.",
                        "If that is your Motive, set `multicast_group` as there (Data Streaming).",
                    )
                self._server, self._asked_at = server, -float("inf")
        elif self._server is None:
            return None
        elif kind == packets.DESCRIPTIONS:
            self._labels = packets.read_labels(buffer, self._server.version)
        elif kind == packets.FRAME and self._labels is not None:
            return self._captured(packets.read_frame(buffer, self._server, self._labels), self._labels, arrival)
        return None

    def _captured(self, frame: packets.Frame, labels: packets.Labels, arrival: float) -> CapturedFrame:
        if frame.strangers:
            self._ask(packets.REQUEST_DESCRIPTIONS)
        sent = self._clock.host_time(frame.transmitted, arrival)
        captured_at = epoch_nanoseconds(sent - (frame.transmitted - frame.exposed))
        return CapturedFrame(frame.number, captured_at, labels.names, frame.positions, frame.unlabelled)
