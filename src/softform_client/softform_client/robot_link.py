"""One end of the topics between a node and a running robot: commands out, measured values and captures in."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import AT_REST, DriverWatch
from softform_client.held_command import HeldCommand
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.msg import DriverState, MarkerFrame
from softform_ros import qos
from softform_ros.command_lease import CommandLease
from softform_ros.frames import Frames
from softform_ros.standstill import Standstill
from softform_ros.timers import create_steady_timer

Message = TypeVar("Message")

_REPEAT_PERIOD = 0.2
_STATE_TIMEOUT = 1.0


class RobotLink:
    """Talks to driver and capture devices while the `with` block lasts.

    The held command is repeated, since the driver makes the robot safe when commands cease, as when this process
    dies. The driver's lease is asked for with the first command, and again after `let_go`; when it dies, or the driver
    was made safe, at fault or reset by others since the motion was asked for, nothing more is commanded.

    Attributes:
        driver: State of the driver.
        clouds: Captured clouds.
        markers: Captured markers.
        command: The held command.
        stop_reason: Reason why the driver stopped following the commands of this link, None if it has not.
    """

    def __init__(self, robot: Robot, node: Node, frames: Frames, epoch: int = 0) -> None:
        """Command what was asked for in that epoch of the driver; 0 for a link that only listens."""
        self._robot, self._node, self._frames = robot, node, frames
        self.driver = DriverWatch(robot, _STATE_TIMEOUT, source=node.get_name())
        self.clouds: CaptureWatch[PointCloud2] = CaptureWatch(read=self._in_robot_frame)
        self.markers: CaptureWatch[MarkerFrame] = CaptureWatch(read=self._in_robot_frame)
        self.command = HeldCommand(lambda values: self._lease.send(values))
        self._has_asked, self._epoch = False, epoch
        self.stop_reason: str | None = None
        self._standstill = Standstill()
        self._opened = ExitStack()

    def __enter__(self) -> "RobotLink":
        """Open the topics."""
        node = self._node
        self._lease = CommandLease(node, self._robot)
        self.driver.listen(node, self._opened)
        for kind, topic, note, profile in (
            (DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE),
            (PointCloud2, "captured_cloud", self.clouds.take, qos.CAPTURED_CLOUD),
            (MarkerFrame, "captured_markers", self.markers.take, qos.CAPTURED_MARKERS),
        ):
            self._opened.callback(node.destroy_subscription, node.create_subscription(kind, topic, note, profile))
        self._opened.callback(node.destroy_timer, create_steady_timer(node, _REPEAT_PERIOD, self._repeat))
        self._standstill.seconds()  # what came before is none
        return self

    def _repeat(self) -> None:
        self._note_alive()
        self.command.repeat()

    def _note_alive(self) -> None:
        """Command nothing more once this process stood still, or the computer slept: what was asked for is too old."""
        if stood_still := self._standstill.seconds():
            self.stop_reason = f"this node stood still for {stood_still:.1f} s"
            self.let_go()

    def __exit__(self, *error: object) -> None:
        """Hold nothing, so that the driver makes the robot safe, and close."""
        self.let_go()
        self._opened.close()
        self._lease.close()

    def commands(self, actuation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return commands (k,) of the actuators under an actuation (m,)."""
        return self._robot.actuators_of(actuation)

    def hold(self, values: NDArray[np.float64], permitted: Callable[[], bool]) -> bool:
        """Hold values (k,) from now on, as `HeldCommand.hold`; waits for the lease if none was asked for yet.

        Raises:
            LeaseRejectedError: If it is rejected.
        """
        self._note_alive()
        if not self._has_asked:
            self._lease.acquire(self._epoch)
            self._has_asked = True
        return self.command.hold(values, lambda: self._lease.is_held and permitted())

    def let_go(self) -> None:
        """Hold nothing and give the lease up; `hold` asks for it again, unless the driver stopped following."""
        self._has_asked = self.stop_reason is not None
        self.command.release()
        self._lease.release(goes_on=True)

    def _on_driver_state(self, message: DriverState) -> None:
        # After a stop the robot must not move by itself when the driver is reset, whether or not it was held just then.
        # A driver that only makes safe has no command: where nothing is held, this link asked for that.
        followed, dead = self.driver.follows, self._lease.note(message)
        stopped = self.driver.note_driver(message)
        if dead or (stopped and followed and message.state not in AT_REST):
            self.stop_reason = message.reason
            self.let_go()

    def _in_robot_frame(self, message: Message) -> Message:
        """Return a capture in the robot's frame; unchanged, and unusable as a frame, if TF lacks the motion."""
        try:
            return self._frames.into(self._robot.base_frame, message)
        except SoftformError as error:
            self._node.get_logger().warning(f"capture of no use: {error}", throttle_duration_sec=5.0)
            return message
