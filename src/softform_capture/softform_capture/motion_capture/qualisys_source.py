"""Qualisys Track Manager over its real-time protocol (TCP)."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable

import numpy as np
from qtm_rt import QRTCommandException, QRTConnection, QRTPacket
from qtm_rt.protocol import QTMProtocol

from softform_capture.motion_capture.captured_frame import CapturedFrame, MalformedPacketError, SourceLostError
from softform_capture.motion_capture.device_clock import DeviceClock, epoch_nanoseconds
from softform_capture.motion_capture.qualisys_packets import PacketCutter, check_packet, read_labels, read_markers
from softform_core.errors import SoftformError

_PROTOCOL_VERSION = "1.25"
_SECONDS_PER_TICK = 1e-6
_FRAMES_KEPT = 100  # that wait to be received; when more come, the oldest are left out
_COMPONENTS = ["3d", "3dnolabels"]


class _CheckedProtocol(QTMProtocol):
    """The client's protocol behind a gate: only packets that are whole and consistent pass."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_disconnect: Callable[[Exception | None], None]) -> None:
        super().__init__(loop=loop, on_disconnect=on_disconnect)
        self.malformed = 0
        self._cutter = PacketCutter()

    def data_received(self, data: bytes) -> None:
        try:
            for packet in self._cutter.cut(data):
                self._pass(packet)
        except MalformedPacketError:
            self.malformed += 1
            self.transport.abort()

    def _pass(self, packet: bytes) -> None:
        try:
            check_packet(packet)
            super().data_received(packet)
        except Exception:  # the client fails in any way on an unexpected packet
            self.malformed += 1


class QualisysSource:
    """One connection to QTM.

    Attributes:
        malformed: Packets dropped because they could not be understood.
    """

    def __init__(self, server: str, port: int = 22223, patience: float = 3.0) -> None:
        self._server, self._port, self._patience = server, port, patience
        self._loop: asyncio.AbstractEventLoop | None = None
        self._protocol: _CheckedProtocol | None = None
        self._dropped = 0
        self._labels: list[str] = []
        self._clock = DeviceClock()
        self._frames: deque[tuple[QRTPacket, float]] = deque(maxlen=_FRAMES_KEPT)

    @property
    def malformed(self) -> int:
        """Packets dropped because they could not be understood, of all connections."""
        return self._dropped + (self._protocol.malformed if self._protocol is not None else 0)

    def open(self) -> None:
        """Connect, ask for the labels, start the stream.

        Raises:
            SoftformError: If QTM does not answer in time, or has no labels.
        """
        self.close()
        self._loop = asyncio.new_event_loop()
        try:
            self._loop.run_until_complete(asyncio.wait_for(self._start(), self._patience))
        except (OSError, TimeoutError, QRTCommandException, SoftformError) as error:
            self.close()
            reason = str(error) or "no answer in time"
            raise SoftformError(
                f"QTM at {self._server}:{self._port} cannot be used: {reason}",
                "Start a measurement or its preview in QTM, and let its firewall pass the port.",
            ) from error

    def receive(self, timeout: float) -> CapturedFrame | None:
        """Return the next frame, or None.

        Raises:
            SourceLostError: If QTM closed the connection or its answers are malformed.
        """
        if not self._frames:
            if self._loop is None or self._protocol is None or self._protocol.transport is None:
                raise SourceLostError("QTM closed the connection.", "It is opened again as soon as QTM answers.")
            self._loop.run_until_complete(self._wait(timeout))
        return self._captured(*self._frames.popleft()) if self._frames else None

    def close(self) -> None:
        """Disconnect."""
        loop, protocol = self._loop, self._protocol
        self._dropped = self.malformed
        self._loop = self._protocol = None
        self._frames.clear()
        self._clock = DeviceClock()
        if loop is None:
            return
        if protocol is not None and protocol.transport is not None:
            protocol.transport.abort()
        with contextlib.suppress(Exception):
            loop.run_until_complete(asyncio.sleep(0.0))
        loop.close()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        _, self._protocol = await loop.create_connection(
            lambda: _CheckedProtocol(loop, lambda _: self._news.set()), self._server, self._port
        )
        await self._protocol.set_version(_PROTOCOL_VERSION)
        connection = QRTConnection(self._protocol, timeout=self._patience)
        self._labels = read_labels(await connection.get_parameters(["3d"]))
        await connection.stream_frames(components=_COMPONENTS, on_packet=self._keep)

    def _keep(self, packet: QRTPacket) -> None:
        self._frames.append((packet, time.monotonic()))
        self._news.set()

    async def _wait(self, timeout: float) -> None:
        """Let the connection work until a frame comes or it is lost, or for `timeout` s."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), timeout)

    def _captured(self, packet: QRTPacket, arrival: float) -> CapturedFrame | None:
        positions, unlabelled = read_markers(packet)
        if len(positions) != len(self._labels):
            raise SourceLostError(
                f"QTM sends {len(positions)} markers for {len(self._labels)} labels: its settings have changed.",
                "They are asked for again.",
            )
        captured_at = epoch_nanoseconds(self._clock.host_time(packet.timestamp * _SECONDS_PER_TICK, arrival))
        seen = np.isfinite(unlabelled).all(axis=1)
        return CapturedFrame(packet.framenumber, captured_at, self._labels, positions, unlabelled[seen])
