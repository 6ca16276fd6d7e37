"""Two depth cameras: where they stand, what their clouds show together, and what is rejected."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import PointCloud2, PointField

from softform_capture.camera_tracker.code_sheet import SHEETS, CodeDetector
from softform_capture.cli_calibrate_cameras import calibrate_cameras
from softform_capture.depth_cameras import sheet_in_cloud
from softform_capture.depth_cameras.calibration import load_calibration, made_calibration
from softform_capture.depth_cameras.extrinsics import register_cameras
from softform_capture.depth_cameras.merging import CameraCloud, CloudMerger
from softform_capture.depth_cameras.sheet_in_cloud import corners_in_cloud
from softform_capture.scanner.captured_cloud import CloudOptions
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_ros import qos
from softform_ros.background_node import BackgroundNode

# The paper's five points (004, Sec. V-A): the tip, and four corners of the base.
PLACES = {
    "tip": np.array([0.0, 0.0, 0.1]),
    "corner 1": np.array([0.16, 0.16, 0.0]),
    "corner 2": np.array([-0.16, 0.16, 0.0]),
    "corner 3": np.array([-0.16, -0.16, 0.0]),
    "corner 4": np.array([0.16, -0.16, 0.0]),
}
LEFT = RigidTransform(Rotation.from_euler("xyz", [150, 20, 30], degrees=True).as_matrix(), np.array([-0.4, -0.1, 0.5]))
RIGHT = RigidTransform(Rotation.from_euler("xyz", [-160, -15, 80], degrees=True).as_matrix(), np.array([0.4, 0.1, 0.6]))
CAMERAS = {"left": LEFT, "right": RIGHT}
STREAMS = {name: (f"{name}/points", f"{name}_optical_frame") for name in CAMERAS}
SHEET = SHEETS["A4"]


def seen_by(motion, places=PLACES, noise=0.0, seed=0):
    random = np.random.default_rng(seed)
    return {name: motion.apply_inverse(place) + noise * random.standard_normal(3) for name, place in places.items()}


def seen_by_all(noise=0.0):
    return {name: seen_by(motion, noise=noise, seed=seed) for seed, (name, motion) in enumerate(CAMERAS.items())}


def off_by(found, truth, places=PLACES):
    """Largest distance, m, by which two motions differ on the robot."""
    points = truth.apply_inverse(np.array(list(places.values())))
    return float(np.linalg.norm(found.apply(points) - truth.apply(points), axis=1).max())


def test_the_papers_five_points_register_both_cameras():
    found = register_cameras(seen_by_all(), PLACES)
    for name, motion in CAMERAS.items():
        assert off_by(found[name].motion, motion) < 1e-9
        assert found[name].points == 5
        assert found[name].residual < 1e-9
    noisy = register_cameras(seen_by_all(noise=0.001), PLACES)
    assert all(off_by(noisy[name].motion, motion) < 0.003 for name, motion in CAMERAS.items())
    assert all(0.0003 < camera.residual < 0.003 for camera in noisy.values())


def test_points_of_unknown_place_tie_a_camera_to_the_others():
    targets = {f"ball {k}": place for k, place in enumerate(np.random.default_rng(0).uniform(-0.2, 0.2, (4, 3)))}
    seen = {"left": seen_by(LEFT) | seen_by(LEFT, targets), "right": seen_by(RIGHT, targets)}
    found = register_cameras(seen, PLACES)
    assert off_by(found["right"].motion, RIGHT) < 1e-6
    del seen["right"]["ball 3"], seen["right"]["ball 2"]
    with pytest.raises(SoftformError, match="Camera right shares fewer than 3 points"):
        register_cameras(seen, PLACES)


def test_points_in_line_are_no_registration():
    line = {f"p{k}": np.array([0.1 * k, 0.0, 0.0]) for k in range(5)}
    with pytest.raises(SoftformError, match="in line"):
        register_cameras({"left": seen_by(LEFT, line)}, line)


@pytest.fixture
def calibration():
    return made_calibration("membrane", "softform calibrate-cameras", register_cameras(seen_by_all(), PLACES), STREAMS)


def test_a_calibration_is_kept_with_where_it_comes_from(tmp_path, calibration):
    path = tmp_path / "new" / "cameras.yaml"
    calibration.save(path)
    back = load_calibration(path)
    assert back == calibration
    assert back.command == "softform calibrate-cameras"
    assert 0.0 <= back.age < 60.0
    kept = back.cameras["right"]
    assert (kept.topic, kept.frame_id) == STREAMS["right"]
    assert np.allclose(kept.registration().rotation, RIGHT.rotation)
    assert np.allclose(kept.registration().translation, RIGHT.translation)
    back.check("membrane", largest_residual=0.003, longest_age=60.0)


def test_a_calibration_that_cannot_be_trusted_is_rejected(calibration):
    now = datetime.now(UTC)
    worse = calibration.cameras["left"].model_copy(update={"residual": 0.004})
    for change, says in [
        ({"robot": "another"}, "for robot 'another'"),
        ({"created_at": now - timedelta(days=3)}, "3.0 days ago"),
        ({"created_at": now + timedelta(days=3)}, "-3.0 days ago"),
        ({"cameras": {"left": worse}}, "to 4.0 mm; at most 3.0 mm"),
    ]:
        with pytest.raises(SoftformError, match=says) as caught:
            calibration.model_copy(update=change).check("membrane", 0.003, 86_400.0)
        assert "calibrate-cameras" in caught.value.next_step


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cameras": {}}, "no calibration"),
        ({"created_at": "yesterday"}, "no calibration"),
        ({"created_at": "2026-01-01T00:00:00"}, "no calibration"),  # in which time zone?
        ({"robot": None}, "no calibration"),
    ],
)
def test_a_damaged_calibration_is_rejected(tmp_path, calibration, change, says):
    path = tmp_path / "cameras.yaml"
    calibration.save(path)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | change))
    with pytest.raises(SoftformError, match=says):
        load_calibration(path)
    path.write_text(path.read_text().replace("[", "{", 1))
    with pytest.raises(SoftformError, match=says):
        load_calibration(path)
    with pytest.raises(SoftformError, match="cannot be read"):
        load_calibration(tmp_path / "none.yaml")


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="module")
def views(robot):
    """What each camera sees: two thirds of the surface, the table around it, and pixels without depth."""
    random = np.random.default_rng(0)
    surface = dem_target(robot).sample(12_000).points
    table = random.uniform([-0.8, -0.8, -0.3], [0.8, 0.8, -0.29], (3000, 3))
    parts = {"left": surface[surface[:, 0] < 0.05], "right": surface[surface[:, 0] > -0.05]}
    clouds = {}
    for name, part in parts.items():
        seen = np.vstack([part, table])
        points = CAMERAS[name].apply_inverse(seen + 0.0005 * random.standard_normal(seen.shape))
        points[::50] = np.nan
        points[1::50] = 0.0
        clouds[name] = CameraCloud(points, STREAMS[name][1], 1000.0)
    return clouds, surface


def merger(calibration, robot):
    return CloudMerger(calibration, robot, CloudOptions(), largest_gap=0.1, largest_disagreement=0.003)


def test_two_cameras_together_show_the_whole_robot_and_nothing_else(calibration, robot, views):
    clouds, surface = views
    later = CameraCloud(clouds["right"].points, clouds["right"].frame_id, 1000.05)
    merged = merger(calibration, robot).merge({"left": clouds["left"], "right": later})
    assert merged.captured_at == 1000.0
    assert len(merged.points) == pytest.approx(0.96 * (len(surface) * 1.3), rel=0.1)
    assert cKDTree(surface).query(merged.points)[0].max() < 0.01
    assert merged.points[:, 0].min() < -0.15 < 0.15 < merged.points[:, 0].max()
    assert merged.disagreement < 0.001


def test_a_camera_that_was_moved_is_noticed(calibration, robot, views):
    clouds, _ = views
    tilted = RIGHT.moved(np.radians([0.0, 2.0, 0.0]), np.zeros(3), RIGHT.translation)
    moved = CameraCloud(tilted.apply_inverse(RIGHT.apply(clouds["right"].points)), clouds["right"].frame_id, 1000.0)
    with pytest.raises(SoftformError, match="Cameras left and right see the robot .* mm apart"):
        merger(calibration, robot).merge({"left": clouds["left"], "right": moved})


def displaced(cloud, motion, shift):
    """The cloud of a camera that was pushed, so that its surface is that far off, m, robot frame."""
    points = motion.apply_inverse(motion.apply(cloud.points) + shift)
    points[~cloud.points.any(axis=1)] = 0.0
    return CameraCloud(points, cloud.frame_id, cloud.captured_at)


@pytest.mark.parametrize("height", [-0.07, 0.06, 0.08, 0.1, 0.12])
def test_a_camera_that_was_pushed_so_far_that_nothing_is_common_is_noticed(calibration, robot, views, height):
    clouds, _ = views
    right = displaced(clouds["right"], RIGHT, [0.0, 0.0, height])
    with pytest.raises(SoftformError, match="Cameras left and right see the robot more than 50 mm apart"):
        merger(calibration, robot).merge({"left": clouds["left"], "right": right})


def one_side(cloud, motion, side):
    """The cloud without what lies on the other side of the robot, beyond a strip of 60 mm that neither sees."""
    hidden = side * motion.apply(cloud.points)[:, 0] < 0.03
    return CameraCloud(np.where(hidden[:, None], np.nan, cloud.points), cloud.frame_id, cloud.captured_at)


def test_cameras_that_see_different_sides_are_merged(calibration, robot, views):
    clouds, surface = views
    sides = {"left": one_side(clouds["left"], LEFT, -1.0), "right": one_side(clouds["right"], RIGHT, 1.0)}
    merged = merger(calibration, robot).merge(sides)
    assert np.isnan(merged.disagreement)
    assert cKDTree(surface).query(merged.points)[0].max() < 0.01


@pytest.mark.parametrize("crop", [True, False])
@pytest.mark.parametrize("points", [np.full((9000, 3), np.nan), np.zeros((9000, 3)), np.empty((0, 3)), "the table"])
def test_a_camera_that_shows_nothing_of_the_robot_is_named(calibration, robot, views, points, crop):
    clouds, _ = views
    seen = clouds["right"].points[-3000:] if isinstance(points, str) else points
    covered = CameraCloud(seen, clouds["right"].frame_id, 1000.0)
    cameras = CloudMerger(calibration, robot, CloudOptions(crop=crop), largest_gap=0.1, largest_disagreement=0.003)
    with pytest.raises(SoftformError, match="Only 0 of the .* points of camera right lie on robot 'membrane'"):
        cameras.merge({"left": clouds["left"], "right": covered})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"frame_id": "another"}, "calibrated in frame 'right_optical_frame'"),
        ({"captured_at": 1000.3}, "0.30 s older"),
        ({"scale": 1000.0}, "Clouds must be in metres"),
        ({"scale": 0.001}, "Clouds must be in metres"),
    ],
)
def test_clouds_that_do_not_belong_together_are_rejected(calibration, robot, views, change, says):
    clouds, _ = views
    right = clouds["right"]
    changed = CameraCloud(
        right.points * change.get("scale", 1.0),
        change.get("frame_id", right.frame_id),
        change.get("captured_at", right.captured_at),
    )
    with pytest.raises(SoftformError, match=says):
        merger(calibration, robot).merge({"left": clouds["left"], "right": changed})


def coloured_cloud(camera, frame_id, depth_noise=0.0, seed=0):
    """The organised cloud of a depth camera that looks at the sheet; some pixels have no depth."""
    picture = camera.picture(SHEET, seed=seed)
    height, width = picture.shape[:2]
    column, row = np.meshgrid(np.arange(width), np.arange(height))
    rays = np.stack([column, row, np.ones_like(row)], axis=-1) @ np.linalg.inv(camera.matrix).T
    depth = -camera.eye[2] / (rays @ camera.rotation)[..., 2]
    random = np.random.default_rng(seed)
    depth = depth * (1.0 + depth_noise * random.standard_normal(depth.shape))
    depth[random.random(depth.shape) < 0.1] = np.nan
    table = np.zeros((height, width), dtype=[("xyz", "<f4", 3), ("bgr", "u1", 3), ("free", "u1")])
    table["xyz"], table["bgr"] = rays * depth[..., None], picture
    cloud = PointCloud2(height=height, width=width, point_step=16, row_step=16 * width)
    cloud.fields = [PointField(name=n, offset=4 * k, datatype=7, count=1) for k, n in enumerate(("x", "y", "z", "rgb"))]
    cloud.header.frame_id = frame_id
    cloud._data.frombytes(table.tobytes())
    return cloud


@pytest.fixture(scope="module")
def depth_cameras(sheet_camera):
    size = {"size": (848, 480), "focal_length": 610.0}
    return {"left": sheet_camera([-0.25, -0.1, 0.4], **size), "right": sheet_camera([0.25, 0.15, 0.45], **size)}


def off_the_truth(registration, camera):
    """Largest error, m, of a calibrated camera on a robot about the origin."""
    there = np.array(list(PLACES.values()))
    in_camera = (there - camera.eye) @ camera.rotation.T
    return np.linalg.norm(in_camera @ registration.rotation.T + registration.translation - there, axis=1).max()


def test_the_printed_codes_calibrate_cameras_that_see_them(tmp_path, depth_cameras, monkeypatch):
    monkeypatch.setattr(sheet_in_cloud, "_CLOUDS", 2)
    monkeypatch.setattr(sheet_in_cloud, "_TIME_LIMIT", 40.0)
    clouds = {name: coloured_cloud(camera, f"{name}_frame", 0.01) for name, camera in depth_cameras.items()}
    ended = threading.Event()

    def send():
        with BackgroundNode("cameras", "softform") as node:
            publishers = {
                name: node.create_publisher(PointCloud2, f"{name}/points", qos.TRUE_SURFACE) for name in clouds
            }
            while not ended.wait(0.3):
                for name, publisher in publishers.items():
                    publisher.publish(clouds[name])

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    path = tmp_path / "cameras.yaml"
    arguments = ["--camera", "left=left/points", "--camera", "right=right/points"]
    result = CliRunner().invoke(calibrate_cameras, [*arguments, "--output", str(path)])
    ended.set()
    sender.join()
    assert result.exit_code == 0, (result.output, result.exception)
    kept = load_calibration(path).cameras
    assert kept["left"].topic == "left/points"
    assert kept["right"].frame_id == "right_frame"
    errors = [1000.0 * off_the_truth(kept[name].registration(), camera) for name, camera in depth_cameras.items()]
    print(f"calibrate-cameras: {max(errors):.2f} mm on the robot")  # noqa: T201 - cited in the docs
    assert max(errors) < 1.0
    assert all(camera.residual < 0.001 for camera in kept.values())


def test_clouds_without_codes_rows_or_colours_are_rejected(depth_cameras):
    detector, cloud = CodeDetector(SHEET), coloured_cloud(depth_cameras["left"], "left_frame")
    assert len(corners_in_cloud(cloud, detector)) > 50
    with pytest.raises(SoftformError, match="0 codes"):
        corners_in_cloud(cloud, CodeDetector(SHEET.__class__((297, 210), 0, 0, 36, 8)))
    flat = PointCloud2(height=1, width=848 * 480, point_step=16, row_step=16 * 848 * 480, data=cloud.data)
    flat.fields = cloud.fields
    with pytest.raises(SoftformError, match="not organised"):
        corners_in_cloud(flat, detector)
    cloud.fields = list(cloud.fields)[:3]
    with pytest.raises(SoftformError, match="no field rgb"):
        corners_in_cloud(cloud, detector)


def points_file(tmp_path, **changes):
    content = {
        "places": {name: place.tolist() for name, place in PLACES.items()},
        "cameras": {
            name: {
                "topic": STREAMS[name][0],
                "frame_id": STREAMS[name][1],
                "points": {point: place.tolist() for point, place in points.items()},
            }
            for name, points in seen_by_all(noise=0.0005).items()
        },
    }
    path = tmp_path / "points.yaml"
    path.write_text(yaml.safe_dump(content | changes))
    return path, content


def test_points_identified_by_hand_calibrate_too(tmp_path):
    path, _ = points_file(tmp_path)
    output = tmp_path / "cameras.yaml"
    result = CliRunner().invoke(calibrate_cameras, ["--points", str(path), "--output", str(output)])
    assert result.exit_code == 0, result.output
    kept = load_calibration(output)
    assert kept.robot == "membrane"
    assert off_by_pose(kept.cameras["left"].registration(), LEFT) < 0.002


def test_points_may_be_numbered(tmp_path):
    path, content = points_file(tmp_path)
    for points in (content["places"], *(camera["points"] for camera in content["cameras"].values())):
        renamed = {list(PLACES).index(name): place for name, place in points.items() if name in PLACES}
        points.clear()
        points.update(renamed)
    path.write_text(yaml.safe_dump(content))
    output = tmp_path / "cameras.yaml"
    result = CliRunner().invoke(calibrate_cameras, ["--points", str(path), "--output", str(output)])
    assert result.exit_code == 0 and output.exists(), result.output


def off_by_pose(registration, truth):
    return off_by(RigidTransform(registration.rotation, registration.translation), truth)


def test_a_point_measured_wrongly_is_named_and_nothing_is_written(tmp_path):
    path, content = points_file(tmp_path)
    content["cameras"]["right"]["points"]["corner 2"][0] += 0.05
    path.write_text(yaml.safe_dump(content))
    output = tmp_path / "cameras.yaml"
    result = CliRunner().invoke(calibrate_cameras, ["--points", str(path), "--output", str(output)])
    assert isinstance(result.exception, SoftformError)
    assert "camera right" in str(result.exception)
    assert "'corner 2'" in str(result.exception)
    assert not output.exists()


@pytest.mark.parametrize("whose", ["left", "places"])
@pytest.mark.parametrize("factor", [1000.0, 100.0])
def test_points_in_another_unit_are_told(tmp_path, whose, factor):
    path, content = points_file(tmp_path)
    points = content["places"] if whose == "places" else content["cameras"][whose]["points"]
    points |= {name: [factor * value for value in place] for name, place in points.items()}
    if whose == "places" and factor == 100.0:
        points["tip"][2] = 20.5
    path.write_text(yaml.safe_dump(content))
    result = CliRunner().invoke(calibrate_cameras, ["--points", str(path), "--output", str(tmp_path / "out.yaml")])
    assert f"of {whose} in" in str(result.exception) and "is not in metres" in str(result.exception)
    assert not (tmp_path / "out.yaml").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--points", "none.yaml"],
        ["--points", "a.yaml", "--camera", "a=b"],
        ["--camera", "left"],
        ["--camera", "a=b", "--camera", "a=c"],
        ["--camera", "a=silent"],
        ["--camera", "a=b", "--sheet-pose", "nan", "0", "0", "0"],
        ["--camera", "a=b", "--ruler-length", "0"],
        ["--points", __file__],
    ],
)
def test_what_is_asked_wrongly_is_rejected(arguments, monkeypatch):
    monkeypatch.setattr(sheet_in_cloud, "_TIME_LIMIT", 0.2)
    result = CliRunner().invoke(calibrate_cameras, arguments)
    assert isinstance(result.exception, SoftformError), result.output
    assert result.exception.next_step
    assert not Path("cameras.yaml").exists()
