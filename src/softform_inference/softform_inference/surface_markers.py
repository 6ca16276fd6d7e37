"""Topic `predicted_marker`: the predicted surface for viewers that do not know our messages."""

import time

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from softform_core.arrays import Array
from softform_inference.prediction import PredictedPoints
from softform_interfaces.msg import MeshTopology
from softform_ros import qos
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.viewer_markers import surface_marker

_LEAST_SECONDS, _MOST_SECONDS = 0.2, 1.0
"""Between two markers while the surface moves, and while it does not, s: each is as large as twenty meshes."""

_MOVED = 0.0002
"""How far a vertex goes before the surface has moved, m."""


class SurfaceMarkers:
    """Publishes predicted points as a triangle list, at most 5 times a second, and once where nothing moves.

    Args:
        node: The node.
        topology: Triangles of the points.
    """

    def __init__(self, node: SoftformLifecycleNode, topology: MeshTopology) -> None:
        self._frame = topology.header.frame_id
        self._triangles = np.frombuffer(topology.triangles, dtype=np.uint32)
        self.publisher = node.create_publisher(Marker, "predicted_marker", qos.PREDICTED_SURFACE)
        self._sent: tuple[Array, bool] | None = None
        self._sent_at = -float("inf")

    @property
    def is_due(self) -> bool:
        """Whether somebody looks, and the last marker is old enough."""
        return bool(self.publisher.get_subscription_count()) and time.monotonic() - self._sent_at >= _LEAST_SECONDS

    def publish(self, predicted: PredictedPoints, stamp: Time, stale: bool) -> None:
        """Publish points of values measured at a time, if they are news; the rest shape's if it is `stale`."""
        now, points = time.monotonic(), predicted.points
        is_old = self._sent is None or self._sent[1] != stale or now - self._sent_at >= _MOST_SECONDS
        if self._sent is not None and not is_old and np.abs(points - self._sent[0]).max() < _MOVED:
            return
        self._sent, self._sent_at = (points, stale), now
        header = Header(frame_id=self._frame, stamp=stamp)
        self.publisher.publish(surface_marker(points, self._triangles, predicted.sigma, header, stale))
