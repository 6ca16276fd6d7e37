"""Motive as a NatNet server on loopback: what leaves the source is named, in metres, stamped with its capture."""

import socket
import struct
import time

import emulated_natnet as natnet
import numpy as np
import pytest
from captured_scene import BASE, NAMES, PATIENCE, receive, seen

from softform_capture.motion_capture.captured_frame import MalformedPacketError
from softform_capture.motion_capture.natnet_packets import Labels, open_message, read_frame, read_labels, read_server
from softform_capture.motion_capture.natnet_source import NatNetSource
from softform_core.errors import SoftformError

GROUP = "239.255.42.98"


@pytest.fixture
def serve():
    servers = []

    def start(**options):
        servers.append(natnet.NatNetServer(**options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def connect():
    sources = []

    def start(server, **settings):
        settings = {"local_address": "127.0.0.1", "patience": PATIENCE, **settings}
        sources.append(NatNetSource("127.0.0.1", command_port=server.port, **settings))
        sources[-1].open()
        return sources[-1]

    yield start
    for source in sources:
        source.close()


@pytest.mark.parametrize("version", [(3, 0), (4, 0), (4, 1)])
def test_markers_come_by_name_in_metres_and_occluded_ones_are_missing(serve, connect, version):
    server = serve(version=version)
    server.hidden, server.loose = (6, 12), [(0.5, 0.4, 0.3)]
    for frame in receive(connect(server), 3):
        assert frame.names == NAMES
        assert np.flatnonzero(np.isnan(frame.positions).all(axis=1)).tolist() == [6, 12]
        shown = [index for index in range(len(NAMES)) if index not in (6, 12)]
        assert np.abs(frame.positions - seen(frame.number))[shown].max() < 1e-6
        assert frame.unlabelled == pytest.approx(np.array([[0.5, 0.4, 0.3]]))


def test_frames_are_stamped_with_their_exposure(serve, connect):
    source = connect(serve())
    frames = receive(source, 30)
    latest = receive(source, 10)[-1]
    assert natnet.LATENCY - 1e-3 < time.time() - latest.time < PATIENCE
    spacing = np.diff([frame.time for frame in frames[10:]])
    assert np.median(spacing) > 0.009, "the server's clock, at 100 Hz or less, not the jitter of the arrivals"


def test_multicast_is_joined(serve, connect):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = serve(multicast=(GROUP, port))
    source = connect(server, multicast_group=GROUP, data_port=port)
    assert receive(source, 3)[-1].names == NAMES


def test_a_server_that_is_not_there_is_an_error_with_advice():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        source = NatNetSource("127.0.0.1", "127.0.0.1", silent.getsockname()[1], patience=0.3)
        with pytest.raises(SoftformError, match=r"gives no answer.*Data Streaming"):
            source.open()
    with pytest.raises(SoftformError, match="local_address"):
        NatNetSource("127.0.0.1", "192.0.2.1").open()


@pytest.mark.parametrize("version", [(2, 7), (4, 3), (4, 9), (5, 0)])
def test_another_protocol_is_rejected_by_its_number_at_once_and_in_one_sentence(serve, version):
    server = serve(version=version)
    source = NatNetSource("127.0.0.1", "127.0.0.1", server.port, patience=PATIENCE)
    began = time.monotonic()
    with pytest.raises(SoftformError) as caught:
        source.open()
    assert time.monotonic() - began < PATIENCE / 4
    assert caught.value.message == f"Motive speaks NatNet {version[0]}.{version[1]}, and versions 3.0 to 4.2 are read."
    assert caught.value.next_step.startswith("Install a Motive that speaks one of these")


def test_malformed_packets_are_dropped_and_counted(serve, connect):
    server = serve()
    whole = natnet.frame(10**6)
    server.extra = [b"", b"\x07", whole[:200], whole[:4] + b"\xff" * 400, struct.pack("<HH", 7, 60_000) + b"\0" * 50]
    source = connect(server)
    frames = receive(source, 5)
    assert all(frame.number < 10**6 for frame in frames)
    assert source.malformed >= 4 * 4, "of each frame's five, the empty one is no packet"


def test_packets_of_others_are_not_listened_to(serve, connect, monkeypatch):
    source = connect(serve())
    receive(source, 1)
    port = source._sockets[0].getsockname()[1]
    monkeypatch.setattr(source, "_address", ("127.0.0.2", source._address[1]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(natnet.frame(10**6), ("127.0.0.1", port))
    before = source.malformed
    assert source.receive(0.1) is None
    assert source.malformed > before


def test_data_of_others_on_the_group_are_dropped_and_counted(serve, connect):
    """Anybody may send to a multicast group, and to the port of a unicast client."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.2", 0))
        source = connect(serve())
        stranger.sendto(natnet.frame(10**6), ("127.0.0.1", source._sockets[0].getsockname()[1]))
        frames = receive(source, 20)
    assert all(frame.number < 10**6 for frame in frames) and source.malformed == 1


@pytest.mark.parametrize(
    ("group", "said"),
    [((239, 1, 1, 1), r"sends to 239\.1\.1\.1, not to 239\.255\.42\.98"), ((8, 8, 8, 8), r"8\.8\.8\.8, which is none")],
)
def test_a_server_that_names_another_address_is_rejected(serve, group, said):
    server = serve()
    server.group = group
    source = NatNetSource("127.0.0.1", "127.0.0.1", server.port, multicast_group=GROUP, patience=0.4)
    with pytest.raises(SoftformError, match=said):
        source.open()


def test_new_names_are_asked_for_when_an_unknown_marker_comes(serve, connect):
    server = serve()
    source = connect(server)
    source._labels = Labels(["base_1"], {(natnet.BASE_ID, 1): 0})
    deadline = time.monotonic() + PATIENCE
    while receive(source, 1)[0].names != NAMES:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("field", ["markers", "set names", "channels"])
def test_counts_beyond_the_packet_cost_neither_time_nor_memory(field):
    """The client's package alone would build a string of 4 GB for these, or read empty names without end."""
    server = read_server(open_message(natnet.server_info((4, 1)))[1])
    huge = struct.pack("<I", 2**32 - 1)
    started = time.monotonic()
    with pytest.raises(MalformedPacketError):
        if field == "set names":
            content = struct.pack("<iii", 1, 0, 8) + b"base\0" + huge
            read_labels(open_message(natnet.message(5, content))[1], server.version)
        else:
            empty = struct.pack("<ii", 0, 0)
            head = struct.pack("<i", 1) + empty * 5
            if field == "markers":
                content = head + huge + struct.pack("<i", 0)
            else:
                content = head + empty * 2 + struct.pack("<iiii", 1, 0, 5, 1) + huge
            read_frame(open_message(natnet.message(7, content))[1], server, Labels())
    assert time.monotonic() - started < PATIENCE


def test_a_frame_sent_before_its_exposure_is_malformed():
    server = read_server(open_message(natnet.server_info())[1])
    labels = read_labels(open_message(natnet.descriptions())[1], server.version)
    assert labels.names == NAMES and len(labels.row) == len(BASE) + 9
    good = natnet.frame(1, now=5.0)
    assert read_frame(open_message(good)[1], server, labels).transmitted == pytest.approx(5.0)
    stamp = struct.pack("<Q", int(natnet.TICKS * 5.0))
    with pytest.raises(MalformedPacketError, match="before it was exposed"):
        read_frame(open_message(good.replace(stamp, bytes(8)))[1], server, labels)
