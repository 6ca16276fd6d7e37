"""One end of the topics between a program and a running robot: commands out, pressures and captured clouds in."""

import contextlib
import threading
from types import TracebackType

import numpy as np
import rclpy
from numpy.typing import NDArray
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import PointCloud2

from softform_core.robots import Robot
from softform_ik.capture_watch import CaptureWatch
from softform_ik.driver_watch import DriverWatch
from softform_ik.held_command import HeldCommand
from softform_interfaces.msg import ChamberPressures, DriverState
from softform_ros import qos
from softform_ros.conversions import seconds_from_stamp

_REPEAT_PERIOD = 0.2
_STATE_TIMEOUT = 1.0


class RobotLink:
    """Talks to driver and scanner while the `with` block lasts.

    What is held is repeated, since the driver vents the robot when commands cease: so it does when this process dies.

    Attributes:
        driver: What the driver says.
        captures: Captured clouds, `PointCloud2`.
        command: What the robot holds.
    """

    def __init__(self, robot: Robot, namespace: str) -> None:
        """Nothing is opened before the `with` block.

        Args:
            robot: Whose chambers are commanded.
            namespace: Where the stack runs.
        """
        self._robot, self._namespace = robot, namespace
        self.driver = DriverWatch(robot, _STATE_TIMEOUT)
        self.captures: CaptureWatch[PointCloud2] = CaptureWatch()
        self.command = HeldCommand(self._publish)
        self._stop_reason: str | None = None

    @property
    def stop_reason(self) -> str | None:
        """Why the driver stopped following the commands of this link, None if it has not."""
        return self._stop_reason

    def __enter__(self) -> "RobotLink":
        """Open the topics."""
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node(
            "collector", namespace=self._namespace, context=self._context, use_global_arguments=False
        )
        self._publisher = self._node.create_publisher(ChamberPressures, "pressure_command", qos.PRESSURE_COMMAND)
        self._node.create_subscription(
            ChamberPressures, "pressure_state", self._on_pressures, qos.PRESSURE_STATE_READER
        )
        self._node.create_subscription(DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE)
        self._node.create_subscription(PointCloud2, "captured_cloud", self._on_cloud, qos.CAPTURED_CLOUD)
        self._node.create_timer(_REPEAT_PERIOD, self.command.repeat)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="collector", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hold nothing, so that the driver vents the robot, and close."""
        self.command.release()
        rclpy.shutdown(context=self._context)
        self._thread.join()
        self._node.destroy_node()

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException, ShutdownException):
            self._executor.spin()

    def _publish(self, pressures: NDArray[np.float64]) -> None:
        message = ChamberPressures(name=self._robot.chambers, pressure=pressures.tolist())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _on_pressures(self, message: ChamberPressures) -> None:
        self.driver.note_pressures(
            message.name, message.pressure, message.status, seconds_from_stamp(message.header.stamp)
        )

    def _on_driver_state(self, message: DriverState) -> None:
        # After a stop the robot must not move by itself when the driver is reset.
        if self.driver.note_state(message.state, message.reason) and self.command.release():
            self._stop_reason = message.reason

    def _on_cloud(self, message: PointCloud2) -> None:
        self.captures.note(message, seconds_from_stamp(message.header.stamp))
