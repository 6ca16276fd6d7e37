"""One end of the topics between a node and a running robot: commands out, pressures and captures in."""

from types import TracebackType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import DriverWatch
from softform_client.held_command import HeldCommand
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.msg import ChamberPressures, DriverState, MarkerFrame
from softform_ros import qos
from softform_ros.conversions import seconds_from_stamp
from softform_ros.frames import Frames
from softform_ros.timers import create_steady_timer

Message = TypeVar("Message")

_REPEAT_PERIOD = 0.2
_STATE_TIMEOUT = 1.0


class RobotLink:
    """Talks to driver and capture devices while the `with` block lasts.

    What is held is repeated, since the driver vents the robot when commands cease: so it does when this process dies.

    Attributes:
        driver: What the driver says.
        clouds: Captured clouds.
        markers: Captured markers.
        command: What the robot holds.
    """

    def __init__(self, robot: Robot, node: Node, frames: Frames) -> None:
        """Nothing is opened before the `with` block.

        Args:
            robot: Robot whose chambers are commanded.
            node: Where the topics are opened; something else spins it.
            frames: What the node knows of frames.
        """
        self._robot, self._node, self._frames = robot, node, frames
        self.driver = DriverWatch(robot, _STATE_TIMEOUT)
        self.clouds: CaptureWatch[PointCloud2] = CaptureWatch()
        self.markers: CaptureWatch[MarkerFrame] = CaptureWatch()
        self.command = HeldCommand(self._publish)
        self._stop_reason: str | None = None

    @property
    def stop_reason(self) -> str | None:
        """Why the driver stopped following the commands of this link, None if it has not."""
        return self._stop_reason

    def __enter__(self) -> "RobotLink":
        """Open the topics."""
        node = self._node
        self._publisher = node.create_publisher(ChamberPressures, "pressure_command", qos.PRESSURE_COMMAND)
        self._subscriptions = [
            node.create_subscription(kind, topic, note, profile)
            for kind, topic, note, profile in (
                (ChamberPressures, "pressure_state", self._on_pressures, qos.PRESSURE_STATE_READER),
                (DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE),
                (PointCloud2, "captured_cloud", self._on_cloud, qos.CAPTURED_CLOUD),
                (MarkerFrame, "captured_markers", self._on_markers, qos.CAPTURED_MARKERS),
            )
        ]
        self._timer = create_steady_timer(node, _REPEAT_PERIOD, self.command.repeat)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hold nothing, so that the driver vents the robot, and close."""
        self.command.release()
        self._node.destroy_timer(self._timer)
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._node.destroy_publisher(self._publisher)

    def commands(self, actuation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Commands (k,) Pa of the actuators under an actuation (m,) Pa."""
        return self._robot.actuators_of(actuation)

    def _publish(self, pressures: NDArray[np.float64]) -> None:
        message = ChamberPressures(name=self._robot.actuators, pressure=pressures.tolist())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _on_pressures(self, message: ChamberPressures) -> None:
        self.driver.note_pressures(
            message.name, message.pressure, message.status, seconds_from_stamp(message.header.stamp)
        )

    def _on_driver_state(self, message: DriverState) -> None:
        # After a stop the robot must not move by itself when the driver is reset, whether or not it was held just then.
        # A driver that only vents has no command: where nothing is held, that was this link's wish.
        followed, holds = self.driver.follows, self.command.pressures is not None
        stopped = self.driver.note_state(message.state, message.reason)
        if stopped and (holds or (followed and message.state != DriverState.VENTED)):
            self._stop_reason = message.reason
            self.command.release()

    def _on_cloud(self, message: PointCloud2) -> None:
        self.clouds.note(self._in_robot_frame(message), seconds_from_stamp(message.header.stamp))

    def _on_markers(self, message: MarkerFrame) -> None:
        self.markers.note(self._in_robot_frame(message), seconds_from_stamp(message.header.stamp))

    def _in_robot_frame(self, message: Message) -> Message:
        """A capture in the robot's frame; as it came if TF cannot tell the motion, and then it makes no frame."""
        try:
            return self._frames.into(self._robot.base_frame, message)
        except SoftformError as error:
            self._node.get_logger().warning(f"capture of no use: {error}", throttle_duration_sec=5.0)
            return message
