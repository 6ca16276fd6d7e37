"""Sends a stream of targets to the servo, on time, and receives its state."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped
from rclpy.publisher import Publisher
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_client.client_inputs import as_shape, as_shape_or_values
from softform_client.reach_messages import as_light, features_to_message, triangles_to_message
from softform_client.steering_beats import ProgramBeats
from softform_core.arrays import Array
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_interfaces.msg import ServoState, TargetMesh, TargetPoints
from softform_ros import qos
from softform_ros.action_caller import ActionCaller, NotConnectedError
from softform_ros.conversions import cloud_from_points, packed_vertices

Target: TypeAlias = Shape | FeaturePoints | Array
"""A shape (also points (N, 3) m), feature points of a robot's surface, or a place (3,) m of a robot's tip."""

_TOPICS = {
    "target_shape": PointCloud2,
    "target_mesh": TargetMesh,
    "target_points": TargetPoints,
    "target_tip": PointStamped,
}
_PATIENCE = 5.0
"""Longest wait for the servo's subscription, s."""
_POLL_SECONDS = 0.05


def streamed(caller: ActionCaller, targets: Iterable[Target], rate: float, frame: str) -> Iterator[ServoState]:
    """Publish each target when it is due, stamped with that moment; see `ShapeClient.stream`."""
    node, state = caller.node, ServoState()
    publishers = {topic: node.create_publisher(kind, topic, qos.TARGET_SHAPE) for topic, kind in _TOPICS.items()}

    def note(message: ServoState) -> None:
        nonlocal state
        state = message

    subscription = node.create_subscription(ServoState, "servo_state", note, qos.SERVO_STATE)
    try:
        with ProgramBeats(node) as beats:
            deadline = time.monotonic()
            for target in targets:
                time.sleep(max(0.0, deadline - time.monotonic()))
                deadline = max(deadline + 1.0 / rate, time.monotonic())
                topic, pack = _packing(target)
                _wait_until_heard(publishers[topic])
                beats.note_target()
                publishers[topic].publish(pack(frame, node.get_clock().now().to_msg()))
                yield state
    finally:
        node.destroy_subscription(subscription)
        for publisher in publishers.values():
            node.destroy_publisher(publisher)


def _wait_until_heard(publisher: Publisher) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not publisher.get_subscription_count():
        if time.monotonic() > deadline:
            raise NotConnectedError(
                f"No servo listens to {publisher.topic_name}.",
                "Launch the stack, and check the namespace; robots with a surface take shapes and feature points, "
                "robots with a tip its places.",
            )
        time.sleep(_POLL_SECONDS)


def _packing(target: Target) -> tuple[str, Callable[[str, Time], Any]]:
    """Return the topic of a target, and what makes its message of a frame and a stamp."""
    if isinstance(target, FeaturePoints):
        return "target_points", partial(features_to_message, target)
    taken = as_shape_or_values(target)
    if isinstance(taken, np.ndarray) and taken.shape == (3,):
        return "target_tip", partial(_tip_message, taken)
    light = as_light(as_shape(taken))
    if light.faces is not None:
        return "target_mesh", partial(_mesh_message, light)
    return "target_shape", partial(cloud_from_points, light.points)


def _tip_message(place: Array, frame: str, stamp: Time) -> PointStamped:
    x, y, z = (float(coordinate) for coordinate in place)
    return PointStamped(header=Header(frame_id=frame, stamp=stamp), point=Point(x=x, y=y, z=z))


def _mesh_message(target: Shape, frame: str, stamp: Time) -> TargetMesh:
    return TargetMesh(
        header=Header(frame_id=frame, stamp=stamp),
        vertices=packed_vertices(target.points),
        triangles=triangles_to_message(target),
    )
