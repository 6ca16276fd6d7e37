"""Sends a stream of targets to the servo, on time, and receives its state."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import PointCloud2
from shape_msgs.msg import Mesh, MeshTriangle
from std_msgs.msg import Header

from softform_client.reach_messages import as_light, features_to_message
from softform_core.arrays import Array
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.target import TargetShape
from softform_interfaces.msg import ServoState, TargetMesh, TargetPoints
from softform_ros import qos
from softform_ros.action_caller import ActionCaller, NotConnectedError
from softform_ros.conversions import cloud_from_points

Target: TypeAlias = TargetShape | FeaturePoints | Array
"""A shape or feature points of a robot's surface, or a place (3,) m of a robot's tip."""

_TOPICS = {
    "target_shape": PointCloud2,
    "target_mesh": TargetMesh,
    "target_points": TargetPoints,
    "target_tip": PointStamped,
}
_PATIENCE = 5.0
"""s to wait for the servo's subscription."""
_POLL_SECONDS = 0.05


def streamed(caller: ActionCaller, targets: Iterable[Target], rate: float, frame: str) -> Iterator[ServoState]:
    """Publish each target when it is due, stamped with that moment; see `ShapeClient.stream`."""
    with _TargetTopics(caller.node) as topics:
        deadline = time.monotonic()
        for target in targets:
            time.sleep(max(0.0, deadline - time.monotonic()))
            deadline = max(deadline + 1.0 / rate, time.monotonic())
            topics.publish(target, frame)
            yield topics.state


class _TargetTopics:
    """The servo's topics, open in a `with` block."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._state = ServoState()

    def __enter__(self) -> "_TargetTopics":
        node = self._node
        self._publishers = {
            topic: node.create_publisher(kind, topic, qos.TARGET_SHAPE) for topic, kind in _TOPICS.items()
        }
        self._subscription = node.create_subscription(ServoState, "servo_state", self._on_state, qos.SERVO_STATE)
        return self

    def __exit__(self, *error: object) -> None:
        self._node.destroy_subscription(self._subscription)
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)

    @property
    def state(self) -> ServoState:
        """What the servo said last; before it said anything, that it is off."""
        return self._state

    def publish(self, target: Target, frame: str) -> None:
        """Send a target, stamped now.

        Raises:
            NotConnectedError: If no servo listens for such targets.
        """
        if isinstance(target, FeaturePoints):
            publisher, stamp = self._heard("target_points")
            publisher.publish(features_to_message(target, frame, stamp))
            return
        if isinstance(target, np.ndarray):
            publisher, stamp = self._heard("target_tip")
            x, y, z = (float(coordinate) for coordinate in target)
            publisher.publish(PointStamped(header=Header(frame_id=frame, stamp=stamp), point=Point(x=x, y=y, z=z)))
            return
        light = as_light(target)
        if light.faces is not None:
            publisher, stamp = self._heard("target_mesh")
            publisher.publish(_mesh_message(light, frame, stamp))
        else:
            publisher, stamp = self._heard("target_shape")
            publisher.publish(cloud_from_points(light.points, frame, stamp))

    def _heard(self, topic: str) -> tuple[Publisher, Time]:
        """The publisher of a topic, once the servo listens to it, and the time of then."""
        publisher, deadline = self._publishers[topic], time.monotonic() + _PATIENCE
        while not publisher.get_subscription_count():
            if time.monotonic() > deadline:
                raise NotConnectedError(
                    f"No servo listens to {publisher.topic_name}.",
                    "Launch the stack, and check the namespace; robots with a surface take shapes and feature points, "
                    "robots with a tip its places.",
                )
            time.sleep(_POLL_SECONDS)
        return publisher, self._node.get_clock().now().to_msg()

    def _on_state(self, message: ServoState) -> None:
        self._state = message


def _mesh_message(target: TargetShape, frame: str, stamp: Time) -> TargetMesh:
    assert target.faces is not None
    return TargetMesh(
        header=Header(frame_id=frame, stamp=stamp),
        mesh=Mesh(
            vertices=[Point(x=float(x), y=float(y), z=float(z)) for x, y, z in target.points],
            triangles=[MeshTriangle(vertex_indices=face) for face in target.faces.astype(np.uint32)],
        ),
    )
