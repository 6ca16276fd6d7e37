"""Node `pneumatics`: parameters, topics, services and life cycle of the pneumatic driver."""

import collections
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.time import Duration
from std_srvs.srv import Trigger

from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_interfaces.msg import ChamberPressures, DriverState
from softform_pneumatics.assembly import latch_of, make_driver
from softform_pneumatics.driver import PneumaticsDriver
from softform_pneumatics.parameters import PARAMETERS
from softform_pneumatics.regulation import CommandRejectedError
from softform_pneumatics.states import ChamberState, State
from softform_ros import qos
from softform_ros.action_goals import in_worker
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import read_parameters

_QUEUED_STATES = 64
_SWITCH_SECONDS = 0.0005  # how long the executor may keep the interpreter while the driver's thread is due


class PneumaticsNode(SoftformLifecycleNode):
    """Hands commands from ROS to the driver, and what the driver measures to ROS."""

    def __init__(self) -> None:
        """Make topics and services; the board is opened by `configure`."""
        super().__init__("pneumatics", PARAMETERS, hardware_id="pneumatics")
        self._driver: PneumaticsDriver | None = None
        self._robot: Robot | None = None
        # The driver's thread must never wait for the middleware: it queues, and the executor publishes.
        self._states: collections.deque[tuple[State, str]] = collections.deque()
        self._pressures: collections.deque[ChamberState] = collections.deque(maxlen=_QUEUED_STATES)
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pneumatics-request")
        self._is_working = False
        self._news = self.create_guard_condition(self._publish_news)
        self._pressure_publisher = self.create_publisher(ChamberPressures, "pressure_state", qos.PRESSURE_STATE)
        self._state_publisher = self.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        self.create_subscription(ChamberPressures, "pressure_command", self._on_command, qos.PRESSURE_COMMAND)
        # A callback that awaits keeps its group from all else: these take seconds, and a `stop` must get through.
        slow = ReentrantCallbackGroup()
        self.create_service(Trigger, "reset", self._on_reset, callback_group=slow)
        self.create_service(Trigger, "calibrate", self._on_calibrate, callback_group=slow)
        # The last one: of requests that wait together rclpy serves the service first that was made first.
        self.create_service(Trigger, "stop", self._on_stop)
        self._publish_state(State.OFFLINE, "not configured")

    def configure(self) -> None:
        """Open the board and reject a robot that it cannot drive; takes about five seconds."""
        values = self.parameters
        self._robot = load_robot(values["robot"])
        self.diagnostics.hardware_id = f"{values['board']} {values['port']}"
        self.get_logger().info(f"opening {values['port']}, and testing that the board regulates every chamber")
        self._driver = make_driver(values, self._robot, self._queue_state, self._queue_pressures)
        self._driver.connect()
        self.get_logger().info(f"{self._driver.health()['board']} drives '{self._robot.name}'; vented")

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
        wrong = values["still inflated"] or values["latch"]
        if self._driver.state is State.FAULT or wrong:
            return Health(ERROR, str(wrong or self._driver.reason), values)
        if values["leaks"]:
            return Health(WARN, f"leaks, though the pressure is held: {values['leaks']}", values)
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
            name=self._robot.actuators,
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
            return self._answer(self._latch_unconfigured, response)
        return self._answer(self._driver.stop, response)

    def _latch_unconfigured(self) -> str:
        return latch_of(read_parameters(self, PARAMETERS)).stop_unconfigured()

    async def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        stops = 0 if self._driver is None else self._driver.stops
        return await self._in_worker(lambda driver: driver.reset(stops), response)

    async def _on_calibrate(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return await self._in_worker(PneumaticsDriver.calibrate, response)

    async def _in_worker(self, work: Callable[[PneumaticsDriver], str], response: Trigger.Response) -> Trigger.Response:
        """Answer what takes seconds without keeping the executor: a `stop` must get through meanwhile."""
        driver = self._driver
        if driver is None:
            response.success, response.message = False, "The driver is not configured. Configure it first."
            return response
        if self._is_working:
            response.success, response.message = False, "A reset or calibration is under way. Wait until it has ended."
            return response
        self._is_working = True
        try:
            return await in_worker(self, self._workers, lambda: self._answer(lambda: work(driver), response))
        finally:
            self._is_working = False

    def _answer(self, work: Callable[[], str], response: Trigger.Response) -> Trigger.Response:
        try:
            response.success, response.message = True, work()
        except SoftformError as error:
            response.success, response.message = False, str(error)
        except Exception as error:
            self.get_logger().error(f"a request failed: {traceback.format_exc()}")
            response.success, response.message = False, f"The driver failed: {error!r}. Report this with the log."
        return response


def main() -> None:
    """Run the node until SIGINT or SIGTERM; the robot is vented on the way out."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    run_node(PneumaticsNode)


if __name__ == "__main__":
    main()
