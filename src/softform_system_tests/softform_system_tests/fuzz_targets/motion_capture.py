"""Entry points for fuzzers: any bytes are rejected in one way or read as what they are, soon and without a crash.

Checked beside the absence of crashes: whatever is accepted is consistent, so that no wrong frame gets past the parsers.
"""

import struct

import numpy as np
from natnet import Version
from qtm_rt import QRTPacket
from qtm_rt.packet import QRTPacketType, RTheader

from softform_capture.motion_capture import natnet_packets, qualisys_packets
from softform_capture.motion_capture.captured_frame import MalformedPacketError
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_system_tests.fuzz_targets.motion_capture_seeds import SEEDS

__all__ = ["SEEDS", "TARGETS", "fuzz_natnet", "fuzz_qualisys_settings", "fuzz_qualisys_stream"]

_SERVERS = [natnet_packets.Server(Version(*numbers), 1e7) for numbers in ((3, 0), (4, 0), (4, 1))]
_LABELS = natnet_packets.Labels(["base_1", "m01", "m02"], {(1, 1): 0, (2, 1): 1, (2, 2): 2})


def _check_points(points: Array) -> None:
    assert points.ndim == 2 and points.shape[1] == 3
    gone = np.isnan(points).any(axis=1)
    assert np.isfinite(points[~gone]).all() and np.isnan(points[gone]).all()


def fuzz_natnet(data: bytes) -> None:
    """One datagram; its first byte chooses the version of the protocol."""
    server = _SERVERS[data[0] % len(_SERVERS)] if data else _SERVERS[0]
    try:
        kind, buffer = natnet_packets.open_message(data[1:])
        if kind == natnet_packets.SERVER_INFO:
            found = natnet_packets.read_server(buffer)
            assert found.ticks > 0.0
        elif kind == natnet_packets.DESCRIPTIONS:
            labels = natnet_packets.read_labels(buffer, server.version)
            assert sorted(labels.row.values()) == list(range(len(labels.names))) == sorted(set(labels.row.values()))
        elif kind == natnet_packets.FRAME:
            frame = natnet_packets.read_frame(buffer, server, _LABELS)
            assert frame.positions.shape == (len(_LABELS.names), 3)
            assert frame.transmitted >= frame.exposed
            _check_points(frame.positions)
            assert np.isfinite(frame.unlabelled).all()
            assert 12 * len(frame.unlabelled) <= len(data)
    except (MalformedPacketError, SoftformError):  # of another version
        return


def fuzz_qualisys_stream(data: bytes) -> None:
    """A stretch of the stream from QTM, in two deliveries; its first byte says where the cut is."""
    cutter = qualisys_packets.PacketCutter()
    cut = 1 + (data[0] if data else 0)
    taken = 0
    try:
        for part in (data[1:cut], data[cut:]):
            for packet in cutter.cut(part):
                taken += len(packet)
                _read_qualisys_packet(packet)
    except MalformedPacketError:
        return
    assert taken < len(data) or not data


def _read_qualisys_packet(packet: bytes) -> None:
    assert struct.unpack_from("<I", packet)[0] == len(packet)
    try:
        qualisys_packets.check_packet(packet)
    except MalformedPacketError:
        return
    kind = QRTPacketType(RTheader.unpack_from(packet)[1])
    if kind == QRTPacketType.PacketData:
        for points in qualisys_packets.read_markers(QRTPacket(packet[RTheader.size :])):
            _check_points(points)
            assert 12 * len(points) <= len(packet)
    elif kind == QRTPacketType.PacketXML:
        fuzz_qualisys_settings(packet[RTheader.size : -1])


def fuzz_qualisys_settings(data: bytes) -> None:
    """The settings that QTM sends as XML."""
    try:
        names = qualisys_packets.read_labels(data)
    except MalformedPacketError:
        return
    assert names and all(names) and len(set(names)) == len(names)


TARGETS = (fuzz_natnet, fuzz_qualisys_stream, fuzz_qualisys_settings)
