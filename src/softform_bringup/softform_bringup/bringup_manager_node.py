"""The node that brings the stack up in order and down in reverse."""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from types import FrameType

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import Executor
from rclpy.experimental import EventsExecutor
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

from softform_bringup.lifecycle_manager import BringUpError, LifecycleManager, Stopped
from softform_bringup.remote_lifecycle import RemoteLifecycleNode
from softform_core.errors import SoftformError
from softform_interfaces.msg import BringupState
from softform_ros.alone import require_alone
from softform_ros.diagnostics import ERROR, OK, WARN, DiagnosticsPublisher, Health, with_failures
from softform_ros.guarded_node import GuardedNode, spin
from softform_ros.parameters import (
    Parameter,
    declare_parameters,
    read_parameters,
    tell_unknown_parameters,
    with_read_files,
)
from softform_ros.qos import DIAGNOSTICS, LATCHED_STATE
from softform_ros.stack_state import state_in_words

PARAMETERS = (
    Parameter("nodes", [""], "Life-cycle nodes in the order of bringing up, relative to the namespace."),
    Parameter("elsewhere", [""],
        "Nodes that another launch starts; they are brought up here all the same, and not shut down."),
    Parameter("safe_first", ["actuation"],
        "Nodes that are deactivated before any other, so that they make safe at once."),
    Parameter("configured_ahead", ["shape_predictor", "inverse_kinematics", "motion_planner", "collector"],
        "Nodes that are configured while those before them come up: they read files, and open no device."),
    Parameter("start_timeout", 60.0, "Time for a node's process to answer, s.", 1.0, 3600.0),
    Parameter("transition_timeout", 180.0, "Time for one transition, s.", 1.0, 3600.0),
    Parameter("watch_period", 2.0, "Time between two looks at nodes that are up, s.", 0.1, 60.0),
    Parameter("answer_timeout", 3.0, "A node that is up is missing without an answer for this long, s.", 0.1, 60.0),
    Parameter("stop_patience", 3.0, "Time for bringing everything down, s; the launch waits 5 s.", 0.1, 60.0),
)  # fmt: skip
LINGER = 2.0  # s for which a failure stays readable on `bringup_state` and `/diagnostics`


class BringupManagerNode(GuardedNode):
    """Publishes `bringup_state` (latched) and serves `shutdown`; the work is in `run`, off the executor's thread.

    Args:
        stop: Set from outside, or by the service, to bring everything down.
    """

    def __init__(self, stop: threading.Event) -> None:
        super().__init__("bringup_manager")
        declare_parameters(self, PARAMETERS)
        self.parameters = read_parameters(self, PARAMETERS)
        tell_unknown_parameters(self)
        self._stop = stop
        self._goes_down = False
        self._state: BringupState | None = None
        self._errors = {self.resolve_topic_name(name): "" for name in self.parameters["nodes"] if name}
        self._state_publisher = self.create_publisher(BringupState, "bringup_state", LATCHED_STATE)
        self._diagnostics_reader = self.create_subscription(
            DiagnosticArray, "/diagnostics", self._keep_errors, DIAGNOSTICS
        )
        self._diagnostics = DiagnosticsPublisher(self, "softform", self._health)
        self._shutdown_service = self.create_service(Trigger, "shutdown", self._on_shutdown)
        self._manager = LifecycleManager(
            [
                RemoteLifecycleNode(self, name, lambda node: self._errors.get(node, ""), self._is_interrupted)
                for name in self.parameters["nodes"]
                if name
            ],
            self._note,
            self.parameters["start_timeout"],
            self.parameters["transition_timeout"],
            stop.is_set,
            self.parameters["configured_ahead"],
            os.environ.get("SOFTFORM_LAUNCH", ""),
            self.parameters["elsewhere"],
        )

    def run(self) -> int:
        """Bring up, watch until a stop is asked for, bring down; return the exit code."""
        exit_code = 0
        self._tell(BringupState.STARTING)
        try:
            self._manager.bring_up()
            self._tell(BringupState.ACTIVE)
            self._watch()
        except Stopped:
            self.get_logger().info("stopped while bringing up")
        except BringUpError as error:
            self.get_logger().error(str(error))
            self._tell(BringupState.FAILED, str(error))
            exit_code = 1
        self._goes_down = True
        if exit_code == 0:
            self._tell(BringupState.STOPPING)
        self._manager.bring_down(self.parameters["stop_patience"], self.parameters["safe_first"])
        if exit_code == 0:
            self._tell(BringupState.DOWN)
        else:
            self._stop.wait(LINGER)
        return exit_code

    def _watch(self) -> None:
        while not self._stop.wait(self.parameters["watch_period"]):
            missing = self._manager.missing(self.parameters["answer_timeout"])
            if self._stop.is_set():
                return
            if missing:
                self._tell(BringupState.DEGRADED, "; ".join(f"{name} {what}" for name, what in missing.items()))
            else:
                self._tell(BringupState.ACTIVE)

    def _note(self, line: str) -> None:
        """Log what the bringing up or down has come to; whoever waits for a start hears it, too."""
        if self._state is not None and self._state.state == BringupState.STARTING:
            self._tell(BringupState.STARTING, line)
        else:
            self.get_logger().info(line)

    def _is_interrupted(self) -> bool:
        """Return whether waiting for answers shall end: at a stop, but not while nodes are brought down."""
        return self._stop.is_set() and not self._goes_down

    def _tell(self, state: int, reason: str = "") -> None:
        published = self._state
        if published is not None and (state, reason) == (published.state, published.reason):
            return
        self._state = message = BringupState(state=state, reason=reason)
        message.header.stamp = self.get_clock().now().to_msg()
        line = f"the stack is {state_in_words(message)}"
        if state == BringupState.DEGRADED:
            self.get_logger().warning(line)
        else:
            self.get_logger().info(line)
        self._state_publisher.publish(message)
        self._diagnostics.publish()

    def _health(self) -> Health:
        state = self._state or BringupState()
        level = {BringupState.DEGRADED: WARN, BringupState.FAILED: ERROR}.get(state.state, OK)
        health = Health(level, state.reason or state_in_words(state), {"nodes": ", ".join(self.parameters["nodes"])})
        return with_failures(health, self.failed_callbacks)

    def _keep_errors(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name in self._errors:
                self._errors[status.name] = status.message if status.level == ERROR else ""

    def _on_shutdown(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._stop.set()
        response.success = True
        response.message = "bringing the stack down"
        return response


def _spin(executor: Executor, node: GuardedNode, finished: threading.Event, stop: threading.Event) -> None:
    try:
        spin(executor, node, lambda: not finished.is_set())
    except Exception:  # a manager that hears nothing is none
        node.get_logger().fatal(f"the manager ends: {traceback.format_exc()}")
        stop.set()


def main() -> None:
    """Run until SIGINT, SIGTERM or `shutdown`; exit non-zero if a node did not come up."""
    stop = threading.Event()

    def request_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, request_stop)
    signal.signal(signal.SIGTERM, request_stop)
    node: BringupManagerNode | None = None
    finished = threading.Event()
    exit_code = 1
    try:
        rclpy.init(args=with_read_files(sys.argv), signal_handler_options=SignalHandlerOptions.NO)
        node = BringupManagerNode(stop)
        # Before anything is said or served, which would be taken for the other one's.
        held = require_alone(node, "bringup_state")
        executor = EventsExecutor()
        executor.add_node(node)
        spinning = threading.Thread(target=_spin, args=(executor, node, finished, stop), name="spin", daemon=True)
        spinning.start()
        exit_code = node.run() or int(not spinning.is_alive())
        time.sleep(0.1)  # the last state is still on its way
        finished.set()
        spinning.join()
        held.close()
    except SoftformError as error:
        exit_code = 1
        sys.stderr.write(f"softform: {error}\n")
    finally:
        finished.set()
        if node is not None:
            with contextlib.suppress(Exception):
                node.destroy_node()
        if rclpy.ok():
            rclpy.shutdown()
    sys.exit(exit_code)
