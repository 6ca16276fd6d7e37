"""The node as its own process before emulated servers: connected, lost, connected again, and told so in diagnostics."""

import emulated_natnet as natnet
import emulated_qtm as qtm
import numpy as np
import pytest
from captured_scene import SHEET_NAMES, sheet
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition

from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.conversions import positions_from_markers

OUTPUT = (MarkerFrame, "captured_markers", qos.CAPTURED_MARKERS)


@pytest.fixture
def start_node(start_process):
    def start(system, server, **parameters):
        module = "softform_capture.motion_capture_node"
        parameters = {"server": "127.0.0.1", "local_address": "127.0.0.1", "multicast_group": '""', **parameters}
        return start_process(module, "motion_capture", OUTPUT, system=system, port=server.port, **parameters)

    return start


def test_a_natnet_server_that_goes_away_and_comes_back(start_node):
    server = natnet.NatNetServer()
    try:
        node = start_node("natnet", server, reconnect_after=0.5, stale_after=0.5, max_gap=0.5)
        node.start()
        node.wait(lambda: len(node.messages) > 10)
        given = node.messages[-1]
        assert given.name == SHEET_NAMES and all(given.visible) and given.header.frame_id == "membrane/base_link"
        assert np.abs(np.delete(positions_from_markers(given) - sheet(), 4, axis=0)).max() < 1e-5
        server.hidden, server.extra = (6,), [b"\x07\x00\xff\xff"]
        status, values = node.wait_for_status("m03 missing")
        assert values["connected"] == "True" and int(values["malformed_packets"]) > 0
        assert float(values["latency_ms"]) >= 1000.0 * natnet.LATENCY - 1.0
        assert float(values["alignment_residual_mm"]) < 0.01
        port = server.port
        server.stop()
        status, values = node.wait_for_status("gives no answer")
        assert status.level == DiagnosticStatus.ERROR
        assert values["connected"] == "False"
        server = natnet.NatNetServer(port=port)
        _, values = node.wait_for_status("frames arrive")
        assert int(values["reconnections"]) >= 1
        assert all(node.messages[-1].visible)
    finally:
        server.stop()


def test_deactivating_disconnects_from_qtm(start_node):
    server = qtm.QtmServer()
    try:
        node = start_node("qualisys", server, labels="nearest")
        node.start()
        node.wait(lambda: len(node.messages) > 3)
        assert node.change(Transition.TRANSITION_DEACTIVATE)
        seen = len(node.messages)
        node.wait(lambda: not server.connected)
        node.wait_for_status("inactive")
        assert len(node.messages) <= seen + 1
        assert node.change(Transition.TRANSITION_ACTIVATE)
        node.wait(lambda: len(node.messages) > seen + 3)
        assert sorted(node.messages[-1].name) == SHEET_NAMES
    finally:
        server.stop()
