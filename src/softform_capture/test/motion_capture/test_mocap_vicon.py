"""Vicon through an emulated client with the interface of the real one, in a process of its own as the real one."""

import time

import numpy as np
import pytest
from captured_scene import PATIENCE, receive

from softform_capture.motion_capture.captured_frame import SourceLostError
from softform_capture.motion_capture.vicon_source import ViconSource
from softform_core.errors import SoftformError


@pytest.fixture
def connect(emulated_vicon):
    sources = []

    def start(server):
        sources.append(ViconSource(server, PATIENCE))
        sources[-1].open()
        return sources[-1]

    yield start
    for source in sources:
        source.close()


def test_markers_come_by_name_in_metres_with_their_latency(connect, emulated_vicon):
    markers = emulated_vicon.MARKERS
    source = connect("good:801")
    frames = receive(source, 5)
    for frame in frames:
        assert frame.names == [*markers["base"], *markers["sheet"]]
        missing = np.isnan(frame.positions).any(axis=1)
        assert [name for name, gone in zip(frame.names, missing, strict=True) if gone] == ["m05"]
        true = [emulated_vicon.place(group, name, frame.number) for group in markers for name in markers[group]]
        assert np.abs(frame.positions - true)[~missing].max() < 1e-9
        assert frame.unlabelled == pytest.approx(np.array([[0.5, 0.5, 0.5]]))
    numbers = [frame.number for frame in frames]
    assert numbers == sorted(set(numbers)) and 3 not in numbers, "each frame once, and none that is not there"
    assert 0.015 <= time.time() - frames[-1].time < PATIENCE
    process = source._process
    source.close()
    assert process.poll() is not None


@pytest.mark.parametrize("ending", ["gone", "dies"])
def test_a_lost_connection_and_a_crash_of_the_client_are_reported_and_repaired(connect, ending):
    source = connect(ending)
    with pytest.raises(SourceLostError, match="NotConnected" if ending == "gone" else "has ended"):
        receive(source, 100)
    if ending == "dies":
        source.open()
        assert receive(source, 1)


def test_a_client_that_hangs_is_killed(connect):
    source = connect("hangs")
    receive(source, 15)
    while source.receive(0.3) is not None:
        pass
    process, started = source._process, time.monotonic()
    source.close()
    assert process.poll() is not None and time.monotonic() - started < PATIENCE


def test_a_server_that_is_not_there_is_an_error_with_advice(emulated_vicon):
    source = ViconSource("absent", PATIENCE)
    with pytest.raises(SoftformError, match=r"ClientConnectionFailed.*firewall"):
        source.open()
    assert source._process is None


def test_without_the_client_it_is_said_how_to_install_it():
    with pytest.raises(SoftformError, match=r"pip install pyvicon-datastream==0\.2\.4"):
        ViconSource("127.0.0.1").open()
