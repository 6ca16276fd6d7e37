"""Check targets of the stream and prepare them to be followed, outside of the servo's thread."""

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_client.reach_goal import check_header, check_upright
from softform_client.reach_messages import faces_from_message, features_from_message
from softform_core.errors import SoftformError
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.follow_path import tip_wanted_at
from softform_core.inverse.servo_target import ServoTarget
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_count, check_scale, check_target
from softform_interfaces.msg import TargetMesh, TargetPoints
from softform_ros.conversions import nanoseconds_from_stamp, points_from_cloud, unpacked_vertices


class ServoIntake:
    """Checks targets and prepares them; one stamped `stale_after` s ago or longer is rejected.

    Args:
        robot: The robot that follows them.
        stale_after: s.
        dimensions: Coordinates of the robot's tip, if it has one: a tip in a plane cannot leave it, and what a target
            says of the direction across does not count.
    """

    def __init__(self, robot: Robot, stale_after: float, dimensions: int = 3) -> None:
        self._robot, self._stale_after, self._dimensions = robot, stale_after, dimensions

    @property
    def topics(self) -> dict[str, type]:
        """Topics of targets that fit the robot, and their type."""
        if not self._robot.surfaces:
            return {"target_tip": PointStamped, "target_points": TargetPoints}
        return {"target_shape": PointCloud2, "target_mesh": TargetMesh, "target_points": TargetPoints}

    def target(self, message: Any) -> ServoTarget:
        """Return target of a message of one of the topics.

        Raises:
            SoftformError: If it cannot be followed, with the reason.
        """
        arrived, stamp = time.monotonic(), self._stamp(message.header)
        if isinstance(message, PointStamped):
            place = np.array([message.point.x, message.point.y, message.point.z])[: self._dimensions]
            if not np.isfinite(place).all():
                raise SoftformError("The place of the tip has NaN or infinite values.", "Give finite metres.")
            check_scale(place[None], "Place", self._robot.name, self._robot.body.size)
            return ServoTarget(stamp, arrived, features=tip_wanted_at(place))
        if isinstance(message, TargetPoints):
            features = features_from_message(message, self._robot)
            if features is None:
                raise SoftformError("There are no feature points.", "Give at least one, or stop the stream.")
            return ServoTarget(stamp, arrived, features=features, accept_unreachable=message.accept_unreachable)
        shape = self._of_mesh(message) if isinstance(message, TargetMesh) else self._of_cloud(message)
        return ServoTarget(stamp, arrived, closest_points_on(shape))

    def _of_cloud(self, cloud: PointCloud2) -> Shape:
        check_count(cloud.width * cloud.height, "target")
        return Shape(check_target(points_from_cloud(cloud), self._robot))

    def _of_mesh(self, mesh: TargetMesh) -> Shape:
        check_count(len(mesh.vertices) // 3, "target")
        points = check_target(unpacked_vertices(mesh.vertices), self._robot)
        target = Shape.from_mesh(points, faces_from_message(mesh.triangles))
        check_upright(target, self._robot)
        return target

    def _stamp(self, header: Header) -> int:
        """Stamp of a target that is neither of another frame nor of another time, ns since the epoch."""
        check_header(header, self._robot.base_frame, time.time(), self._stale_after, of_stream=True)
        return nanoseconds_from_stamp(header.stamp)
