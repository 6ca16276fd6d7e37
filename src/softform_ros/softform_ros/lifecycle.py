"""The life cycle every node of the stack shares: logged failures, diagnostics, an orderly end on any signal."""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any

import rclpy
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy._rclpy_pybind11 import RCLError
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor
from rclpy.experimental import EventsExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from softform_core.errors import SoftformError
from softform_ros.diagnostics import ERROR, OK, DiagnosticsPublisher, Health, with_failures
from softform_ros.guarded_node import GuardedNode, spin
from softform_ros.parameters import (
    Parameter,
    declare_parameters,
    read_parameters,
    tell_unknown_parameters,
    with_read_files,
)

if TYPE_CHECKING:
    from softform_ros.frames import Frames


NOT_BEGUN = os.EX_CONFIG
"""Exit code of a node that could not begin, as its parameters or its environment are wrong: the launch ends then."""

_LIFE_CYCLE_LISTS = ("get_available_states", "get_available_transitions", "get_transition_graph")

_SIM_TIME = (
    "This node commands, drives or measures a robot, and 'use_sim_time' is true.",
    "Set it to false: commands and captures are stamped by the computer's clock.",
)


class SoftformLifecycleNode(GuardedNode, LifecycleNode):
    """A life-cycle node whose steps, and callbacks, are plain methods that may raise.

    A subclass overrides `configure`, `activate`, `deactivate`, `cleanup` and `health`. rclpy swallows an exception in a
    transition silently; here it is logged, kept for `/diagnostics`, and turned into FAILURE. Whatever happens,
    `deactivate` then `cleanup` run before the process ends, also on SIGINT and SIGTERM: a node that owns hardware makes
    it safe there.

    Attributes:
        opened: Takes what closes the things that `configure` opens, where no other order matters: after `cleanup`.
        may_use_sim_time: Whether it may run by simulated time. What commands, drives or measures a robot may not: its
            commands and captures are stamped by the computer's clock.
    """

    may_use_sim_time = False

    def __init__(self, name: str, parameter_table: Iterable[Parameter], hardware_id: str = "softform") -> None:
        """Declare the parameters and start diagnostics; nothing is opened before `configure`."""
        super().__init__(name)
        self._change_as_asked = self._service_change_state.callback
        self._service_change_state.callback = self._change_state
        for service in ("change_state", "get_state", *_LIFE_CYCLE_LISTS):
            self.guard_service(getattr(self, f"_service_{service}"))
        self._parameter_table = tuple(parameter_table)
        declare_parameters(self, self._parameter_table)
        told = ParameterDescriptor(read_only=True, description="Which launch started the node.")
        self.declare_parameter("launch", os.environ.get("SOFTFORM_LAUNCH", ""), told)
        self.add_on_set_parameters_callback(self._reject_sim_time)
        self.parameters: Mapping[str, Any] = {}
        self.is_active = False
        self._is_configured = False
        self._last_failure = ""
        self.opened = contextlib.ExitStack()
        self.diagnostics = DiagnosticsPublisher(self, hardware_id, self._health)

    @cached_property
    def frames(self) -> "Frames":
        """Transforms known to TF, created on first use."""
        from softform_ros.frames import Frames  # the driver has no use for what it loads

        return Frames(self)

    def subscribe(self, kind: Any, topic: str, callback: Callable[[Any], None], profile: Any, **options: Any) -> None:
        """Subscribe, as `create_subscription` does, until the node is cleaned up."""
        subscription = self.create_subscription(kind, topic, callback, profile, **options)
        self.opened.callback(self.destroy_subscription, subscription)

    def configure(self) -> None:
        """Open and load what the node needs; `self.parameters` holds the checked parameters."""

    def activate(self) -> None:
        """Start acting."""

    def deactivate(self) -> None:
        """Stop acting and make what is connected safe."""

    def cleanup(self) -> None:
        """Close what `configure` opened; must cope with a `configure` that failed midway."""

    def _clean_up(self) -> None:
        with self.opened:
            self.cleanup()

    def interrupt(self) -> None:
        """End what takes long, for the process shall end; called by the handler of a signal, so it must not wait."""

    def health(self) -> Health:
        """Return the node's health while it is configured."""
        return Health(OK, "active" if self.is_active else "inactive")

    def _change_state(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        """Answer a transition that is not possible now, where rclpy raises."""
        asked, transitions = request.transition, self._state_machine.available_transitions
        if (asked.label or asked.id) not in {label if asked.label else number for number, label, *_ in transitions}:
            now = self._state_machine.current_state[1]
            self.get_logger().warning(f"change_state rejected: no transition {asked.label or asked.id} from {now}")
            return response
        return self._change_as_asked(request, response)

    def _health(self) -> Health:
        return with_failures(self._health_of_its_own(), self.failed_callbacks)

    def _health_of_its_own(self) -> Health:
        if self._last_failure:
            return Health(ERROR, self._last_failure)
        if not self._is_configured:
            return Health(OK, "not configured")
        try:
            return self.health()
        except Exception as error:  # health must never end the node
            return Health(ERROR, f"health could not be read: {error}")

    def _reject_sim_time(self, parameters: list[rclpy.Parameter]) -> SetParametersResult:
        wants = any(one.name == "use_sim_time" and one.value for one in parameters) and not self.may_use_sim_time
        return SetParametersResult(successful=not wants, reason=" ".join(_SIM_TIME) if wants else "")

    def _step(self, name: str, step: Callable[[], None]) -> TransitionCallbackReturn:
        try:
            step()
        except Exception as error:
            self._last_failure = f"{name} failed: {error}"
            self.get_logger().error(self._last_failure)
            self.diagnostics.publish()
            return TransitionCallbackReturn.FAILURE
        self._last_failure = ""
        return TransitionCallbackReturn.SUCCESS

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters and configure; what was opened is closed again if that fails."""

        def step() -> None:
            self.parameters = read_parameters(self, self._parameter_table)
            if self.get_parameter("use_sim_time").value and not self.may_use_sim_time:
                raise SoftformError(*_SIM_TIME)
            try:
                self.configure()
            except BaseException:
                with contextlib.suppress(Exception):
                    self._clean_up()
                raise
            tell_unknown_parameters(self)

        result = self._step("configure", step)
        self._is_configured = result == TransitionCallbackReturn.SUCCESS
        return result

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Activate; a failure makes safe again at once."""

        def step() -> None:
            try:
                self.activate()
            except BaseException:
                with contextlib.suppress(Exception):
                    self.deactivate()
                raise
            self.is_active = True

        return self._step("activate", step)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate; the node counts as inactive even if that fails."""
        self.is_active = False
        return self._step("deactivate", self.deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close what configure opened."""
        self._is_configured = False
        return self._step("cleanup", self._clean_up)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make safe and close."""
        self.make_safe()
        return TransitionCallbackReturn.SUCCESS

    def make_safe(self) -> None:
        """Deactivate and clean up, each tried even if the other fails; safe to call at any moment and twice."""
        if self.is_active:
            self.is_active = False
            self._step("deactivate", self.deactivate)
        if self._is_configured:
            self._is_configured = False
            self._step("cleanup", self._clean_up)


def run_node(make_node: Callable[[], GuardedNode], make_executor: Callable[[], Executor] = EventsExecutor) -> None:
    """Run a node until SIGINT or SIGTERM, then make it safe and leave; the `main` of every executable.

    rclpy's own signal handlers shut its context down first, before a node can report anything; so they stay off.

    Args:
        make_node: Class of the node.
        make_executor: Class of its executor. The events executor takes a seventh of the time of the
            `SingleThreadedExecutor` for a message; rclpy 7.1's has no guard conditions, no services that await,
            and no raw subscriptions.
    """
    stop = threading.Event()
    node: GuardedNode | None = None

    def request_stop(number: int, frame: FrameType | None) -> None:
        stop.set()
        if isinstance(node, SoftformLifecycleNode):
            node.interrupt()

    signal.signal(signal.SIGINT, request_stop)
    signal.signal(signal.SIGTERM, request_stop)
    exit_code = NOT_BEGUN
    try:
        rclpy.init(args=with_read_files(sys.argv), signal_handler_options=SignalHandlerOptions.NO)
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        spin(executor, node, lambda: not (stop.is_set() or getattr(node, "is_finished", False)))
        exit_code = int(getattr(node, "exit_code", 0))
    except Exception as error:
        if node is not None:
            raise
        if isinstance(error, ParameterException | RCLError):
            error = SoftformError(f"{error}.", "Correct it where it is given.")
        sys.stderr.write(f"{error}\n" if isinstance(error, SoftformError) else traceback.format_exc())
    finally:
        if node is not None:
            if isinstance(node, SoftformLifecycleNode):
                node.make_safe()
            with contextlib.suppress(Exception):
                node.destroy_node()
        if rclpy.ok():
            rclpy.shutdown()
    sys.exit(exit_code)
