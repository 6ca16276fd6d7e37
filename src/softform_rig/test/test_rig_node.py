"""The node in a process of its own: life cycle, port, scans, truth, diagnostics, bad parameters, an orderly end."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import serial
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import PointCloud2

from softform_interfaces.msg import MarkerFrame
from softform_interfaces.srv import InjectFault
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import points_from_cloud, positions_from_markers
from softform_ros.qos import CAPTURED_MARKERS, DIAGNOSTICS, FAULT_EVENTS, TRUE_SURFACE
from softform_ros.service_calls import call_service

NAMESPACE = "/softform"


class NodeProcess:
    """The rig's process and a watcher in this one."""

    def __init__(self, folder: Path, **parameters: str) -> None:
        self.link, self.scans = folder / "openpneu", folder / "scans"
        given = {"port_link": self.link, "scan_folder": self.scans, "reality": "ideal"} | parameters
        arguments = [part for name, value in given.items() for part in ("-p", f"{name}:={value}")]
        command = [sys.executable, "-m", "softform_rig.rig_node", "--ros-args", "-r", f"__ns:={NAMESPACE}", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._background = BackgroundNode("watcher", NAMESPACE)
        self.node = self._background.__enter__()
        self.surfaces: list[PointCloud2] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.node.create_subscription(PointCloud2, "rig/true_surface", self.surfaces.append, TRUE_SURFACE)
        self.markers: list[MarkerFrame] = []
        self.node.create_subscription(MarkerFrame, "mocap/markers", self.markers.append, CAPTURED_MARKERS)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self.diagnostics.append, DIAGNOSTICS)

    def change(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        answer = call_service(self.node, "rig", ChangeState, "rig/change_state", request, 60.0)
        assert answer is not None, "the node did not answer"
        return bool(answer.success)

    def wait(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.02)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._background.close()


@pytest.fixture
def start(tmp_path):
    started = []

    def make(**parameters: str) -> NodeProcess:
        started.append(NodeProcess(tmp_path, **parameters))
        return started[-1]

    yield make
    for node in started:
        node.close()


def test_the_node_serves_board_scans_and_truth_and_ends_cleanly(start) -> None:
    rig = start(mocap_rate="20.0")
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    assert not rig.link.is_symlink(), "nothing is opened before the node is active"
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    with serial.Serial(str(rig.link), 115200, timeout=3.0) as port:
        time.sleep(1.7)
        port.write(b"AT+ADDRESS\r\n")
        assert port.read_until(b"\r\n") == b"OpenPneu2.0\r\n"
        port.write(b"SC=4\r\nT=3.00\r\nC\r\n")
        rig.wait(lambda: rig.surfaces and points_from_cloud(rig.surfaces[-1])[:, 2].max() > 0.02)
    assert rig.surfaces[-1].header.frame_id == "membrane/base_link"
    highest = points_from_cloud(rig.surfaces[-1])[:, 2].argmax()
    assert np.abs(points_from_cloud(rig.surfaces[-1])[highest, :2]).max() < 0.02, "c5 is the chamber in the middle"
    rig.wait(lambda: len(list(rig.scans.glob("*.ply"))) >= 3)
    rig.wait(lambda: rig.diagnostics and rig.diagnostics[-1].status[0].message == "the virtual rig runs")
    status = rig.diagnostics[-1].status[0]
    assert status.hardware_id == "virtual rig"
    assert int({v.key: v.value for v in status.values}["scans"]) >= 1
    rig.wait(lambda: len(rig.markers) >= 3)
    assert rig.markers[-1].header.frame_id == "membrane/mocap"
    assert positions_from_markers(rig.markers[-1]).shape == (len(rig.markers[-1].name), 3) == (38, 3)
    rig.process.send_signal(signal.SIGTERM)
    assert rig.process.wait(10.0) == 0
    assert not rig.link.is_symlink()


@pytest.mark.long
def test_deactivating_takes_the_port_away_and_activating_brings_it_back(start) -> None:
    rig = start()
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    for _ in range(2):
        assert rig.change(Transition.TRANSITION_ACTIVATE)
        assert rig.link.resolve().is_char_device()
        assert rig.change(Transition.TRANSITION_DEACTIVATE)
        assert not rig.link.is_symlink()
    assert rig.change(Transition.TRANSITION_CLEANUP)


def test_faults_come_by_schedule_and_by_service_and_are_reported(start) -> None:
    rig = start(mocap_rate="20.0", faults="[mocap_occlude=1@0.5+2]")
    events: list[DiagnosticStatus] = []
    rig.node.create_subscription(DiagnosticStatus, "rig/fault_events", events.append, FAULT_EVENTS)

    def ask(fault: str) -> InjectFault.Response:
        request = InjectFault.Request(fault=fault)
        return call_service(rig.node, "rig", InjectFault, "rig/inject_fault", request, 30.0)

    assert "not active" in ask("stall").message
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.wait(lambda: any(event.message == "ends" for event in events))
    assert [event.message for event in events] == ["starts", "shows", "ends"]
    assert any(np.isnan(positions_from_markers(frame)).all() for frame in rig.markers)
    times = [float(event.values[0].value) for event in events]
    assert times[0] <= times[1] <= times[2] == pytest.approx(times[0] + 2.0, abs=1e-3)
    assert abs(time.monotonic() - times[2]) < 60.0, "the steady clock of this machine"
    assert "is not a fault" in ask("").message and "no fault 'rust'" in ask("rust").message
    assert "no marker 'm99'" in ask("mocap_swap=m01:m99").message
    assert ask("mocap_silent").success
    rig.wait(lambda: any(event.name.startswith("mocap_silent") and event.message == "shows" for event in events))
    rig.wait(lambda: rig.diagnostics and "mocap_silent" in str(rig.diagnostics[-1].status[0].values))
    assert ask("clear").success
    rig.wait(lambda: events[-1].message == "ends")
    seen = len(rig.markers)
    rig.wait(lambda: len(rig.markers) > seen)


def test_bad_parameters_fail_configure_with_a_reason(start, tmp_path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ntitle: mine\nbody: {kind: membrane, thickness: {variation: 7}}\n")
    rig = start(reality=str(file))
    assert not rig.change(Transition.TRANSITION_CONFIGURE)
    rig.wait(lambda: any("body.thickness.variation" in d.status[0].message for d in rig.diagnostics))
    rig.process.send_signal(signal.SIGINT)
    assert rig.process.wait(10.0) == 0
    assert "body.thickness.variation" in rig.process.stderr.read()
