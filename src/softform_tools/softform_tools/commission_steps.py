"""Moves the robot of a running driver step by step, as `softform commission` does it, and hears what comes of it."""

import time
from collections.abc import Callable
from typing import TypeVar

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from softform_client.capture_watch import CaptureWatch, Moment
from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.msg import ActuatorState, DriverState
from softform_ros import qos
from softform_ros.asked import ASKED_SECONDS
from softform_ros.command_lease import CommandLease
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.frames import Frames
from softform_ros.timers import create_steady_timer

Result = TypeVar("Result")

BEAT_SECONDS = 0.2
_HOLD_SECONDS, _SETTLE_SECONDS, _LOOK_SECONDS, _REST_SECONDS, _STATE_TIMEOUT = 2.0, 15.0, 15.0, 20.0, 1.0
_LEAKS = "leaks"
"""Key of the driver's diagnostics, alone or before the name of a device: `c3: 5.0 s, c4: 7.1 s`."""


class Stepper:
    """Moves the robot of a running driver, one step at a time, each under a lease of its own.

    The thread that waits is the one that commands: whatever keeps it, no command goes out, and the driver vents.

    Attributes:
        standstills: Number of times that this process stood still for longer than a request may be old.
        state: Last state of the driver.
        leaks: What the driver has said of actuators that leak, by their names.
    """

    def __init__(self, node: Node, robot: Robot) -> None:
        self._robot, self._frames = robot, Frames(node)
        self.lease, self.state = CommandLease(node, robot), DriverState(state=DriverState.OFFLINE)
        self._driver = DriverWatch(robot, _STATE_TIMEOUT, source=self.lease.source)
        self._clouds: CaptureWatch[PointCloud2] = CaptureWatch(
            read=lambda one: self._frames.into(robot.base_frame, one)
        )
        self._values: Array | None = None
        self.leaks: dict[str, str] = {}
        self._driver_name = f"{node.get_namespace().rstrip('/')}/actuation"
        self.standstills, self._beaten = 0, time.clock_gettime(time.CLOCK_BOOTTIME)
        node.create_subscription(ActuatorState, "actuator_state", self._on_values, qos.ACTUATOR_STATE_READER)
        node.create_subscription(DriverState, "driver_state", self._on_state, qos.LATCHED_STATE)
        node.create_subscription(PointCloud2, "captured_cloud", self._on_cloud, qos.CAPTURED_CLOUD)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.DIAGNOSTICS)
        create_steady_timer(node, BEAT_SECONDS, self._beat)

    def step(self, values: Array, base: Array, epoch: int, look: Callable[[MeasuredValues], Result]) -> Result:
        """Hold values (k,) while somebody looks, then give the lease up, whatever happens: the driver makes safe.

        Args:
            values: Commands of the step.
            base: (k,) where every actuator is safe; motors that are held when they rest go back there first.
            epoch: The driver's, when somebody asked for this step.
            look: Returns what was seen; called when the robot has settled, and commands by `hold` or `cloud`.

        Raises:
            SoftformError: If the lease is denied or lost, the driver is at fault, or the robot does not settle.
        """
        is_holding = self.state.state == DriverState.HOLDING
        self.lease.acquire(epoch)
        try:
            self._values = values
            result = look(self._settled())
            if is_holding:
                self._values = base
                self._settled()
            self.lease.release(goes_on=True)  # the next step is still meant, unless others stop or reset meanwhile
            return result
        finally:
            self._values = None
            self.lease.release()

    def hold(self, settled: MeasuredValues) -> None:
        """Hold the step for a person to look."""
        while time.monotonic() < settled.received + _HOLD_SECONDS:
            self._go_on()
            time.sleep(BEAT_SECONDS / 2.0)

    def rest_cloud(self) -> Array:
        """Capture a cloud of the robot at rest, like `cloud`."""
        still = self._driver.wait_until_still(self._robot.actuator_tolerances.arrive, _REST_SECONDS, lambda: False)
        assert still is not None
        return self.cloud(still)

    def cloud(self, moment: Moment) -> Array:
        """Return the first cloud (N, 3) m captured after a moment; what is held is held on meanwhile.

        Raises:
            SoftformError: If none comes in time, or the lease is lost.
        """
        capture = self._clouds.wait_for_one_after(moment, _LOOK_SECONDS, self._is_lost)
        self._go_on()
        if capture is None:
            raise SoftformError(f"No captured_cloud came within {_LOOK_SECONDS:g} s.", "Look at the scanner.")
        return points_from_cloud(capture.cloud)

    def wait_at_rest(self) -> None:
        """Wait until the driver has measured every actuator at rest, or holds it there as its motors do.

        Raises:
            SoftformError: If it is at fault, is gone, follows another program, or does not say so in time.
        """
        deadline = time.monotonic() + _REST_SECONDS
        while not self.is_at_rest:
            if time.monotonic() > deadline or self.state.state == DriverState.FAULT:
                self._driver.check_ready()
                raise SoftformError(f"The robot is not measured at rest: {self.state.reason}", "See ./softform status.")
            time.sleep(BEAT_SECONDS / 4.0)

    @property
    def is_at_rest(self) -> bool:
        """Return whether the driver reports rest, and nobody commands."""
        state = self.state
        rests = state.state == DriverState.SAFE and bool(state.at_rest) and all(state.at_rest)
        return not state.holder and (rests or state.state == DriverState.HOLDING)

    def _settled(self) -> MeasuredValues:
        assert self._values is not None
        settled = self._driver.wait_until_settled(
            self._values, self._robot.actuator_tolerances.arrive, _SETTLE_SECONDS, time.time(), self._is_lost
        )
        self._go_on()
        assert settled is not None
        return settled

    def _is_lost(self) -> bool:
        """Command what is held once more; whether there was a lease and is none. Waits ask it ten times a second."""
        return self._values is not None and not self.lease.send(self._values)

    def _go_on(self) -> None:
        if self._is_lost():
            raise SoftformError(
                f"The lease was lost, and the driver makes the robot safe: {self.state.reason}",
                "Look at the robot, then commission it again.",
            )

    def _beat(self) -> None:
        before, self._beaten = self._beaten, time.clock_gettime(time.CLOCK_BOOTTIME)
        self.standstills += self._beaten - before > ASKED_SECONDS

    def _on_values(self, message: ActuatorState) -> None:
        self._driver.note_values(message.name, message.value, message.status, seconds_from_stamp(message.header.stamp))

    def _on_state(self, message: DriverState) -> None:
        self.lease.note(message)
        self._driver.note_state(message.state, message.reason, message.holder)
        self.state = message

    def _on_cloud(self, message: PointCloud2) -> None:
        self._clouds.note(message, seconds_from_stamp(message.header.stamp))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        told = [
            one.value
            for status in message.status
            if status.name == self._driver_name
            for one in status.values
            if one.key == _LEAKS or one.key.startswith(f"{_LEAKS} of ")
        ]
        for part in ", ".join(filter(None, told)).split(", "):
            name, colon, seconds = part.partition(": ")
            if colon:
                self.leaks[name] = seconds
