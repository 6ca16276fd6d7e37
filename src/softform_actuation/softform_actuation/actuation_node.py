"""Node `actuation`: parameters, topics, services and life cycle of the driver."""

import collections
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from builtin_interfaces.msg import Time as TimeMessage
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future
from rclpy.time import Duration
from std_srvs.srv import Trigger

from softform_actuation.assembly import latch_of, make_driver, parameters_of, ports_of
from softform_actuation.commands import CommandRejectedError
from softform_actuation.driver import Driver
from softform_actuation.lease import Asked, Grant, LeaseCode, LeaseError
from softform_actuation.parameters import PARAMETERS
from softform_actuation.sleep import SleepWatch
from softform_actuation.states import DriverReport, Readings, State
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.history import History, HistoryKeeper
from softform_core.network_reach import require_local
from softform_core.priority import lock_memory
from softform_core.robots import Robot, load_robot
from softform_core.service_notify import notify
from softform_core.text import printable
from softform_interfaces.msg import ActuationHistory, ActuatorCommand, ActuatorState, DriverState
from softform_interfaces.srv import Lease, Reset
from softform_ros import qos
from softform_ros.alone import require_alone
from softform_ros.asked import age_of
from softform_ros.conversions import seconds_from_stamp
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.guarded_node import GuardedNode, spin
from softform_ros.histories import history_message
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import declare_parameters, read_parameters
from softform_ros.timers import create_steady_timer

Answer = TypeVar("Answer", Trigger.Response, Reset.Response)

STATE_SECONDS = 0.2
_QUEUED_STATES = 64
_SWITCH_SECONDS = 0.0005  # how long the executor may keep the interpreter while the driver's thread is due
_NANOSECONDS = 1e-9
_MOST_DENIED = 32
_HISTORY_SECONDS = 0.1
"""Between two publications of the history at least."""


class ActuationNode(SoftformLifecycleNode):
    """Hands commands from ROS to the driver, and what the driver measures to ROS.

    `stop` and `driver_state` have a second node in this process, and an executor of their own: they work while a
    transition opens or tests devices.
    """

    def __init__(self) -> None:
        """Make topics and services; the devices are opened by `configure`."""
        super().__init__("actuation", PARAMETERS, hardware_id="actuation")
        self._driver: Driver | None = None
        self._keeper: HistoryKeeper | None = None
        self._history, self._history_sent = History(), -_HISTORY_SECONDS
        self._robot: Robot | None = None
        self._interruption = threading.Event()
        self._ends = threading.Event()
        # The driver's thread must never wait for the middleware: it queues, and others publish. Readings, of which
        # there are fifty a second, have a thread: to wake the executor for each takes longer than to publish it.
        self._reports: collections.deque[DriverReport] = collections.deque()
        self._report = DriverReport(State.OFFLINE, "not configured")
        self._publishing, self._declaring = threading.Lock(), threading.Lock()
        self._readings: collections.deque[Readings] = collections.deque(maxlen=_QUEUED_STATES)
        self._news = threading.Event()
        self._workers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="actuation-request")
        self._is_working = False
        self._denied: dict[str, str] = {}  # why, of each who was denied the lease since it was given last
        self._readings_publisher = self.create_publisher(ActuatorState, "actuator_state", qos.ACTUATOR_STATE)
        self._history_publisher = self.create_publisher(ActuationHistory, "actuation_history", qos.LATCHED_STATE)
        self._state_publisher = self.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        self.create_subscription(ActuatorCommand, "actuator_command", self._on_command, qos.ACTUATOR_COMMAND)
        # A callback that awaits keeps its group from all else: these take seconds.
        slow = ReentrantCallbackGroup()
        self.create_service(Reset, "reset", self._on_reset, callback_group=slow)
        self.create_service(Trigger, "calibrate", self._on_calibrate, callback_group=slow)
        self.create_service(Lease, "lease", self._on_lease)
        self._always = GuardedNode(
            "actuation_stop", namespace=self.get_namespace(), context=self.context, use_global_arguments=False
        )
        self._state_news = self._always.create_guard_condition(self._publish_reports)
        self._always.create_service(Trigger, "stop", self._on_stop, callback_group=ReentrantCallbackGroup())
        create_steady_timer(self._always, STATE_SECONDS, self._repeat_state)
        self._publish_report(self._report)
        notify("READY=1")
        self._executor_always = SingleThreadedExecutor(context=self.context)
        self._executor_always.add_node(self._always)
        self._thread_always = threading.Thread(target=self._spin_always, name="actuation-stop", daemon=True)
        self._thread_always.start()
        self._thread_readings = threading.Thread(target=self._publish_readings, name="actuation-readings", daemon=True)
        self._thread_readings.start()

    def destroy_node(self) -> None:
        """End the threads and the second node, too."""
        self._ends.set()
        self._news.set()
        self._thread_readings.join()
        self._executor_always.wake()
        self._thread_always.join()
        self._executor_always.shutdown()
        self._always.destroy_node()
        super().destroy_node()

    def _spin_always(self) -> None:
        try:  # `stop` has to be answered whatever else went wrong
            spin(self._executor_always, self._always, lambda: not self._ends.is_set(), STATE_SECONDS)
        except Exception:
            self.get_logger().error(f"nobody answers 'stop' any more: {traceback.format_exc()}")
            self.exit_code, self.is_finished = 1, True
            self.interrupt()

    def interrupt(self) -> None:
        """Make safe at once, also in the middle of a transition; called by the handler of a signal."""
        self._interruption.set()
        if self._driver is not None:
            self._driver.interrupt()

    def configure(self) -> None:
        """Open the devices and reject a robot that they cannot drive; nothing moves."""
        self._interruption.clear()
        robot = self._robot = load_robot(self.parameters["robot"])
        if self._keeper is None or self._keeper.robot.fingerprint() != robot.fingerprint():
            self._keeper = HistoryKeeper(robot)  # devices that are opened anew have the same body
        values = self._all_values(robot)
        require_local(os.environ, ports_of(values, robot), bool(self.parameters["network"]))
        self.opened.enter_context(require_alone(self, "driver_state"))
        self.diagnostics.hardware_id = f"devices of {robot.name}"
        self.get_logger().info(f"opening the devices of '{robot.name}'")
        interrupted = self._interruption.is_set
        self._driver = make_driver(values, robot, self._queue_report, self._queue_readings, interrupted)
        self._driver.connect(interrupted)
        self.opened.callback(SleepWatch(self._on_sleep).close)
        devices = self.diagnostics.hardware_id = str(self._driver.health()["devices"])
        self.get_logger().info(f"{devices} drives '{robot.name}'; safe")

    def _on_sleep(self) -> None:
        """Vent before the computer sleeps: then neither driver nor guardian runs."""
        driver = self._driver
        if driver is not None:
            driver.fault("The computer goes to sleep. Reset once it is awake.")
            driver.end_stop(is_made_safe=True)

    def on_callback_failure(self, error: Exception) -> None:
        """A failed callback makes safe only if the driver's thread has gone; else it is counted."""
        if self._driver is not None and not self._driver.is_alive:
            self.interrupt()

    def activate(self) -> None:
        """Test the actuators, then let commands through; takes about five seconds the first time."""
        assert self._driver is not None
        self._driver.activate()

    def deactivate(self) -> None:
        """Make safe and let no command through."""
        if self._driver is not None:
            self._driver.deactivate()

    def cleanup(self) -> None:
        """Make safe and close the ports."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None
        self._publish_reports()

    def health(self) -> Health:
        """Say how the driver is, with the statistics of its loop."""
        assert self._driver is not None
        values = self._driver.health()
        wrong = values["still unsafe"] or values["latch"]
        if self._driver.state is State.FAULT or wrong:
            return Health(ERROR, str(wrong or self._driver.report.reason), values)
        if values["warning"]:
            return Health(WARN, str(values["warning"]), values)
        return Health(WARN if values["last rejection"] else OK, self._driver.reason, values)

    def _all_values(self, robot: Robot) -> dict[str, object]:
        """Parameters of the node and of the robot's devices, which are declared once the robot is known."""
        rows = parameters_of(robot)
        with self._declaring:  # a stop may come while `configure` does the same
            declare_parameters(self, [row for row in rows if not self.has_parameter(row.name)])
        return {**read_parameters(self, PARAMETERS), **read_parameters(self, rows)}

    def _queue_report(self, report: DriverReport) -> None:
        self._reports.append(report)
        self._state_news.trigger()

    def _queue_readings(self, readings: Readings) -> None:
        self._readings.append(readings)
        self._news.set()

    def _publish_reports(self) -> None:
        with self._publishing:
            while self._reports:
                report = self._reports.popleft()
                if (report.state, report.reason) != (self._report.state, self._report.reason):
                    line = f"{report.state.name.lower()}: {report.reason}"
                    if report.state is State.FAULT:
                        self.get_logger().error(line)
                    else:
                        self.get_logger().info(line)
                self._publish_report(report)

    def _repeat_state(self) -> None:
        if self._driver is None or self._driver.is_alive:
            notify("WATCHDOG=1")
        with self._publishing:
            if not self._reports:
                self._publish_report(self._report)

    def _publish_report(self, report: DriverReport) -> None:
        self._report, driver = report, self._driver
        message = DriverState(
            state=int(report.state),
            reason=report.reason,
            holder=report.holder,
            lease=report.lease,
            held_for=driver.held_for if driver is not None and report.holder else 0.0,
            epoch=report.epoch,
            fingerprint="" if driver is None else driver.fingerprint,
            faults=list(report.faults),
            warnings=list(report.warnings),
            actuator=[one.name for one in report.actuators],
            asked=[one.asked for one in report.actuators],
            acknowledged=[one.acknowledged for one in report.actuators],
            at_rest=[one.at_rest for one in report.actuators],
            rest_value=[one.value for one in report.actuators],
        )
        message.header.stamp = self.get_clock().now().to_msg()
        self._state_publisher.publish(message)

    def _publish_readings(self) -> None:
        try:
            while self._news.wait() and not self._ends.is_set():
                self._news.clear()
                while self._readings:
                    self._publish(self._readings.popleft())
        except Exception:
            self.get_logger().error(f"readings are not published any more: {traceback.format_exc()}")
            self.exit_code, self.is_finished = 1, True
            self.interrupt()

    def _publish(self, readings: Readings) -> None:
        assert self._robot is not None
        age = Duration(seconds=time.monotonic() - readings.captured)
        message = ActuatorState(
            name=self._robot.actuators,
            unit=self._robot.actuator_units,
            value=readings.values.tolist(),
            status=readings.status.tolist(),
        )
        message.header.stamp = (self.get_clock().now() - age).to_msg()
        self._readings_publisher.publish(message)
        self._publish_history(readings.values, message.header.stamp)

    def _publish_history(self, values: Array, stamp: TimeMessage) -> None:
        """Tell where the robot turned back, if it did since this was told last."""
        assert self._robot is not None and self._keeper is not None
        if not np.isfinite(values).all():
            return
        self._keeper.note(values, seconds_from_stamp(stamp))
        history, now = self._keeper.history, time.monotonic()
        if history != self._history and now - self._history_sent >= _HISTORY_SECONDS:
            self._history, self._history_sent = history, now
            self._history_publisher.publish(history_message(history, self._robot, stamp))

    def _on_command(self, message: ActuatorCommand) -> None:
        if self._driver is None:
            self.get_logger().warning("command rejected: the driver is not configured", throttle_duration_sec=5.0)
            return
        grant, age = Grant(message.lease, message.key), self._age_of(message.header.stamp)
        try:
            self._driver.command(
                printable(message.source), grant, message.fingerprint, message.name, message.unit, message.value, age
            )
        except CommandRejectedError as error:
            self.get_logger().warning(f"command rejected: {error}", throttle_duration_sec=1.0)

    def _age_of(self, stamp: TimeMessage) -> float:
        return age_of(stamp, self.get_clock().now().nanoseconds * _NANOSECONDS)

    def _on_lease(self, request: Lease.Request, response: Lease.Response) -> Lease.Response:
        values = self.parameters
        try:
            if self._driver is None:
                raise LeaseError(LeaseCode.INACTIVE, "The driver is not configured.", "Configure and activate it.")
            if request.request == Lease.Request.ACQUIRE:
                asked = Asked(self._age_of(request.asked.stamp), request.asked.epoch)
                response.lease, response.key = self._driver.acquire(
                    printable(request.source), request.client, asked, request.fingerprint
                )
                response.first_command_timeout = values["lease_timeout"]
                response.command_timeout = values["command_timeout"]
            elif request.request == Lease.Request.RELEASE:
                response.epoch = self._driver.release(printable(request.source), Grant(request.lease, request.key))
            else:
                raise LeaseError(LeaseCode.INVALID_REQUEST, "This is no request.", "Ask to ACQUIRE or to RELEASE.")
            response.success = True
        except LeaseError as error:
            response.error_code, response.message = int(error.code), str(error)
        except SoftformError as error:
            response.error_code, response.message = int(LeaseCode.INTERNAL_ERROR), str(error)
        if self._driver is not None:
            response.holder = self._driver.report.holder
        if response.success:
            self._denied.clear()
        elif self._denied.get(request.source) != response.message:  # a commander may ask again and again
            if len(self._denied) >= _MOST_DENIED:
                self._denied.clear()
            self._denied[request.source] = response.message
            self.get_logger().warning(f"lease denied to '{request.source}': {response.message}")
        return response

    async def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._interruption.set()  # what is being opened
        driver = self._driver
        if driver is None:
            return self._answer(self._latch_unconfigured, response)
        try:
            is_made_safe = driver.begin_stop()  # at once; to measure it takes longer
        except Exception as error:
            response.success, response.message = False, self._told(error)
            return response
        return await self._in_thread(lambda: driver.end_stop(is_made_safe), response)

    def _latch_unconfigured(self) -> str:
        robot = load_robot(str(read_parameters(self, PARAMETERS)["robot"]))
        return latch_of(self._all_values(robot), robot).stop_unconfigured()

    async def _on_reset(self, request: Reset.Request, response: Reset.Response) -> Reset.Response:
        asked = Asked(self._age_of(request.asked.stamp), request.asked.epoch)
        return await self._in_worker(lambda driver: driver.reset(asked), response)

    async def _on_calibrate(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return await self._in_worker(Driver.calibrate, response)

    async def _in_worker(self, work: Callable[[Driver], str], response: Answer) -> Answer:
        """Answer what takes seconds, one at a time, without keeping the executor: commands must get through."""
        driver = self._driver
        if driver is None:
            response.success, response.message = False, "The driver is not configured. Configure it first."
            return response
        if self._is_working:
            response.success, response.message = False, "A reset or calibration is under way. Wait until it has ended."
            return response
        self._is_working = True
        try:
            return await self._in_thread(lambda: work(driver), response)
        finally:
            self._is_working = False

    async def _in_thread(self, work: Callable[[], str], response: Answer) -> Answer:
        answered = Future()

        def answer() -> None:
            answered.set_result(self._answer(work, response))
            for executor in (self.executor, self._executor_always):
                if executor is not None:
                    executor.wake()  # a result set from another thread does not wake it by itself

        try:
            self._workers.submit(answer)
        except RuntimeError:  # no thread can be started: commands that come late are better than no answer to a stop
            answer()
        return await answered

    def _answer(self, work: Callable[[], str], response: Answer) -> Answer:
        try:
            response.success, response.message = True, work()
        except Exception as error:
            response.success, response.message = False, self._told(error)
        return response

    def _told(self, error: Exception) -> str:
        """What to answer of a request that failed."""
        if isinstance(error, SoftformError):
            return str(error)
        self.get_logger().error(f"a request failed: {traceback.format_exc()}")
        return f"The driver failed: {error!r}. Report this with the log."


def main() -> None:
    """Run the node until SIGINT or SIGTERM; the robot is made safe on the way out."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    lock_memory()
    run_node(ActuationNode, SingleThreadedExecutor)


if __name__ == "__main__":
    main()
