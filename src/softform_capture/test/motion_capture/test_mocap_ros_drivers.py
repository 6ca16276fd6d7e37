"""Drivers of ROS: the messages of mocap4r2, built here from their definitions, and clouds without labels."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from captured_scene import BASE, NAMES, SHEET, seen, sheet
from sensor_msgs.msg import PointCloud2

from softform_capture.motion_capture.labelling import Labeller
from softform_capture.motion_capture.ros_frames import frame_topic
from softform_core.errors import SoftformError
from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.conversions import cloud_from_points, positions_from_markers, stamp_from_seconds

HERE = Path(__file__).parent
DEFINITIONS = HERE / "driver_messages"
BUILD = HERE.parents[3] / "build" / "test_mocap4r2_msgs"


@pytest.fixture(scope="module")
def mocap4r2_environment():
    """Environment in which `mocap4r2_msgs` can be imported; it is built once, then found in the build folder."""
    parts = [path.read_bytes() for path in sorted(DEFINITIONS.rglob("*")) if path.is_file()]
    digest = hashlib.sha256(b"".join([sys.version.encode(), *parts])).hexdigest()[:16]
    folder = BUILD / digest
    install = folder / "install" / "mocap4r2_msgs"
    if not (folder / "built").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "colcon", "--log-base", folder / "log", "build", "--base-paths", DEFINITIONS]
        command += ["--build-base", folder / "build", "--install-base", folder / "install", "--cmake-args"]
        command += [f"-DPython3_EXECUTABLE={sys.executable}", "-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Debug"]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        (folder / "built").touch()
    site = next(install.rglob("mocap4r2_msgs/__init__.py")).parents[1]

    def extended(name, value):
        return os.pathsep.join([str(value), *filter(None, [os.environ.get(name)])])

    return {
        "AMENT_PREFIX_PATH": extended("AMENT_PREFIX_PATH", install),
        "LD_LIBRARY_PATH": extended("LD_LIBRARY_PATH", install / "lib"),
        "PYTHONPATH": extended("PYTHONPATH", f"{site}{os.pathsep}{HERE}"),
    }


@pytest.mark.long
def test_a_driver_of_mocap4r2_is_read(mocap4r2_environment, start_process, monkeypatch):
    for name, value in mocap4r2_environment.items():
        monkeypatch.setenv(name, value)
    output = (MarkerFrame, "captured_markers", qos.CAPTURED_MARKERS)
    node = start_process(
        "softform_capture.motion_capture_node", "motion_capture", output, system="mocap4r2", topic="markers"
    )
    driver = subprocess.Popen([sys.executable, HERE / "mocap4r2_driver.py", "m05"])
    try:
        node.start()
        node.wait(lambda: len(node.messages) > 3)
        _, values = node.wait_for_status("frames arrive")
    finally:
        driver.kill()
        driver.wait()
    given = node.messages[-1]
    assert given.name == NAMES[len(BASE) :]
    assert np.flatnonzero(~np.array(given.visible)).tolist() == [4]
    shown = [0, 1, 2, 3, 5, 6, 7, 8]
    assert np.abs(positions_from_markers(given) - SHEET)[shown].max() < 1e-6
    assert 50.0 <= float(values["latency_ms"]) < 2000.0


def test_without_the_messages_it_is_said_where_they_come_from():
    with pytest.raises(SoftformError, match="ros-jazzy-mocap4r2-msgs"):
        frame_topic("mocap4r2")


def test_clouds_without_labels_are_labelled_from_frame_to_frame():
    read = frame_topic("point_cloud").read
    assert frame_topic("point_cloud").message is PointCloud2
    labeller = Labeller(BASE, {}, 0.002, 0.015)
    random = np.random.default_rng(0)
    for number in range(60):
        points = seen(number)
        if 20 <= number < 30:
            points[[1, 8]] = np.nan  # a base marker and one on the sheet
        cloud = cloud_from_points(random.permutation(points), "cameras", stamp_from_seconds(100.0 + number))
        frame = labeller.label(read(cloud))
        assert (frame.number, frame.time) == (number, 100.0 + number)
        assert frame.names == NAMES
        assert np.array_equal(np.isnan(frame.positions), np.isnan(points))
        assert np.nanmax(np.abs(frame.positions - points)) < 1e-6, "each point has the name of its marker"
    assert sheet(59)[4, 2] != sheet(0)[4, 2]


def test_a_cloud_without_a_stamp_is_rejected():
    with pytest.raises(SoftformError, match="no stamp"):
        frame_topic("point_cloud").read(cloud_from_points(SHEET, "cameras", stamp_from_seconds(0.0)))
