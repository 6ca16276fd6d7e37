"""The node as its own process: frames of a capture system go in, aligned markers and diagnostics come out."""

import signal
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition
from scipy.spatial.transform import Rotation
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker

from softform_core.paths import robot_file
from softform_core.robots import load_robot
from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.conversions import marker_message, positions_from_markers, stamp_from_seconds
from softform_ros.frames import place_from_message

BASE = load_robot("membrane").base_markers
SHEET = np.array([[x, y, 0.01] for x in (-0.1, 0.0, 0.1) for y in (-0.1, 0.0, 0.1)])
NAMES = [*(f"m{number:02d}" for number in range(1, 10)), *BASE]
ROTATION, SHIFT = Rotation.from_rotvec([0.5, 1.0, -0.2]), np.array([0.3, 0.2, -1.0])
PATIENCE = 30.0


class Cameras:
    """Sends frames to a node's process as a capture system's driver would."""

    def __init__(self, process):
        self.process, self.number = process, 0
        self._publisher = process.node.create_publisher(MarkerFrame, "mocap/markers", qos.CAPTURED_MARKERS)
        process.wait(lambda: self._publisher.get_subscription_count() == 1)

    def send(self, spoil=lambda positions: None, age=0.0, names=NAMES):
        positions = ROTATION.inv().apply(np.vstack([SHEET, list(BASE.values())]) - SHIFT)
        spoil(positions)
        stamp = stamp_from_seconds(time.time() - age)
        message = marker_message(names, positions, "cameras", stamp, self.number)
        self.number += 1
        self._publisher.publish(message)
        return message

    def send_until(self, condition, *arguments, **options):
        """Frames at 50 Hz until something is so; the last of them."""

        def sent_in_vain():
            self.last = self.send(*arguments, **options)
            return condition()

        self.process.wait(sent_in_vain)
        return self.last


@pytest.fixture
def start_node(start_process):
    def start(**parameters):
        markers = (MarkerFrame, "captured_markers", qos.CAPTURED_MARKERS)
        return start_process("softform_capture.motion_capture_node", "motion_capture", markers, **parameters)

    return start


def test_frames_come_aligned_with_their_stamps_and_faults_in_diagnostics(start_node):
    process = start_node(stale_after=1.5)
    process.start()
    cameras, places, spheres = Cameras(process), [], []
    process.node.create_subscription(Marker, "captured_spheres", spheres.append, qos.CAPTURED_MARKERS)
    process.node.create_subscription(TFMessage, "/tf", places.append, qos.TF)
    sent = cameras.send_until(lambda: len(process.messages) >= 3 and places and spheres, age=0.2)
    place = places[-1].transforms[0]
    assert (place.header.frame_id, place.child_frame_id) == ("membrane/base_link", "membrane/mocap")
    assert np.abs(place_from_message(place).apply(ROTATION.inv().apply(SHEET - SHIFT)) - SHEET).max() < 1e-9
    given = process.messages[0]
    assert given.header.frame_id == "membrane/base_link"
    assert given.name == NAMES[:9]
    assert np.abs(positions_from_markers(given) - SHEET).max() < 1e-9
    assert abs(sent.header.stamp.sec - given.header.stamp.sec) < PATIENCE
    assert given.frame_number < cameras.number
    shown = spheres[-1]
    assert np.abs(np.array([[at.x, at.y, at.z] for at in shown.points]) - SHEET).max() < 1e-9
    assert shown.header.frame_id == "membrane/base_link"
    seen = len(process.statuses)
    cameras.send_until(lambda: any(s.message == "frames arrive" for s in process.statuses[seen:]), age=0.2)
    status = next(status for status in process.statuses[seen:] if status.message == "frames arrive")
    values = {pair.key: pair.value for pair in status.values}
    assert (status.level, status.hardware_id) == (DiagnosticStatus.OK, "motion capture")
    assert float(values["rate_hz"]) > 1.0
    assert 200.0 <= float(values["latency_ms"]) < 2000.0
    assert (values["markers"], values["missing_share"], values["alignment_residual_mm"]) == ("9", "0.000", "0.000")

    def hide_and_exchange(positions):
        positions[4] = np.nan
        positions[[0, 8]] = positions[[8, 0]]

    cameras.send_until(lambda: not all(process.messages[-1].visible), hide_and_exchange)
    last = process.messages[-1]
    assert np.flatnonzero(~np.array(last.visible)).tolist() == [0, 4, 8]
    assert np.isnan([last.position[4].x, last.position[0].z]).all()
    seen = len(process.statuses)
    cameras.send_until(lambda: len(process.statuses) > seen + 1, hide_and_exchange)
    assert "m01, m09 seem to be exchanged" in process.statuses[-1].message
    assert process.statuses[-1].level == DiagnosticStatus.WARN

    status, _ = process.wait_for_status("no usable frame")
    assert status.level == DiagnosticStatus.ERROR
    seen = len(process.messages)
    assert process.change(Transition.TRANSITION_DEACTIVATE)
    for _ in range(5):
        cameras.send()
    assert process.change(Transition.TRANSITION_ACTIVATE)
    cameras.send_until(lambda: len(process.messages) > seen)
    assert all(process.messages[-1].visible), "activating starts anew"
    process.process.send_signal(signal.SIGINT)
    assert process.process.wait(PATIENCE) == 0


def test_frames_that_cannot_be_used_are_rejected_with_a_reason(start_node):
    process = start_node(stale_after=0.5)
    process.start()
    cameras = Cameras(process)

    def in_millimetres(positions):
        positions *= 1000.0

    cameras.send_until(lambda: any("metres" in s.message for s in process.statuses), in_millimetres)
    twice = ["m01", *NAMES[:1], *NAMES[2:]]
    cameras.send_until(lambda: any("name twice" in s.message for s in process.statuses), names=twice)
    assert process.messages == []


def test_a_robot_without_base_markers_is_rejected(start_node, tmp_path):
    text = robot_file("membrane").read_text()
    (tmp_path / "bare.yaml").write_text(text[: text.index("base_markers")])
    process = start_node(robot=str(tmp_path / "bare.yaml"))
    assert not process.change(Transition.TRANSITION_CONFIGURE)
    status, _ = process.wait_for_status("configure failed")
    assert "base_markers" in status.message


def test_a_server_that_no_system_would_connect_to_is_said(start_node):
    process = start_node(server="192.168.1.10")
    assert not process.change(Transition.TRANSITION_CONFIGURE)
    status, _ = process.wait_for_status("configure failed")
    assert "server is '192.168.1.10', and frames of system 'marker_frame' come by a topic" in status.message
