"""A QTM real-time server on loopback, after the protocol's description."""

import contextlib
import socket
import struct
import threading
import time

import numpy as np
from captured_scene import NAMES, seen

ERROR, COMMAND, XML, DATA, NO_MORE_DATA, EVENT = 0, 1, 2, 3, 4, 6


def packet(kind, content):
    return struct.pack("<II", 8 + len(content), kind) + content


def settings(names=NAMES):
    labels = "".join(f"<Label><Name>{name}</Name><RGBColor>65280</RGBColor></Label>" for name in names)
    inside = f"<AxisUpwards>+Z</AxisUpwards><Labels>{len(names)}</Labels>{labels}"
    content = f"<QTM_Parameters_Ver_1.25><The_3D>{inside}</The_3D></QTM_Parameters_Ver_1.25>"
    return packet(XML, content.encode() + b"\0")


def frame(number, positions=None, loose=(), now=None):
    """One frame of data.

    Args:
        positions: (M, 3) m, NaN where missing; None for the scene's.
        loose: Places of unlabelled markers, m.
        now: s since the measurement's start.
    """
    positions = 1000.0 * (seen(number) if positions is None else positions)
    now = time.monotonic() if now is None else now
    labelled = struct.pack("<Ihh", len(positions), 0, 0) + positions.astype("<f4").tobytes()
    others = struct.pack("<Ihh", len(loose), 0, 0)
    others += b"".join(struct.pack("<3fI", *(1000.0 * np.array(place)), 50 + i) for i, place in enumerate(loose))
    components = b"".join(struct.pack("<II", 8 + len(c), kind) + c for kind, c in ((1, labelled), (2, others)))
    return packet(DATA, struct.pack("<QII", int(1e6 * now), number, 2) + components)


class QtmServer:
    """Serves one client after another, until it is stopped."""

    def __init__(self, port=0, rate=100.0, names=NAMES):
        self.rate, self.names = rate, names
        self.number, self.hidden, self.loose, self.extra = 0, [], (), b""
        self.connected = False
        self._listener = socket.create_server(("127.0.0.1", port))
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        self._stopped, self._hang_up = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def hang_up(self):
        """Close the connection of the moment."""
        self._hang_up.set()

    def stop(self):
        self._stopped.set()
        self._thread.join()
        self._listener.close()

    def _run(self):
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            self._hang_up.clear()
            self.connected = True
            with client, contextlib.suppress(ConnectionError):
                self._serve(client)
            self.connected = False

    def _serve(self, client):
        client.sendall(packet(COMMAND, b"QTM RT Interface connected\0"))
        client.settimeout(0.5 / self.rate)
        streaming, pending, due = False, b"", time.monotonic()
        while not (self._stopped.is_set() or self._hang_up.is_set()):
            try:
                data = client.recv(4096)
                if not data:
                    return
                pending += data
            except TimeoutError:
                pass
            while len(pending) >= 8 and len(pending) >= struct.unpack_from("<I", pending)[0]:
                size = struct.unpack_from("<I", pending)[0]
                command, pending = pending[8 : size - 1].decode().lower(), pending[size:]
                if command.startswith("version"):
                    client.sendall(packet(COMMAND, b"Version set to 1.25\0"))
                elif command.startswith("getparameters"):
                    client.sendall(settings(self.names))
                elif command.startswith("streamframes"):
                    streaming = "stop" not in command
                else:
                    client.sendall(packet(ERROR, b"Parse error\0"))
            if streaming and time.monotonic() >= due:
                due = max(due + 1.0 / self.rate, time.monotonic() - 0.1)
                positions = seen(self.number)
                positions[self.hidden] = np.nan
                client.sendall(self.extra + frame(self.number, positions, self.loose))
                self.number += 1
