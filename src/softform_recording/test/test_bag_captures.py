"""Bags of any topics become frames: settled scans, in the robot's frame, beside their actuations."""

import csv
import re

import numpy as np
import pytest
from click.testing import CliRunner
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import StoragePlugin, Writer
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Float32, Float64MultiArray, String
from tf2_msgs.msg import TFMessage

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.store import open_frames
from softform_core.geometry.rigid import RigidTransform
from softform_core.halton import halton_actuations
from softform_core.robots import load_robot
from softform_core.shapes.read import read_shape
from softform_core.units import MM_PER_M, PA_PER_KPA
from softform_recording.bag_captures import TopicField, extract_captures
from softform_recording.cli_import_bag import bag as import_bag
from softform_recording.message_definitions import standard_definitions
from softform_ros.conversions import cloud_from_points, stamp_from_seconds
from softform_ros.frames import transform_message

TYPES = {
    "/camera/points": (PointCloud2, "sensor_msgs/msg/PointCloud2"),
    "/pressures": (Float64MultiArray, "std_msgs/msg/Float64MultiArray"),
    "/left": (Float32, "std_msgs/msg/Float32"),
    "/tf_static": (TFMessage, "tf2_msgs/msg/TFMessage"),
    "/text": (String, "std_msgs/msg/String"),
}
CAMERA = RigidTransform(Rotation.from_euler("xyz", [0.1, 3.0, -0.4]).as_matrix(), np.array([0.1, -0.2, 0.5]))
PRESSURES = [TopicField.parse("/pressures:data")]


def made_bag(folder, words, storage=StoragePlugin.MCAP):
    """A bag of (topic, seconds, message)."""
    definitions = standard_definitions()
    with Writer(folder, version=9, storage_plugin=storage) as writer:
        connections = {
            topic: writer.add_connection(topic, TYPES[topic][1], typestore=definitions)
            for topic in dict.fromkeys(topic for topic, _, _ in words)
        }
        for topic, seconds, message in words:
            writer.write(connections[topic], int(1e9 * (100.0 + seconds)), serialize_message(message))
    return folder


def scan(points, seconds, frame="camera"):
    return "/camera/points", seconds, cloud_from_points(points, frame, stamp_from_seconds(100.0 + seconds))


def pressures(values, seconds):
    return "/pressures", seconds, Float64MultiArray(data=[float(value) for value in values])


def row_of(number):
    return np.array([[0.01 * number, 0.0, 0.1], [0.0, 0.02, 0.3], [0.1, 0.0, 0.2], [0.0, 0.1, 0.2]])


def rows(table):
    with table.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("storage", list(StoragePlugin))
def test_the_last_settled_scan_under_each_actuation_is_taken(tmp_path, storage):
    words = [scan(row_of(9), 0.5), pressures([1.0, 2.0], 1.0), scan(row_of(8), 2.0)]
    words += [scan(row_of(1), 3.5), pressures([1.0, 2.0], 3.6), scan(row_of(2), 3.9)]
    words += [pressures([5.0, 2.0], 4.0), scan(row_of(7), 5.0), pressures([6.0, 2.0], 5.5), scan(row_of(3), 8.0)]
    words.append(scan(row_of(4)[:3], 8.5))  # too little of anything
    bag = made_bag(tmp_path / "bag", words, storage)
    table, _ = extract_captures(bag, "/camera/points", PRESSURES, ["a", "b"], tmp_path / "out")
    found = rows(table)
    assert [(float(row["a"]), float(row["b"])) for row in found] == [(1.0, 2.0), (6.0, 2.0)]
    for row, number in zip(found, (2, 3), strict=True):
        np.testing.assert_allclose(read_shape(table.parent / row["scan"], "m").points, row_of(number), atol=1e-7)
    again, _ = extract_captures(bag, "/camera/points", PRESSURES, ["a", "b"], tmp_path / "out", settled=0.5)
    assert [float(row["a"]) for row in rows(again)] == [1.0, 5.0, 6.0]


def test_fields_are_put_side_by_side_and_transforms_bring_scans_home(tmp_path):
    words = [
        pressures([7.0, 3.0], 0.0),
        ("/left", 0.1, Float32(data=4.0)),
        scan(CAMERA.inverse().apply(row_of(1)), 5.0),
    ]
    # A latched transform may come late into a recording.
    words.append(("/tf_static", 6.0, TFMessage(transforms=[transform_message("base", "camera", 100.0, CAMERA)])))
    bag = made_bag(tmp_path / "bag", words)
    fields = [TopicField.parse("/left:data"), TopicField.parse("/pressures:data[1]")]
    measured = [TopicField.parse("/pressures:data")]
    table, _ = extract_captures(
        bag, "/camera/points", fields, ["a", "b"], tmp_path / "out", measured=measured, frame="base"
    )
    (row,) = rows(table)
    assert [float(row[name]) for name in ("stamp", "a", "b", "measured_a", "measured_b")] == [105.0, 4.0, 3.0, 7.0, 3.0]
    np.testing.assert_allclose(read_shape(table.parent / row["scan"], "m").points, row_of(1), atol=1e-6)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"scans": "/points"}, r"no topic /points.* /camera/points, /pressures, /text"),
        ({"scans": "/text"}, "not sensor_msgs/msg/PointCloud2"),
        ({"actuation": "/pressures:layout"}, "no numbers at this field"),
        ({"actuation": "/pressures:value"}, r"no numbers at this field.*layout, data"),
        ({"actuation": "/pressures:data[7]"}, "no numbers at this field"),
        ({"actuation": "/text:data"}, "no numbers at this field"),
        ({"actuation": "/pressures:data[0]"}, r"give 1 numbers; the robot has 2 degrees of freedom: a, b"),
        ({"frame": "base"}, "TF knows no frame"),
        ({"settled": 60.0}, "None of 1 scans .* stood still for 60 s; it changed 1 times"),
        ({"actuation": "pressures"}, "names no field of a topic"),
        ({"actuation": "/pressures:data[x]"}, "names no field of a topic"),
        ({"bag": "elsewhere"}, "There is no bag"),
        ({"output": "bag"}, "is in the way"),
    ],
)
def test_what_is_not_in_the_bag_is_reported_and_nothing_is_left(tmp_path, changed, said):
    words = [pressures([1.0, 2.0], 0.0), ("/text", 0.1, String(data="a")), scan(row_of(1), 5.0)]
    made_bag(tmp_path / "bag", words)
    given = {"bag": "bag", "scans": "/camera/points", "actuation": "/pressures:data", "output": "out"} | changed
    with pytest.raises(SoftformError, match=said):
        extract_captures(
            tmp_path / given["bag"],
            given["scans"],
            [TopicField.parse(given["actuation"])],
            ["a", "b"],
            tmp_path / given["output"],
            frame=given.get("frame"),
            settled=given.get("settled", 2.0),
        )
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]


@pytest.mark.parametrize("nowhere", [0.0, np.nan, np.inf])
def test_points_that_were_not_measured_are_left_out_before_the_scan_is_moved(tmp_path, nowhere):
    cloud = np.insert(CAMERA.inverse().apply(row_of(1)), [1, 3, 3], np.full(3, nowhere), axis=0)
    words = [pressures([1.0, 2.0], 0.0), scan(cloud, 5.0)]
    words.append(("/tf_static", 6.0, TFMessage(transforms=[transform_message("base", "camera", 100.0, CAMERA)])))
    bag = made_bag(tmp_path / "bag", words)
    table, told = extract_captures(bag, "/camera/points", PRESSURES, ["a", "b"], tmp_path / "out", frame="base")
    np.testing.assert_allclose(read_shape(table.parent / "scan_0000.ply", "m").points, row_of(1), atol=1e-6)
    assert "1 of 1 scans taken" in told and "3 points that were not measured left out" in told


def test_scans_in_millimetres_become_metres(tmp_path):
    bag = made_bag(tmp_path / "bag", [pressures([1.0, 2.0], 0.0), scan(row_of(1) * MM_PER_M, 5.0)])
    table, _ = extract_captures(bag, "/camera/points", PRESSURES, ["a", "b"], tmp_path / "out", unit="mm")
    np.testing.assert_allclose(read_shape(table.parent / "scan_0000.ply", "m").points, row_of(1), atol=1e-6)


def test_a_cloud_without_places_is_reported(tmp_path):
    cloud = PointCloud2(height=1, width=1, point_step=4, row_step=4, data=bytes(4))
    cloud.fields = [PointField(name="intensity", datatype=PointField.FLOAT32, count=1)]
    bag = made_bag(tmp_path / "bag", [pressures([1.0], 0.0), ("/camera/points", 5.0, cloud)])
    with pytest.raises(SoftformError, match="no field x, y, z"):
        extract_captures(bag, "/camera/points", PRESSURES, ["a"], tmp_path / "out")


def test_a_truncated_bag_is_reported(tmp_path):
    bag = made_bag(tmp_path / "bag", [pressures([1.0], 0.0), scan(row_of(1), 5.0)], StoragePlugin.SQLITE3)
    (file,) = bag.glob("*.db3")
    file.write_bytes(file.read_bytes()[:1500])
    with pytest.raises(SoftformError, match="cannot be read"):
        extract_captures(bag, "/camera/points", PRESSURES, ["a"], tmp_path / "out")


def test_the_command_makes_frames_that_are_judged(tmp_path):
    robot = load_robot("membrane")
    pipeline = load_pipeline(robot, 2000)
    actuations = halton_actuations(robot.actuation_min, robot.actuation_max, 2, 5)
    words = []
    for number, actuation in enumerate(actuations):
        points = pipeline.points(actuation) / MM_PER_M * [1.0, 1.0, 1.05]
        words += [pressures(actuation / PA_PER_KPA, 10.0 * number), scan(points, 10.0 * number + 5.0)]
    bag = made_bag(tmp_path / "walk", words)
    given = ["import", "bag", str(bag), "--robot", "membrane", "--scans", "/camera/points", "--output"]
    given += [str(tmp_path / "frames.zarr"), "--actuation", "/pressures:data", "--actuation-unit", "kPa"]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0, result.output
    assert "2 frames" in result.output and "train s2r --robot membrane" in result.output
    store = open_frames(tmp_path / "frames.zarr", robot)
    np.testing.assert_allclose(store.actuation, actuations, rtol=1e-6)
    assert (tmp_path / "frames_from_walk" / "captures.csv").is_file() and "2 of 2 scans taken" in result.output
    assert CliRunner().invoke(main, given).exit_code == 0


def test_an_error_names_only_options_that_the_command_has(tmp_path):
    words = [pressures(np.linspace(0.1, 5.0, 9), 0.0), scan(MM_PER_M * row_of(1), 5.0)]
    words += [pressures(np.linspace(5.0, 0.1, 9), 10.0), scan(MM_PER_M * row_of(2), 15.0)]
    bag = made_bag(tmp_path / "walk", words)
    given = [str(bag), "--robot", "membrane", "--scans", "/camera/points", "--actuation", "/pressures:data"]
    for more in (["--actuation-unit", "kPa"], ["--actuation-unit", "Pa"], ["--actuation-unit", "mm"]):
        error = CliRunner().invoke(import_bag, [*given, *more, "--output", str(tmp_path / "frames.zarr")]).exception
        assert isinstance(error, SoftformError), error
        options = {name for one in import_bag.params for name in one.opts}
        assert set(re.findall(r"--[a-z-]+", str(error))) <= options, str(error)
