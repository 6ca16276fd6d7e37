"""QTM as a real-time server on loopback."""

import struct
import time

import emulated_qtm as qtm
import numpy as np
import pytest
from captured_scene import NAMES, PATIENCE, receive, seen

from softform_capture.motion_capture.captured_frame import MalformedPacketError, SourceLostError
from softform_capture.motion_capture.qualisys_packets import PacketCutter, check_packet, read_labels
from softform_capture.motion_capture.qualisys_source import QualisysSource
from softform_core.errors import SoftformError


@pytest.fixture
def server():
    started = qtm.QtmServer()
    yield started
    started.stop()


@pytest.fixture
def source(server):
    connected = QualisysSource("127.0.0.1", server.port, PATIENCE)
    connected.open()
    yield connected
    connected.close()


def test_markers_come_by_name_in_metres_and_occluded_ones_are_missing(server, source):
    server.hidden, server.loose = [4, 7], [(0.5, 0.4, 0.3)]
    frame = receive(source, 5)[-1]
    assert frame.names == NAMES
    assert np.flatnonzero(np.isnan(frame.positions).all(axis=1)).tolist() == [4, 7]
    assert np.nanmax(np.abs(frame.positions - seen(frame.number))) < 1e-6
    assert frame.unlabelled == pytest.approx(np.array([[0.5, 0.4, 0.3]]))
    assert 0.0 <= time.time() - frame.time < PATIENCE


def test_a_closed_connection_is_noticed_and_can_be_opened_again(server, source):
    receive(source, 2)
    server.hang_up()
    with pytest.raises(SourceLostError, match="closed the connection"):
        receive(source, 1000)
    source.open()
    assert receive(source, 2)[-1].names == NAMES


def test_markers_that_were_added_in_qtm_are_asked_for_again(server, source):
    receive(source, 1)
    server.names = NAMES[:-1]
    source.open()
    with pytest.raises(SourceLostError, match="13 markers for 12 labels"):
        receive(source, 10)


@pytest.mark.parametrize(
    "names, complaint", [([], "Label the markers"), (["a", "a"], "names its markers"), (["<x>"], "cannot be read")]
)
def test_without_different_labels_there_is_no_stream(server, names, complaint):
    server.names = names
    source = QualisysSource("127.0.0.1", server.port, PATIENCE)
    with pytest.raises(SoftformError, match=complaint):
        source.open()


def test_a_server_that_is_not_there_is_an_error_with_advice(server):
    server.stop()
    with pytest.raises(SoftformError, match=r"cannot be used.*Start a measurement"):
        QualisysSource("127.0.0.1", server.port, PATIENCE).open()


def test_malformed_packets_are_dropped_and_counted(server, source):
    short = qtm.frame(10**6)
    inside = bytearray(short)
    struct.pack_into("<I", inside, 32, 10**9)  # as many markers as that
    endless = qtm.packet(qtm.DATA, struct.pack("<QIIII", 0, 10**6, 2**32 - 1, 0, 1))  # the client would loop on these
    server.extra = bytes(inside) + endless + qtm.packet(qtm.EVENT, b"\x63") + qtm.packet(qtm.ERROR, b"?\0")
    frames, deadline = receive(source, 1), time.monotonic() + PATIENCE
    while source.malformed < 12:  # frames that came before them may wait still
        assert time.monotonic() < deadline
        frames += receive(source, 1)
    assert all(frame.number < 10**6 for frame in frames)


def test_bytes_that_are_no_packet_end_the_connection(server, source):
    receive(source, 1)
    server.extra = bytes(64)  # a packet of size 0: the client would loop on it
    with pytest.raises(SourceLostError):
        receive(source, 1000)
    assert source.malformed == 1
    server.extra = b""
    source.open()
    assert receive(source, 1)
    assert source.malformed == 1


def test_the_stream_may_be_cut_anywhere():
    stream = qtm.settings() + qtm.frame(3) + qtm.packet(qtm.EVENT, b"\x03")
    for cut in range(0, len(stream), 7):
        cutter = PacketCutter()
        packets = [*cutter.cut(stream[:cut]), *cutter.cut(stream[cut:])]
        assert b"".join(packets) == stream and len(packets) == 3
        for packet in packets:
            check_packet(packet)


@pytest.mark.parametrize("size", [0, 7, 5_000_000, 2**32 - 1])
def test_sizes_that_no_packet_has_are_rejected_at_once(size):
    with pytest.raises(MalformedPacketError):
        list(PacketCutter().cut(struct.pack("<II", size, 3)))


LABELS = "<The_3D><Label><Name>{}</Name></Label></The_3D>"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-16-le", "latin-1"])
@pytest.mark.parametrize(
    "declared",
    ['<!DOCTYPE x [<!ENTITY a "aaaa">]>', '<!DOCTYPE x SYSTEM "file:///etc/passwd">', "<!DOCTYPE x>"],
)
def test_settings_with_declarations_are_rejected_in_any_encoding(declared, encoding):
    head = f'<?xml version="1.0" encoding="{encoding[:6]}"?>'
    with pytest.raises(MalformedPacketError, match="declarations"):
        read_labels(f"{head}{declared}<x>{LABELS.format('&a;')}</x>".encode(encoding))
    assert read_labels(f"{head}<x>{LABELS.format('m&amp;1')}</x>".encode(encoding)) == ["m&1"]


@pytest.mark.parametrize("settings", [b"<a>" * 100_000, b"<a>", b"", b"\0", b"\xff\xfe", b"<x>&a;</x>", b"<x/><x/>"])
def test_settings_that_are_no_xml_are_malformed(settings):
    with pytest.raises(MalformedPacketError):
        read_labels(settings)
