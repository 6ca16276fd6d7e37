"""Frames of a laboratory on /tf and /tf_static: where one stands in another, and points brought there."""

from collections.abc import Callable
from copy import copy
from typing import Any, TypeAlias, TypeVar

import numpy as np
import yaml
from geometry_msgs.msg import Point, PointStamped, TransformStamped
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_interfaces.msg import TargetMesh
from softform_ros import qos
from softform_ros.conversions import (
    NORMAL_FIELDS,
    cloud_from_points,
    packed_vertices,
    points_from_cloud,
    seconds_from_stamp,
    stamp_from_seconds,
    unpacked_vertices,
    values_from_cloud,
)
from softform_ros.quaternions import quaternion_of, rotation_of
from softform_ros.transform_tree import LATENESS, TransformTree

try:
    import tf2_ros
except ImportError:  # there is no ROS installation: the tree of ours takes its place
    tf2_ros = None

Message = TypeVar("Message")
_UNIT_TOLERANCE = 1e-2


FrameSource: TypeAlias = "TransformTree | Tf2Source"
"""Source of transforms between frames."""


class Frames:
    """Transforms received by a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._source: FrameSource | None = None

    def listen(self) -> FrameSource:
        """Listen from now on, at the latest from the first question on; frames that move are known from then."""
        if self._source is None:
            self._source = _listening_tree(self._node) if tf2_ros is None else Tf2Source(tf2_ros, self._node)
        return self._source

    def into(self, frame: str, message: Message) -> Message:
        """Return a message with points, in another frame.

        Args:
            frame: Target frame.
            message: `PointCloud2`, `TargetMesh`, `TargetPoints`, `PointStamped` or `MarkerFrame`; a zero stamp means
                now.

        Returns:
            The message itself if its points are in that frame already, it has none, or it names no frame.

        Raises:
            SoftformError: If TF cannot tell the motion, or the message cannot be read.
        """
        header = message.header  # type: ignore[attr-defined]
        if header.frame_id in ("", frame) or _is_empty(message):
            return message
        stamp = seconds_from_stamp(header.stamp) or self._node.get_clock().now().nanoseconds * 1e-9
        moved: Message = _moved(message, self.listen().lookup(frame, header.frame_id, stamp), frame)
        return moved


class StaticFrames:
    """Publishes transforms of frames that do not move; late subscribers receive them too."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(TFMessage, "/tf_static", qos.TF_STATIC)
        self._transforms: dict[str, TransformStamped] = {}

    def tell(self, parent: str, child: str, place: RigidTransform) -> None:
        """Publish where a frame stands: `place` takes its points into the parent, m."""
        now = self._node.get_clock().now().nanoseconds * 1e-9
        self._transforms[child] = transform_message(parent, child, now, place)
        # Late subscribers receive the last message only, so it has all of them.
        self._publisher.publish(TFMessage(transforms=list(self._transforms.values())))

    def tell_camera(self, base: str, camera: str, place: RigidTransform, known: FrameSource) -> None:
        """Publish where a camera stands; its driver may already publish its frame as a child of the camera's body.

        A frame has one parent only, so it is the body's frame that is published.

        Args:
            base: The robot's frame.
            camera: The camera's.
            place: Takes points of the camera into the base, m.
            known: Transforms known to TF.

        Raises:
            SoftformError: If TF cannot tell where the body stands in the camera's frame.
        """
        body = known.root(camera)
        if body == known.root(base):
            return
        now = self._node.get_clock().now().nanoseconds * 1e-9
        in_camera = RigidTransform() if body == camera else known.lookup(camera, body, now)
        self.tell(base, body, place.after(in_camera))


class Tf2Source:
    """The buffer of the module `tf2_ros`, as a `FrameSource` of the node that listens."""

    def __init__(self, tf2: Any, node: Node) -> None:
        self._tf2, self._buffer = tf2, tf2.Buffer(node=node)
        self._listener = tf2.TransformListener(self._buffer, node)

    def lookup(self, target: str, source: str, stamp: float) -> RigidTransform:
        """See `TransformTree.lookup`; what moves may be late by `LATENESS` here too."""
        try:
            return self._at(target, source, stamp)
        except self._tf2.ExtrapolationException as error:
            newest = self._buffer.lookup_transform(target, source, Time())
            known_at = seconds_from_stamp(newest.header.stamp)
            if not 0.0 <= stamp - known_at <= LATENESS:
                raise _from_tf2(source, target, error) from error
            return place_from_message(newest)
        except self._tf2.TransformException as error:
            raise _from_tf2(source, target, error) from error

    def root(self, frame: str) -> str:
        """See `TransformTree.root`."""
        frames = yaml.safe_load(self._buffer.all_frames_as_yaml()) or {}
        passed = {frame}
        while (parent := frames.get(frame, {}).get("parent")) and parent not in passed and parent != "NO_PARENT":
            passed.add(parent)
            frame = parent
        return frame

    def _at(self, target: str, source: str, stamp: float) -> RigidTransform:
        moment = Time.from_msg(stamp_from_seconds(stamp))
        return place_from_message(self._buffer.lookup_transform(target, source, moment))


def _from_tf2(source: str, target: str, error: Exception) -> SoftformError:
    return SoftformError(
        f"TF cannot bring '{source}' into '{target}': {error}.", "Publish transforms that connect them at that time."
    )


def _listening_tree(node: Node) -> TransformTree:
    tree = TransformTree()

    def taker(is_static: bool) -> Callable[[TFMessage], None]:
        def take(message: TFMessage) -> None:
            for one in message.transforms:
                stamp = None if is_static else seconds_from_stamp(one.header.stamp)
                try:
                    tree.put(one.header.frame_id, one.child_frame_id, stamp, place_from_message(one))
                except SoftformError as error:
                    node.get_logger().warning(f"transform rejected: {error}", throttle_duration_sec=5.0)

        return take

    node.create_subscription(TFMessage, "/tf", taker(False), qos.TF)
    node.create_subscription(TFMessage, "/tf_static", taker(True), qos.TF_STATIC_READER)
    return tree


def transform_message(parent: str, child: str, stamp: float, place: RigidTransform) -> TransformStamped:
    """Pack where a frame stands in its parent; m, s."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.header.stamp = parent, stamp_from_seconds(stamp)
    to, message.transform.rotation = message.transform.translation, quaternion_of(place.rotation)
    to.x, to.y, to.z = (float(value) for value in place.translation)
    return message


def place_from_message(message: TransformStamped) -> RigidTransform:
    """Unpack where a frame stands in its parent, m.

    Raises:
        SoftformError: If its quaternion has another length than one, or a number is not finite.
    """
    to, turn = message.transform.translation, message.transform.rotation
    length = float(np.linalg.norm([turn.x, turn.y, turn.z, turn.w]))
    if not abs(length - 1.0) < _UNIT_TOLERANCE:
        raise SoftformError(
            f"The quaternion of '{message.child_frame_id}' has length {length:.4g}.", "Look at who publishes it."
        )
    return RigidTransform(rotation_of(turn), np.array([to.x, to.y, to.z]))


def _is_empty(message: Any) -> bool:
    if isinstance(message, PointCloud2):
        return message.width * message.height == 0
    if isinstance(message, PointStamped):
        return False
    return not len(message.vertices if isinstance(message, TargetMesh) else message.position)


def _moved(message: Any, motion: RigidTransform, frame: str) -> Any:
    """Return a message whose points are moved into a frame; what else is in it stays."""
    if isinstance(message, PointCloud2):
        points = motion.apply(points_from_cloud(message))
        values: dict[str, NDArray[np.float64]] = {}
        if {field.name for field in message.fields}.issuperset(NORMAL_FIELDS):
            values = dict(zip(NORMAL_FIELDS, motion.rotate(values_from_cloud(message, NORMAL_FIELDS)).T, strict=True))
        return cloud_from_points(points, frame, message.header.stamp, values)
    moved = copy(message)
    moved.header = Header(stamp=message.header.stamp, frame_id=frame)
    if isinstance(message, TargetMesh):
        moved.vertices = packed_vertices(motion.apply(unpacked_vertices(message.vertices)))
    elif isinstance(message, PointStamped):
        moved.point = _moved_points([message.point], motion)[0]
    else:
        moved.position = _moved_points(message.position, motion)
    return moved


def _moved_points(points: list[Point], motion: RigidTransform) -> list[Point]:
    places = motion.apply(np.array([(point.x, point.y, point.z) for point in points]))
    return [Point(x=x, y=y, z=z) for x, y, z in places.tolist()]
