"""The node as its own process: exports or cameras' clouds go in, clouds of the robot and diagnostics come out."""

import signal
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition
from scipy.spatial import cKDTree
from sensor_msgs.msg import PointCloud2
from tf2_msgs.msg import TFMessage

from softform_capture.depth_cameras.calibration import made_calibration
from softform_capture.depth_cameras.extrinsics import CameraExtrinsics
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.registration.scanner_pose import ScannerRegistration, kept_registration
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply
from softform_interfaces.msg import ActuatorState
from softform_ros import qos
from softform_ros.conversions import (
    cloud_from_points,
    points_from_cloud,
    seconds_from_stamp,
    stamp_from_seconds,
    values_from_cloud,
)
from softform_ros.frames import place_from_message

POSE = [0.02, -0.01, 0.8, 1.0, 0.0, 0.0, 0.0]
PATIENCE = 30.0


@pytest.fixture(scope="module")
def surface():
    return Shape(dem_target(load_robot("membrane")).sample(4000).points)


@pytest.fixture
def start_scanner(tmp_path, start_process):
    def start(**parameters):
        given = {"watch_folder": str(tmp_path), "registration": POSE, "poll_period": 0.1} | parameters
        clouds = (PointCloud2, "captured_cloud", qos.CAPTURED_CLOUD)
        return start_process("softform_capture.scanner_node", "scanner", clouds, **given)

    return start


def export(path, surface, captured_at, unit="mm"):
    """What the rig's scanner, or a real one's software, leaves in the folder."""
    registration = RigidTransform.from_pose(POSE)
    in_scanner = Shape((surface.points - registration.translation) @ registration.rotation)
    write_ply(path, in_scanner, unit, [f"captured_at {captured_at:.6f}"])


def distance_between(cloud, surface):
    """Largest distance of any point from its counterpart; the node keeps the order."""
    points = points_from_cloud(cloud)
    return float(np.abs(points - surface.points).max()) if len(points) == len(surface.points) else np.inf


def test_good_exports_become_clouds_and_bad_ones_diagnostics(tmp_path, surface, start_scanner):
    export(tmp_path / "old.ply", surface, time.time() - 100.0)
    scanner = start_scanner(remove_outliers=False)
    places = []
    scanner.node.create_subscription(TFMessage, "/tf_static", places.append, qos.TF_STATIC_READER)
    scanner.start()
    scanner.wait(lambda: places)
    place = places[0].transforms[0]
    assert (place.header.frame_id, place.child_frame_id) == ("membrane/base_link", "membrane/scanner")
    assert place_from_message(place).translation.tolist() == POSE[:3]
    status, _ = scanner.wait_for_status("waiting for the first scan")
    assert (status.level, status.hardware_id) == (DiagnosticStatus.OK, "scanner")

    captured_at = time.time() - 0.5
    export(tmp_path / "good.ply", surface, captured_at)
    scanner.wait(lambda: scanner.messages)
    assert scanner.messages[0].header.frame_id == "membrane/base_link"
    assert seconds_from_stamp(scanner.messages[0].header.stamp) == pytest.approx(captured_at, abs=1e-5)
    assert distance_between(scanner.messages[0], surface) < 1e-6

    whole = (tmp_path / "good.ply").read_bytes()
    (tmp_path / "cut.ply").write_bytes(whole[:-1000])
    status, values = scanner.wait_for_status("rejected cut.ply")
    assert status.level == DiagnosticStatus.WARN
    assert "truncated" in values["last_rejected_reason"]
    assert (values["published"], values["rejected"]) == ("1", "1")

    # Metres that pretend to be millimetres: the header's own word is removed.
    export(tmp_path / ".metres", surface, captured_at, "m")
    (tmp_path / "metres.ply").write_bytes((tmp_path / ".metres").read_bytes().replace(b"comment unit m\n", b""))
    _, values = scanner.wait_for_status("rejected metres.ply")
    assert "converted from millimetres twice" in values["last_rejected_reason"]

    export(tmp_path / "good.ply", surface, time.time())
    scanner.wait(lambda: len(scanner.messages) == 2)
    status, values = scanner.wait_for_status("scans arrive")
    assert status.level == DiagnosticStatus.OK
    assert values["last_scan"] == "good.ply"
    assert float(values["last_scan_age_s"]) < PATIENCE
    assert (values["published"], values["rejected"], values["last_rejected"]) == ("2", "2", "metres.ply")

    assert scanner.change(Transition.TRANSITION_DEACTIVATE)
    export(tmp_path / "unwatched.ply", surface, time.time())
    assert scanner.change(Transition.TRANSITION_ACTIVATE)
    export(tmp_path / "watched.ply", surface, time.time())
    scanner.wait(lambda: len(scanner.messages) == 3)
    _, values = scanner.wait_for_status("scans arrive")
    assert (values["last_scan"], values["published"]) == ("watched.ply", "1")

    scanner.process.send_signal(signal.SIGINT)
    assert scanner.process.wait(PATIENCE) == 0


def test_a_millimetre_export_is_not_taken_for_metres(tmp_path, surface, start_scanner):
    scanner = start_scanner(unit="m", stale_after=0.5)
    scanner.start()
    status, _ = scanner.wait_for_status("no usable scan since activation")
    assert status.level == DiagnosticStatus.WARN
    export(tmp_path / "stated.ply", surface, time.time())
    _, values = scanner.wait_for_status("rejected stated.ply")
    assert "says that it is in mm" in values["last_rejected_reason"]
    unstated = (tmp_path / "stated.ply").read_bytes().replace(b"comment unit mm\n", b"")
    (tmp_path / "unstated.ply").write_bytes(unstated)
    _, values = scanner.wait_for_status("rejected unstated.ply")
    assert "seems to be in millimetres" in values["last_rejected_reason"]
    assert scanner.messages == []


def test_clouds_of_two_cameras_become_one_and_a_silent_camera_is_reported(tmp_path, surface, start_scanner):
    motions = {
        "left": RigidTransform.from_pose([-0.3, 0.0, 0.6, 1.0, 0.0, 0.0, 0.0]),
        "right": RigidTransform.from_pose(POSE),
    }
    cameras = {name: CameraExtrinsics(motion, 0.001, 0.002, "tip", 5) for name, motion in motions.items()}
    streams = {name: (f"{name}/points", f"{name}_frame") for name in cameras}
    path = tmp_path / "cameras.yaml"
    made_calibration("membrane", "test", cameras, streams).save(path)
    scanner = start_scanner(
        source="cameras", camera_calibration=path, spacing=0.004, merge_period=0.2, normals=True, stale_after=1e3
    )
    publishers = {
        name: scanner.node.create_publisher(PointCloud2, topic, qos.CAMERA_INPUT)
        for name, (topic, _) in streams.items()
    }
    scanner.start()
    scanner.wait(lambda: all(publisher.get_subscription_count() == 1 for publisher in publishers.values()))
    captured_at = time.time() - 1.0

    def send(names, frame_suffix="_frame"):
        for name in names:
            motion = motions[name]
            points = (surface.points - motion.translation) @ motion.rotation
            stamp = stamp_from_seconds(captured_at)
            publishers[name].publish(cloud_from_points(points, f"{name}{frame_suffix}", stamp))
        time.sleep(0.3)

    def status_of(words):
        return next((status for status in scanner.statuses if words in status.message), None)

    scanner.wait(lambda: status_of("scans arrive") or send(motions))
    cloud = scanner.messages[0]
    assert seconds_from_stamp(cloud.header.stamp) == pytest.approx(captured_at, abs=1e-6)
    assert cKDTree(surface.points).query(points_from_cloud(cloud))[0].max() < 0.004
    assert values_from_cloud(cloud, ["normal_z"]).min() >= 0.0
    values = {pair.key: pair.value for pair in status_of("scans arrive").values}
    assert values["last_scan"] == "left + right"
    assert float(values["coverage"]) == 1.0
    assert float(values["disagreement_mm"]) < 0.5
    assert values["calibration_residual_mm"] == "1.00"

    scanner.wait(lambda: status_of("camera right sends no clouds") or send(["left"]))
    assert status_of("camera right sends no clouds").level == DiagnosticStatus.ERROR
    scanner.wait(lambda: status_of("frame 'left_frame'") or send(motions, "_other"))


def test_wrong_parameters_fail_configuration_with_the_reason(start_scanner):
    scanner = start_scanner(registration=[0, 0, 1])
    assert not scanner.change(Transition.TRANSITION_CONFIGURE)
    status, _ = scanner.wait_for_status("configure failed")
    assert status.level == DiagnosticStatus.ERROR
    assert "[0, 0, 1] is no pose: it is not seven or sixteen finite numbers but 3" in status.message


def test_scans_of_a_hand_held_scanner_are_aligned_by_what_the_robot_is_commanded(tmp_path, start_scanner, monkeypatch):
    monkeypatch.setenv("SOFTFORM_DATA", str(tmp_path / "data"))
    robot, values = load_robot("membrane"), [1000.0, 4000.0, 500.0, 2000.0, 3000.0, 0.0, 4500.0, 1500.0, 2500.0]
    scanner = start_scanner(scanner_pose="hand")
    commanded = scanner.node.create_publisher(ActuatorState, "actuator_state", qos.ACTUATOR_STATE)
    scanner.start()
    points = load_pipeline(robot, 60 * 60).points(np.array(values)) / 1000.0
    export(tmp_path / "early.ply", Shape(points), time.time())
    _, reason = scanner.wait_for_status("rejected early.ply")
    assert "./softform register SCAN --robot membrane --unit mm --name hand" in reason["last_rejected_reason"]

    made = {"robot": "membrane", "created_at": "2026-01-01T00:00:00Z", "command": "", "pose": POSE, "error": 0.0}
    ScannerRegistration.model_validate(made | {"hand_held": True, "still": []}).save(
        kept_registration("membrane", "hand")
    )
    state = ActuatorState(name=robot.actuators, value=values)
    for _ in range(20):
        commanded.publish(state)
        time.sleep(0.05)
    export(tmp_path / "scan.ply", Shape(points), time.time())
    scanner.wait(lambda: scanner.messages)
    found = points_from_cloud(scanner.messages[0])
    assert np.median(cKDTree(points).query(found)[0]) < 0.001
