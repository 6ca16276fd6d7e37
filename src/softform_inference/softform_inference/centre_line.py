"""Publish the predicted centre line of a robot."""

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import PointCloud2

from softform_core.arrays import Array
from softform_core.forward.centre_line import LINE_POINTS
from softform_core.forward.forward_model import ForwardModel
from softform_core.robots import CENTRE_LINE, Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.units import MM_PER_M
from softform_ros import qos
from softform_ros.conversions import cloud_from_points
from softform_ros.lifecycle import SoftformLifecycleNode


class CentreLineTopic:
    """Topic `predicted_centre_line`: points evenly along the line, in metres, with a field `v`, 0 ... 1 along it."""

    def __init__(self, node: SoftformLifecycleNode, robot: Robot) -> None:
        self._node, self._frame = node, robot.base_frame
        self._along = np.linspace(0.0, 1.0, LINE_POINTS)
        uv = np.stack([np.zeros(LINE_POINTS), self._along], axis=1)
        self._places = FeaturePoints.of(uv, np.zeros((LINE_POINTS, 3)), None, [CENTRE_LINE] * LINE_POINTS).on(robot)
        self._predicted: tuple[ForwardModel, ForwardModel] | None = None  # a model, and the same along the line
        self._publisher = node.create_publisher(PointCloud2, "predicted_centre_line", qos.PREDICTED_SURFACE)

    def close(self) -> None:
        """Close the topic."""
        self._node.destroy_publisher(self._publisher)

    def publish(self, model: ForwardModel, actuation: Array, stamp: Time) -> None:
        """Publish the line at an actuation (m,) if somebody listens; a cloud cannot say that it is stale."""
        if not self._publisher.get_subscription_count():
            return
        if self._predicted is None or self._predicted[0] is not model:  # another sim-to-real model came into use
            self._predicted = model, model.at(self._places.uv)
        points = np.asarray(self._predicted[1].forward(actuation[None]).points[0]) / MM_PER_M
        if self._places.anchors is not None:
            points = self._places.anchors.points(points)
        self._publisher.publish(cloud_from_points(points, self._frame, stamp, {"v": self._along}))
