"""Vicon DataStream (Nexus, Tracker, Shogun) through the optional client `pyvicon-datastream`, in a process of its own.

The client is C++ behind Python: it waits for frames while it holds the interpreter, and what it cannot cope with ends
its process. There it can do no harm: one that hangs is killed, and started anew.
"""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe

from softform_capture.motion_capture.captured_frame import CapturedFrame, SourceLostError
from softform_capture.motion_capture.vicon_reader import CLIENT, main
from softform_core.errors import SoftformError
from softform_core.units import NANOSECONDS_PER_SECOND

_START_READER = f"from {main.__module__} import main; main()"  # not -m: its frames would be of a module `__main__`


class ViconSource:
    """One connection to a DataStream server.

    Args:
        server: Address, with a port if it is not 801.
        patience: s to wait for the first frame.

    Attributes:
        malformed: Frames dropped because the client returned invalid data.
    """

    def __init__(self, server: str, patience: float = 5.0) -> None:
        self.malformed = 0
        self._server, self._patience = server, patience
        self._process: subprocess.Popen[bytes] | None = None
        self._frames: Connection | None = None

    def open(self) -> None:
        """Start the client and wait until it is connected.

        Raises:
            SoftformError: If the client is not installed, or the server does not answer in time.
        """
        self.close()
        if importlib.util.find_spec(CLIENT) is None:
            raise SoftformError(
                "The client of Vicon's DataStream is not installed.",
                "Install it: .venv/bin/pip install pyvicon-datastream==0.2.4 (GPL-3, built from source: it needs "
                "a C++ compiler).",
            )
        self._frames, theirs = Pipe(duplex=False)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START_READER, self._server, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        try:
            if self._next(self._patience) is None:
                raise SourceLostError(f"no answer within {self._patience:g} s.")
        except SourceLostError as error:
            self.close()
            raise SoftformError(
                f"Vicon at {self._server} cannot be used: {error}",
                "Is the DataStream of Nexus, Tracker or Shogun on, and does its firewall pass port 801?",
            ) from error

    def receive(self, timeout: float) -> CapturedFrame | None:
        """Return the next frame, or None.

        Raises:
            SourceLostError: If the client or its connection is gone.
        """
        said = self._next(timeout)
        if not isinstance(said, tuple):
            return None
        frame, latency = said
        if not 0.0 <= latency < 10.0:
            self.malformed += 1
            return None
        return replace(frame, captured_at=frame.captured_at - round(latency * NANOSECONDS_PER_SECOND))

    def close(self) -> None:
        """End the client at any time."""
        if self._frames is not None:
            self._frames.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._frames = self._process = None

    def _next(self, timeout: float) -> object:
        """Return the client's next answer, or None; raises its complaints."""
        if self._frames is None:
            raise SourceLostError("The client of Vicon does not run.")
        try:
            if not self._frames.poll(timeout):
                return None
            said = self._frames.recv()
        except (EOFError, OSError) as error:
            raise SourceLostError("The client of Vicon has ended.") from error
        if isinstance(said, Exception):
            raise said
        return said
