"""What the console does to a robot of its stack: targets of the servo, commands under the lease, stop, reset."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from geometry_msgs.msg import Point as PointMessage
from rclpy.client import Client
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from softform_client.steering_beats import SteeringBeats
from softform_console.protocol import Point
from softform_console.robot_view import RobotView
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.msg import Asked, DriverState, TargetPoints
from softform_interfaces.srv import Reset
from softform_ros import qos
from softform_ros.command_lease import CommandLease, is_of_one_driver
from softform_ros.guarded_node import GuardedNode

SERVO = "inverse_kinematics"
_HANDOVER_SECONDS = 3.0
_OWN_SECONDS = 1.0
"""Time within which the driver begins another epoch after a lease was given up, s."""
_QUIET_SECONDS = 0.8
"""Pause of the stream after the robot was made safe, s: the servo follows none that merely goes on (`stale_after`)."""

_DEAD_MAN_SECONDS = 1.0
"""Silence of this process after which the servo's node lets go, s: as the `command_timeout` of the driver."""

_STOP_SECONDS = 1.0
"""Time within which a driver must be there to be stopped, s."""

_PATIENCE_SECONDS = 2.0
"""Time within which the servo must follow, s."""

_POLL_SECONDS = 0.02


class RobotLink:
    """The robot as `steering.RobotPort` and `stop_request.DriverPort` want it.

    Args:
        node: Node of the console; another thread spins it.
        robot: The robot.
        view: What the stack says of it.
        tell: Takes what pages should be told.
        cancel_goal: Cancels the goal that runs.
    """

    def __init__(
        self,
        node: GuardedNode,
        robot: Robot,
        view: RobotView,
        tell: Callable[[str], None],
        cancel_goal: Callable[[], object],
    ) -> None:
        self._node, self._robot, self._view, self._tell, self._cancel = node, robot, view, tell, cancel_goal
        self._lease = CommandLease(node, robot)
        self._has_servo = robot.body.held is None
        self._epoch, self._over, self._gave_up_at = 0, 0, -float("inf")
        self._quiet_until = self._streamed_at = self._followed_at = -float("inf")
        self._targets = node.create_publisher(TargetPoints, "target_points", qos.TARGET_SHAPE)
        self._beats = SteeringBeats(node, _DEAD_MAN_SECONDS)
        self._stop = node.create_client(Trigger, "stop")
        self._release = node.create_client(Trigger, "release")
        self._reset = node.create_client(Reset, "reset")

    def close(self) -> None:
        """Close topics and services; the lease is given up."""
        self._lease.close()
        for client in (self._stop, self._release, self._reset):
            self._node.destroy_client(client)
        self._beats.close()
        self._node.destroy_publisher(self._targets)

    def note_driver(self, message: DriverState) -> bool:
        """Take a `driver_state`; returns whether what was wanted before is over, which is then rejected, too.

        An epoch that began as this console let go of the robot ends nothing that was asked for in the one before.
        """
        self._lease.note(message)
        before, self._epoch = self._epoch, message.epoch
        if before in (0, message.epoch):
            return False
        self._quiet_until = time.monotonic() + _QUIET_SECONDS
        is_own = time.monotonic() - self._gave_up_at < _OWN_SECONDS and message.state != DriverState.FAULT
        if not is_own:
            self._over = message.epoch
        return not is_own

    def check_epoch(self, epoch: int) -> None:
        """Reject what was asked for in an epoch of the driver that is over.

        Raises:
            SoftformError: If it is.
        """
        if self._epoch == 0:
            raise SoftformError("No driver has announced itself.", "Start it, and wait until it is active.")
        if epoch < self._over or not is_of_one_driver(epoch, self._epoch):
            raise SoftformError("The robot was stopped, at fault or reset since.", "Look at it, and ask again.")

    def publish_points(self, points: Sequence[Point]) -> str:
        """Send points to the servo, stamped now; returns why it does not follow, if so."""
        now = time.monotonic()
        if refusal := self._beats.refusal:  # both began at once: one of them goes on
            return refusal
        if now < self._quiet_until:
            return ""
        if now - self._streamed_at > _QUIET_SECONDS or self._view.servo_off == "":
            self._followed_at = now
        self._streamed_at = now
        if now - self._followed_at > _PATIENCE_SECONDS:
            self._quiet_until = now + _QUIET_SECONDS
            return self._view.servo_off or "it says nothing. See whether the node inverse_kinematics runs."
        self._send(points)
        return ""

    def _send(self, points: Sequence[Point]) -> None:
        header = Header(frame_id=self._robot.base_frame, stamp=self._node.get_clock().now().to_msg())
        self._targets.publish(
            TargetPoints(
                header=header,
                output=[one.output for one in points],
                u=[one.u for one in points],
                v=[one.v for one in points],
                position=[PointMessage(x=one.target[0], y=one.target[1], z=one.target[2]) for one in points],
                weight=[one.weight for one in points],
                accept_unreachable=True,  # a point that is dragged too far pulls on
            )
        )

    def beat(self, is_there: bool, of_goal: bool) -> None:
        """Tell the servo's node that who steers is there, or steers no more: without beats it lets go of the robot."""
        self._beats.beat(is_there, of_goal)

    def check_alone(self) -> None:
        """Reject what begins to move the robot while somebody else steers it: another console, or a program.

        Raises:
            SoftformError: If beats of another sender are heard.
        """
        self._beats.check_alone()

    def begin_manual(self) -> None:
        """Get the lease; what the servo holds is let go of before, and the robot made safe by that."""
        if self._holder() == SERVO:
            self.let_go()
            deadline = time.monotonic() + _HANDOVER_SECONDS
            while self._holder() == SERVO and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        self._lease.acquire()

    def send_values(self, values: Array) -> bool:
        """Command actuators (k,)."""
        return self._lease.send(values)

    def end_manual(self) -> None:
        """Give up the lease."""
        self._gave_up_at = time.monotonic()
        self._lease.release()

    def let_go(self, released: Callable[[], None] = lambda: None) -> None:
        """Let the servo give up what it holds; `released` is called once it says that it has.

        Arms that hold an object have none: they hold it with brakes, and a goal ends as it is cancelled.
        """
        self._gave_up_at = time.monotonic()
        if not self._has_servo:
            return
        self._call(self._release, Trigger.Request(), "The robot could not be let go of", released)

    def cancel_goal(self) -> None:
        """Cancel the goal that runs."""
        self._cancel()

    def reset(self, epoch: int) -> None:
        """Clear the faults of an epoch of the driver.

        Raises:
            SoftformError: If no driver is there.
        """
        asked = Asked(stamp=self._node.get_clock().now().to_msg(), epoch=epoch)
        if not self._reset.service_is_ready():
            raise SoftformError("No driver offers a reset.", "Start it.")
        self._call(self._reset, Reset.Request(asked=asked), "Not reset")

    def call_stop(self) -> Callable[[], tuple[bool, str] | None]:
        """Ask the driver to stop, at the latest within a second if it is not there yet; returns what tells its answer.

        Never waits: a driver that is not there must not delay the stop of another one. The answer is to be looked for
        again and again.
        """
        self._over, self._gave_up_at = self._epoch + 1, -float("inf")
        deadline = time.monotonic() + _STOP_SECONDS
        future: Any = None

        def ask() -> None:
            nonlocal future
            if future is None and self._stop.service_is_ready():
                future = self._stop.call_async(Trigger.Request())

        ask()

        def answer() -> tuple[bool, str] | None:
            ask()
            if future is None:
                return None if time.monotonic() < deadline else (False, "No driver offers a stop.")
            if not future.done():
                return None
            if future.exception() is not None:
                return False, f"The stop could not be asked for: {future.exception()}."
            said = future.result()
            return bool(said.success), str(said.message)

        return answer

    def rest(self, since: float) -> bool | None:
        """Return whether all is measured at rest, as the driver has said since; arms with an object: to stand still."""
        message = self._view.driver
        if message is None or self._view.driver_heard_at < since:
            return None
        return self._view.stands_still(since) or (len(message.at_rest) > 0 and all(message.at_rest))

    def acknowledged(self, since: float) -> bool:
        """Return whether each device has acknowledged that it was made safe, as the driver has said since."""
        message = self._view.driver
        if message is None or self._view.driver_heard_at < since or message.state == DriverState.RUNNING:
            return False
        return len(message.acknowledged) > 0 and all(message.acknowledged)

    def _holder(self) -> str:
        message = self._view.driver
        return "" if message is None else str(message.holder)

    def _call(self, client: Client, request: Any, failed: str, succeeded: Callable[[], None] = lambda: None) -> None:
        """Call a service without waiting; what it says of a failure is told."""
        if not client.service_is_ready():
            self._tell(f"{failed}: its node is not there.")
            return

        def note(future: Any) -> None:
            if future.exception() is not None:
                self._tell(f"{failed}: {future.exception()}.")
            elif not future.result().success:
                self._tell(f"{failed}: {future.result().message}")
            else:
                succeeded()

        client.call_async(request).add_done_callback(note)
