"""Node `pneumatics`: parameters, topics, services and life cycle of the pneumatic driver."""

import collections
import time

from rclpy.time import Duration
from std_srvs.srv import Trigger

from softform_core.errors import SoftformError
from softform_core.robots import PneumaticRobot, load_any_robot
from softform_interfaces.msg import ChamberPressures, DriverState
from softform_pneumatics.board import OpenPneuBoard
from softform_pneumatics.driver import ChamberState, DriverSettings, PneumaticsDriver, State
from softform_pneumatics.parameters import PARAMETERS
from softform_pneumatics.regulation import CommandRejectedError
from softform_ros import qos
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node

_QUEUED_STATES = 64


class PneumaticsNode(SoftformLifecycleNode):
    """Hands commands from ROS to the driver, and what the driver measures to ROS."""

    def __init__(self) -> None:
        """Make topics and services; the board is opened by `configure`."""
        super().__init__("pneumatics", PARAMETERS, hardware_id="openpneu")
        self._driver: PneumaticsDriver | None = None
        self._robot: PneumaticRobot | None = None
        # The driver's thread must never wait for the middleware: it queues, and the executor publishes.
        self._states: collections.deque[tuple[State, str]] = collections.deque()
        self._pressures: collections.deque[ChamberState] = collections.deque(maxlen=_QUEUED_STATES)
        self._news = self.create_guard_condition(self._publish_news)
        self._pressure_publisher = self.create_publisher(ChamberPressures, "pressure_state", qos.PRESSURE_STATE)
        self._state_publisher = self.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        self.create_subscription(ChamberPressures, "pressure_command", self._on_command, qos.PRESSURE_COMMAND)
        self.create_service(Trigger, "stop", self._on_stop)
        self.create_service(Trigger, "reset", self._on_reset)
        self._publish_state(State.OFFLINE, "not configured")

    def configure(self) -> None:
        """Open the board and refuse a robot that it cannot drive; takes about five seconds."""
        values = self.parameters
        self._robot = load_any_robot(values["robot"])
        self.diagnostics.hardware_id = f"openpneu {values['port']}"
        settings = DriverSettings(
            loop_rate=values["loop_rate"],
            command_timeout=values["command_timeout"],
            stream_timeout=values["stream_timeout"],
            settle_tolerance=values["settle_tolerance"],
            settle_time=values["settle_time"],
            overpressure_margin=values["overpressure_margin"],
            follow_tolerance=values["follow_tolerance"],
            follow_timeout=values["follow_timeout"],
        )
        board = OpenPneuBoard(values["port"], values["vent_threshold"])
        self._driver = PneumaticsDriver(board, self._robot, settings, self._queue_state, self._queue_pressures)
        self.get_logger().info(f"opening {values['port']} and testing that the board regulates every chamber")
        self._driver.connect()
        self.get_logger().info(f"{board.identity} drives '{self._robot.name}'; vented")

    def activate(self) -> None:
        """Let commands through; the driver's thread starts the board."""
        assert self._driver is not None
        self._driver.activate()

    def deactivate(self) -> None:
        """Vent and let no command through."""
        if self._driver is not None:
            self._driver.deactivate()
        self._publish_news()

    def cleanup(self) -> None:
        """Vent and close the port."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None
        self._publish_news()

    def health(self) -> Health:
        """Say how the driver is, with the statistics of its loop."""
        assert self._driver is not None
        values = self._driver.health()
        if self._driver.state is State.FAULT or values["still inflated"]:
            return Health(ERROR, str(values["still inflated"] or self._driver.reason), values)
        return Health(WARN if values["last rejection"] else OK, self._driver.reason, values)

    def _queue_state(self, state: State, reason: str) -> None:
        self._states.append((state, reason))
        self._news.trigger()

    def _queue_pressures(self, chamber_state: ChamberState) -> None:
        self._pressures.append(chamber_state)
        self._news.trigger()

    def _publish_news(self) -> None:
        while self._states:
            self._publish_state(*self._states.popleft())
        while self._pressures:
            self._publish_pressures(self._pressures.popleft())

    def _publish_state(self, state: State, reason: str) -> None:
        message = DriverState(state=int(state), reason=reason)
        message.header.stamp = self.get_clock().now().to_msg()
        self._state_publisher.publish(message)
        if state is State.FAULT:
            self.get_logger().error(f"vented: {reason}")
        else:
            self.get_logger().info(f"{state.name.lower()}: {reason}")

    def _publish_pressures(self, chamber_state: ChamberState) -> None:
        assert self._robot is not None
        age = Duration(seconds=time.monotonic() - chamber_state.captured)
        message = ChamberPressures(
            name=self._robot.chambers,
            pressure=chamber_state.pressures.tolist(),
            status=chamber_state.status.tolist(),
        )
        message.header.stamp = (self.get_clock().now() - age).to_msg()
        self._pressure_publisher.publish(message)

    def _on_command(self, message: ChamberPressures) -> None:
        if self._driver is None:
            self.get_logger().warning("command ignored: the driver is not configured", throttle_duration_sec=5.0)
            return
        try:
            self._driver.command(message.name, message.pressure)
        except CommandRejectedError as error:
            self.get_logger().warning(f"command rejected: {error}", throttle_duration_sec=1.0)

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._driver is None:
            response.success, response.message = True, "The driver is not configured; it has inflated nothing."
            return response
        try:
            response.success, response.message = True, self._driver.stop()
        except SoftformError as error:
            response.success, response.message = False, str(error)
        return response

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._driver is None:
            response.success, response.message = False, "The driver is not configured. Configure it first."
            return response
        try:
            response.success, response.message = True, self._driver.reset()
        except SoftformError as error:
            response.success, response.message = False, str(error)
        return response


def main() -> None:
    """Run the node until SIGINT or SIGTERM; the robot is vented on the way out."""
    run_node(PneumaticsNode)


if __name__ == "__main__":
    main()
