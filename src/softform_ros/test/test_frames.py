"""Frames over the real topics: messages moved, static frames for late listeners, cameras, tf2's buffer."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Point, PointStamped, TransformStamped
from scipy.spatial.transform import Rotation
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_interfaces.msg import MarkerFrame, TargetMesh, TargetPoints
from softform_ros import frames as frames_module
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import (
    cloud_from_points,
    packed_vertices,
    points_from_cloud,
    stamp_from_seconds,
    unpacked_vertices,
    values_from_cloud,
)
from softform_ros.frames import Frames, StaticFrames, Tf2Source, place_from_message, transform_message
from softform_ros.transform_tree import LATENESS, TransformTree

PLACE = RigidTransform(Rotation.from_euler("xyz", [0.3, -0.4, 2.0]).as_matrix(), np.array([0.1, -0.2, 0.5]))
POINTS = np.random.default_rng(1).uniform(-0.1, 0.1, (50, 3))


@pytest.fixture
def nodes():
    with BackgroundNode("teller", "/lab") as teller, BackgroundNode("listener", "/softform") as listener:
        yield teller, listener


def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def array(points):
    return np.array([(point.x, point.y, point.z) for point in points])


def test_messages_are_brought_into_another_frame(nodes):
    teller, listener = nodes
    told = StaticFrames(teller)
    told.tell("base", "camera", PLACE)
    told.tell("base", "elsewhere", RigidTransform())
    frames = Frames(listener)
    # It came late, and hears of both, which TF takes up one after the other.
    until(lambda: [frames.listen().root(one) for one in ("camera", "elsewhere")] == ["base"] * 2)
    stamp = stamp_from_seconds(5.0)
    header, wanted = Header(frame_id="camera", stamp=stamp), PLACE.apply(POINTS)
    normals = dict(zip(("normal_x", "normal_y", "normal_z"), np.eye(3)[[0] * 50].T, strict=True))
    moved = frames.into("base", cloud_from_points(POINTS, "camera", stamp, normals))
    assert moved.header.frame_id == "base" and moved.header.stamp == stamp
    np.testing.assert_allclose(points_from_cloud(moved), wanted, atol=1e-6)
    np.testing.assert_allclose(values_from_cloud(moved, list(normals))[7], PLACE.rotation[:, 0], atol=1e-6)
    points = [Point(x=x, y=y, z=z) for x, y, z in POINTS.tolist()]
    features = frames.into("base", TargetPoints(header=header, u=[0.5], v=[0.2], position=points, weight=[2.0]))
    np.testing.assert_allclose(array(features.position), wanted, atol=1e-12)
    assert (features.header.frame_id, list(features.u), list(features.weight)) == ("base", [0.5], [2.0])
    mesh = TargetMesh(header=header, vertices=packed_vertices(POINTS))
    np.testing.assert_allclose(unpacked_vertices(frames.into("base", mesh).vertices), wanted, atol=1e-6)
    tip = frames.into("base", PointStamped(header=header, point=points[3]))
    np.testing.assert_allclose(array([tip.point])[0], wanted[3], atol=1e-12)
    assert tip.header.frame_id == "base"
    points[0] = Point(x=np.nan, y=np.nan, z=np.nan)
    markers = MarkerFrame(
        header=header, frame_number=3, name=["m"] * 50, position=points, visible=[False] + [True] * 49
    )
    seen = frames.into("base", markers)
    assert np.isnan(array(seen.position)[0]).all() and not seen.visible[0] and seen.frame_number == 3
    np.testing.assert_allclose(array(seen.position)[1:], wanted[1:], atol=1e-12)


def test_messages_without_points_or_frame_stay_as_they_are(nodes):
    frames = Frames(nodes[1])
    for message in (
        cloud_from_points(POINTS[:0], "camera", stamp_from_seconds(0.0)),
        cloud_from_points(POINTS, "", stamp_from_seconds(0.0)),
        cloud_from_points(POINTS, "base", stamp_from_seconds(0.0)),
        TargetPoints(header=Header(frame_id="camera")),
        TargetMesh(header=Header(frame_id="camera")),
    ):
        assert frames.into("base", message) is message


def test_a_frame_that_moves_must_be_fresh_and_bad_transforms_are_passed_over(nodes):
    teller, listener = nodes
    frames, publisher = Frames(listener), teller.create_publisher(TFMessage, "/tf", qos.TF)
    frames.listen()
    until(lambda: publisher.get_subscription_count() == 1)
    now, broken = time.time(), transform_message("base", "broken", 0.0, PLACE)
    broken.transform.rotation.w = 7.0
    publisher.publish(TFMessage(transforms=[broken, transform_message("base", "camera", now, PLACE)]))
    until(lambda: frames.listen().root("camera") == "base")
    assert frames.listen().root("broken") == "broken"
    cloud = cloud_from_points(POINTS, "camera", stamp_from_seconds(now))
    np.testing.assert_allclose(points_from_cloud(frames.into("base", cloud)), PLACE.apply(POINTS), atol=1e-6)
    with pytest.raises(SoftformError, match="stale"):
        frames.into("base", cloud_from_points(POINTS, "camera", stamp_from_seconds(now + 2.0)))


def test_of_a_camera_the_root_of_its_drivers_tree_is_reported(nodes):
    teller, listener = nodes
    optical = RigidTransform(Rotation.from_euler("x", -1.5).as_matrix(), np.array([0.0, 0.02, 0.0]))
    StaticFrames(teller).tell("camera_link", "camera_optical", optical)
    frames, places = Frames(listener), StaticFrames(listener)
    until(lambda: frames.listen().root("camera_optical") == "camera_link")
    places.tell_camera("base", "camera_optical", PLACE, frames.listen())
    until(lambda: frames.listen().root("camera_optical") == "base")
    found = frames.listen().lookup("base", "camera_optical", time.time())
    np.testing.assert_allclose(found.apply(POINTS), PLACE.apply(POINTS), atol=1e-12)
    places.tell_camera("base", "camera_optical", RigidTransform(), frames.listen())  # it stands there already
    places.tell_camera("base", "bare", PLACE, frames.listen())
    until(lambda: frames.listen().root("bare") == "base")
    np.testing.assert_allclose(frames.listen().lookup("base", "camera_optical", time.time()).rotation, found.rotation)


class StandIn:
    """What `tf2_ros` offers of what is used, as its documentation describes it, on a tree of ours."""

    class TransformException(Exception):  # noqa: N818
        pass

    class ExtrapolationException(TransformException):
        pass

    def __init__(self):
        self.tree, self.newest = TransformTree(), 100.0
        self.TransformListener = lambda buffer, node: SimpleNamespace()
        self.tree.put("base", "camera", None, PLACE)

    def Buffer(self, node):  # noqa: N802
        return self

    def lookup_transform(self, target, source, moment) -> TransformStamped:
        seconds = moment.nanoseconds * 1e-9
        if seconds > self.newest:
            raise self.ExtrapolationException("into the future")
        try:
            found = self.tree.lookup(target, source, seconds)
        except SoftformError as error:
            raise self.TransformException(str(error)) from error
        return transform_message(target, source, seconds or self.newest, found)

    def all_frames_as_yaml(self):
        return "camera: \n  parent: 'base'\n  broadcaster: 'default_authority'\n"


def test_tf2_is_used_where_it_is_installed(nodes, monkeypatch):
    monkeypatch.setattr(frames_module, "tf2_ros", StandIn())
    source = Frames(nodes[1]).listen()
    assert isinstance(source, Tf2Source)
    for stamp in (100.0, 100.0 + 0.9 * LATENESS):
        np.testing.assert_allclose(source.lookup("base", "camera", stamp).apply(POINTS), PLACE.apply(POINTS))
    with pytest.raises(SoftformError, match="into the future"):
        source.lookup("base", "camera", 100.0 + 1.1 * LATENESS)
    with pytest.raises(SoftformError, match="'nobody' into 'base'"):
        source.lookup("base", "nobody", 50.0)
    assert (source.root("camera"), source.root("nobody")) == ("base", "nobody")


def test_a_transform_travels_whole():
    back = place_from_message(transform_message("base", "camera", 5.0, PLACE))
    np.testing.assert_allclose(back.rotation, PLACE.rotation, atol=1e-12)
    np.testing.assert_allclose(back.translation, PLACE.translation, atol=1e-12)
