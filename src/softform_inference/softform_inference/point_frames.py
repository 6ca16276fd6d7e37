"""Publish the frames of named points of a surface on /tf."""

import numpy as np
from builtin_interfaces.msg import Time
from tf2_msgs.msg import TFMessage

from softform_core.arrays import Array
from softform_core.forward.forward_model import SurfaceModel
from softform_core.forward.one_point import frame_of_points
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ros import qos
from softform_ros.conversions import seconds_from_stamp
from softform_ros.frames import transform_message
from softform_ros.lifecycle import SoftformLifecycleNode


class PointFrames:
    """The frames `ROBOT/NAME` of a surface, place and axes by its model; see `frame_of_points` for the axes."""

    def __init__(self, node: SoftformLifecycleNode, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self._parameters = [robot.point_parameters(name) for name in robot.frames]
        self._predicted: tuple[SurfaceModel, SurfaceModel, Array] | None = None  # of all, of the points, at rest
        self._publisher = node.create_publisher(TFMessage, "/tf", qos.TF)

    def close(self) -> None:
        """Close the topic."""
        self._node.destroy_publisher(self._publisher)

    def publish(self, pipeline: SurfaceModel, actuation: Array, stamp: Time) -> None:
        """Tell where the frames are at an actuation (m,); a frame cannot say that it is stale."""
        if self._predicted is None or self._predicted[0] is not pipeline:  # another sim-to-real model came into use
            of_points = pipeline.at(np.concatenate(self._parameters))
            self._predicted = pipeline, of_points, of_points.points(self._robot.rest_actuation)
        _, of_points, rest = self._predicted
        robot, points = self._robot, np.stack([rest, of_points.points(actuation)])
        starts = np.cumsum([len(parameters) for parameters in self._parameters])[:-1]
        frames = zip(robot.frames, np.split(points / MM_PER_M, starts, axis=1), strict=True)
        transforms = [
            transform_message(robot.base_frame, robot.frame_of(name), seconds_from_stamp(stamp), frame_of_points(*each))
            for name, each in frames
        ]
        self._publisher.publish(TFMessage(transforms=transforms))
