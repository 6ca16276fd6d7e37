"""A NatNet server on loopback, after the protocol's description: unicast or multicast, versions 3.0 and 4.1."""

import contextlib
import socket
import struct
import threading
import time

from captured_scene import BASE, NAMES, seen

TICKS = 10_000_000
LATENCY = 0.012  # s from exposure to transmission
BASE_ID, SHEET_ID = 1, 2
OCCLUDED, POINT_CLOUD_SOLVED, MODEL_FILLED, HAS_MODEL, UNLABELLED = 0x01, 0x02, 0x04, 0x08, 0x10


def message(kind, payload):
    return struct.pack("<HH", kind, len(payload)) + payload


def text(word):
    return word.encode() + b"\0"


def server_info(version=(4, 1), group=(0, 0, 0, 0)):
    payload = b"Motive".ljust(256, b"\0") + bytes([3, 1, 0, 0]) + bytes([*version, 0, 0])
    return message(1, payload + struct.pack("<QHB4B", TICKS, 1511, any(group), *group))


def descriptions(version=(4, 1)):
    """Base markers are a rigid body; those on the sheet a trained marker set, or a second body before version 4.1."""

    def part(kind, content):
        size = struct.pack("<i", len(content)) if version >= (4, 1) else b""
        return struct.pack("<i", kind) + size + content

    def body(name, identity, names):
        content = text(name) + struct.pack("<ii3f", identity, -1, 0, 0, 0)
        content += struct.pack("<i", len(names)) + bytes(16 * len(names))
        return content + (b"".join(map(text, names)) if version >= (4, 0) else b"")

    def marker_set(name, names):
        return part(0, text(name) + struct.pack("<i", len(names)) + b"".join(map(text, names)))

    sheet = NAMES[len(BASE) :]
    parts = [marker_set("base", list(BASE)), marker_set("sheet", sheet), part(1, body("base", BASE_ID, list(BASE)))]
    if version >= (4, 1):
        markers = [text(n) + struct.pack("<i4fh", i + 1, 0, 0, 0, 0.01, 0) for i, n in enumerate(sheet)]
        head = text("sheet") + struct.pack("<iiii", 2, SHEET_ID, 0, len(markers))
        parts.append(part(6, head + b"".join(markers)))
    else:
        parts.append(part(1, body("sheet", SHEET_ID, sheet)))
    return message(5, struct.pack("<i", len(parts)) + b"".join(parts))


def frame(number, version=(4, 1), hidden=(), loose=(), positions=None, now=None):
    """One frame of data.

    Args:
        hidden: Indices of markers that are occluded; Motive then gives a made-up place.
        loose: Places of unlabelled markers.
        positions: Positions of all markers, or None for the scene's.
        now: s of the server's clock at transmission.
    """
    positions = seen(number) if positions is None else positions
    now = time.monotonic() + 1000.0 if now is None else now
    sizes = version >= (4, 1)

    def group(items):
        content = b"".join(items)
        return struct.pack("<i", len(items)) + (struct.pack("<i", len(content)) if sizes else b"") + content

    labelled = []
    for index, place in enumerate(positions):
        identity = (BASE_ID << 16) + index + 1 if index < len(BASE) else (SHEET_ID << 16) + index - len(BASE) + 1
        bits = HAS_MODEL | (OCCLUDED | MODEL_FILLED if index in hidden else POINT_CLOUD_SOLVED)
        labelled.append(struct.pack("<i3ffhf", identity, *place, 0.01, bits, 0.0001))
    labelled += [struct.pack("<i3ffhf", 77 + i, *place, 0.01, UNLABELLED, 0.0) for i, place in enumerate(loose)]
    sets = [text("all") + struct.pack("<i", len(positions)) + struct.pack(f"<{positions.size}f", *positions.ravel())]
    other = [struct.pack("<3f", *place) for place in loose]
    rigid = [struct.pack("<i3f4ffh", BASE_ID, 0, 0, 0, 0, 0, 0, 1, 0.0001, 1)]
    payload = struct.pack("<i", number) + group(sets) + group(other) + group(rigid) + group([])
    payload += (group([]) if sizes else b"") + group(labelled) + group([]) + group([])
    stamps = [int(TICKS * moment) for moment in (now - LATENCY, now - LATENCY / 2, now)]
    payload += struct.pack("<IId3Q", 0, 0, now, *stamps) + (struct.pack("<II", 0, 0) if sizes else b"")
    return message(7, payload + struct.pack("<hi", 0, 0))


class NatNetServer:
    """Streams frames to whoever connects, until it is stopped."""

    def __init__(self, port=0, version=(4, 1), rate=100.0, multicast=None):
        self.version, self.rate, self._multicast = version, rate, multicast
        self.number, self.hidden, self.loose, self.extra, self.group = 0, (), (), [], (0, 0, 0, 0)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self._socket.bind(("127.0.0.1", port))
        self.port = self._socket.getsockname()[1]
        self._clients = {multicast} if multicast else set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopped.set()
        self._thread.join()
        self._socket.close()

    def _run(self):
        due = time.monotonic()
        while not self._stopped.is_set():
            self._socket.settimeout(max(1e-4, due - time.monotonic()))
            with contextlib.suppress(TimeoutError, BlockingIOError, ConnectionError):
                self._answer(*self._socket.recvfrom(4096))
            if time.monotonic() >= due:
                due = time.monotonic() + 1.0 / self.rate
                for packet in [*self.extra, frame(self.number, self.version, self.hidden, self.loose)]:
                    for client in self._clients:
                        self._socket.sendto(packet, client)
                self.number += 1

    def _answer(self, data, client):
        kind = struct.unpack_from("<H", data)[0]
        if kind == 0:
            self._socket.sendto(server_info(self.version, self.group), client)
            if not self._multicast:
                self._clients.add(client)
        elif kind == 4:
            self._socket.sendto(descriptions(self.version), client)
