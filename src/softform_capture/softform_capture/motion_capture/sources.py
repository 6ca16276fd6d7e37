"""Supported motion-capture systems and their readers, and a thread that keeps one connected."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from softform_capture.motion_capture.captured_frame import CapturedFrame, MotionCaptureSource, SourceLostError
from softform_core.errors import SoftformError

TOPICS = ("marker_frame", "mocap4r2", "point_cloud")
"""Systems whose frames come by a ROS topic: see `ros_frames`."""

NETWORK = ("vicon", "natnet", "qualisys")
"""Systems that the node connects to itself."""

_CLIENTS = {"natnet": "natnet==0.3.0", "qualisys": "qtm-rt==3.1.0"}
"""Packages that read the protocols. Vicon's is looked for by its source, as it is optional."""


def network_source(values: Mapping[str, Any]) -> MotionCaptureSource:
    """Return the system that the node's parameters ask for; nothing is opened yet.

    Raises:
        SoftformError: If `server` is empty, or the package that reads its protocol is not installed.
    """
    system, server, port = values["system"], values["server"], values["port"]
    if not server:
        raise SoftformError(f"No server for {system} is given.", "Set `server` to the address of its computer.")
    try:
        module = import_module(f"softform_capture.motion_capture.{system}_source")
    except ImportError as error:
        raise SoftformError(
            f"The client of {system} cannot be loaded: {error}.",
            f"Install it: .venv/bin/pip install {_CLIENTS.get(system, system)}.",
        ) from error
    if system == "vicon":
        return module.ViconSource(f"{server}:{port}" if port else server)
    if system == "qualisys":
        return module.QualisysSource(server, **({"port": port} if port else {}))
    given = {name: values[name] for name in ("local_address", "data_port", "multicast_group")}
    return module.NatNetSource(server, **given, **({"command_port": port} if port else {}))


_LOOK = 0.2  # s between two looks whether to stop
_SHORTEST_WAIT, _LONGEST_WAIT = 0.2, 5.0  # s before the next try


@dataclass
class ConnectionRecord:
    """State of the connection to the capture system.

    Attributes:
        connected: Whether frames can come.
        opened: Number of times it was opened.
        lost: Number of times it was lost.
        failure: Reason why it is not connected, or of the last loss; empty if it never was.
    """

    connected: bool = False
    opened: int = 0
    lost: int = 0
    failure: str = ""


class SourceThread:
    """Hands each frame of a source to `on_frame` in a thread; after `silence` s without one the connection is lost.

    Each new reason why there is none is handed to `on_failure`.
    """

    def __init__(
        self,
        source: MotionCaptureSource,
        on_frame: Callable[[CapturedFrame], None],
        silence: float = 3.0,
        on_failure: Callable[[str], object] = lambda reason: None,
    ) -> None:
        self.record = ConnectionRecord()
        self._source, self._on_frame, self._silence, self._on_failure = source, on_frame, silence, on_failure
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motion capture", daemon=True)

    @property
    def malformed(self) -> int:
        """Packets that could not be understood, so far."""
        return self._source.malformed

    def start(self) -> None:
        """Connect as soon as the system answers."""
        self._thread.start()

    def stop(self, patience: float = 10.0) -> None:
        """Disconnect; waits for at most `patience` s for the connection to end."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(patience)

    def _run(self) -> None:
        wait, told = _SHORTEST_WAIT, ""
        while not self._stopped.is_set():
            opened = self.record.opened
            try:
                self._source.open()
                self.record.connected, self.record.opened = True, opened + 1
                self._read()
            except Exception as error:  # whatever a client library raises, the next try may go well
                self.record.failure = str(error) or type(error).__name__
                if self.record.failure != told:
                    told = self.record.failure
                    self._on_failure(told)
            if self.record.connected:
                self.record.connected = False
                self.record.lost += not self._stopped.is_set()
                wait = _SHORTEST_WAIT
            self._source.close()
            self._stopped.wait(wait)
            wait = min(2.0 * wait, _LONGEST_WAIT)

    def _read(self) -> None:
        """Hand on frames until asked to stop.

        Raises:
            SourceLostError: If the connection is lost, or nothing has come for too long.
        """
        last = time.monotonic()
        while not self._stopped.is_set():
            frame = self._source.receive(_LOOK)
            if frame is not None:
                self._on_frame(frame)
                last = time.monotonic()
            elif time.monotonic() - last > self._silence:
                raise SourceLostError(f"No frame for {self._silence:g} s.", "Is the system streaming?")
