"""Sends a stream of targets to the servo, on time, and receives its state."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from shape_msgs.msg import Mesh, MeshTriangle
from std_msgs.msg import Header

from softform_client.reach_messages import as_light, features_to_message
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.target import TargetShape
from softform_interfaces.msg import ServoState, TargetMesh, TargetPoints
from softform_ros import qos
from softform_ros.action_caller import ActionCaller, NotConnectedError
from softform_ros.conversions import cloud_from_points

Target: TypeAlias = TargetShape | FeaturePoints

_TOPICS = {"target_shape": PointCloud2, "target_mesh": TargetMesh, "target_points": TargetPoints}
_PATIENCE = 5.0
"""s to wait for the servo's subscriptions."""
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
        deadline = time.monotonic() + _PATIENCE
        while not all(publisher.get_subscription_count() for publisher in self._publishers.values()):
            if time.monotonic() > deadline:
                self.__exit__()
                raise NotConnectedError(
                    f"No servo in {node.get_namespace()} listens for targets.",
                    "Launch the stack with a robot that has a surface, and check the namespace.",
                )
            time.sleep(_POLL_SECONDS)
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
        """Send a target, stamped now."""
        stamp = self._node.get_clock().now().to_msg()
        if isinstance(target, FeaturePoints):
            self._publishers["target_points"].publish(features_to_message(target, frame, stamp))
            return
        light = as_light(target)
        if light.faces is not None:
            self._publishers["target_mesh"].publish(_mesh_message(light, frame, stamp))
        else:
            self._publishers["target_shape"].publish(cloud_from_points(light.points, frame, stamp))

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
