"""What the stack reports while faults are injected, and the requests that are made of it."""

import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.duration import Duration
from sensor_msgs.msg import PointCloud2
from std_srvs.srv import Trigger

from softform_core.errors import SoftformError
from softform_interfaces.msg import ActuatorCommand, ActuatorState, Asked, BringupState, DriverState, MarkerFrame
from softform_interfaces.srv import InjectFault, Lease, Reset
from softform_rig.faults import CLEAR
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.service_calls import call_driver, call_service
from softform_ros.stack_state import state_in_words

_POLL_SECONDS = 0.02
_FLUSH_SECONDS = 1.5  # the recorder hands over what it wrote once a second
_REMEMBERED = 10
_INJECTED_SECONDS = 5.0


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds; returns whether it did in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


class StackWatch:
    """Listens while the `with` block lasts.

    Attributes:
        driver_states: Moment (s of `time.monotonic`), state and reason of each change that the driver reported.
        command: The last command of the present holder of the driver's lease; empty before that.
        command_at: When it came, s of `time.monotonic`.
        lease: Holder and id of the driver's lease.
        driver: The driver's last state.
        safe_reports: When the driver said that all is safe, s of `time.monotonic`, and how.
        bringup_state: Last state of the bring-up manager.
        values: (k,) measured last, None before that.
        stamp_ahead: Time by which the stamp of the last values was ahead of this program's clock, s.
        clouds: Captured clouds so far.
        marker_frames: Captured frames of markers so far.
        unfit_captures: Captures with a point or a visible marker that is not finite: none may ever come.
        commands: Publisher of commands.
        node: Node of these topics, spun by a thread of its own.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._background = BackgroundNode("fault_injection", f"/{namespace}")
        self._diagnostics: defaultdict[str, DiagnosticStatus] = defaultdict(DiagnosticStatus)
        self.driver_states: list[tuple[float, int, str]] = []
        self.lease = "", 0
        self.driver, self.command = DriverState(state=DriverState.OFFLINE), ActuatorCommand()
        self.command_at = 0.0
        self.safe_reports: list[tuple[float, str]] = []
        self._fault_events: list[tuple[str, str, float]] = []
        self._written: deque[tuple[float, int]] = deque(maxlen=_REMEMBERED)
        self.bringup_state = ""
        self.values: np.ndarray | None = None
        self.values_at = 0.0
        self.clouds = self.marker_frames = 0
        self.stamp_ahead = 0.0
        self.unfit_captures = 0

    def __enter__(self) -> "StackWatch":
        """Open topics and services."""
        node = self.node = self._background.__enter__()
        node.create_subscription(DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE)
        node.create_subscription(BringupState, "bringup_state", self._on_bringup_state, qos.LATCHED_STATE)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.DIAGNOSTICS)
        node.create_subscription(ActuatorState, "actuator_state", self._on_actuator_state, qos.ACTUATOR_STATE_READER)
        node.create_subscription(PointCloud2, "captured_cloud", self._on_cloud, qos.CAPTURED_CLOUD)
        node.create_subscription(MarkerFrame, "captured_markers", self._on_markers, qos.CAPTURED_MARKERS)
        node.create_subscription(ActuatorCommand, "actuator_command", self._on_command, qos.ACTUATOR_COMMAND)
        self.commands = node.create_publisher(ActuatorCommand, "actuator_command", qos.ACTUATOR_COMMAND)
        node.create_subscription(DiagnosticStatus, "rig/fault_events", self._on_fault_event, qos.FAULT_EVENTS)
        return self

    def __exit__(self, *error: object) -> None:
        self._background.__exit__(*error)

    @property
    def driver_state(self) -> int:
        """What the driver reported last; OFFLINE before that."""
        return self.driver_states[-1][1] if self.driver_states else int(DriverState.OFFLINE)

    @property
    def driver_reason(self) -> str:
        """Why."""
        return self.driver_states[-1][2] if self.driver_states else "no state of the driver came"

    def driver_left_running_since(self, moment: float) -> bool:
        """Whether the driver was in another state than RUNNING at any time after `moment`."""
        return any(at > moment and state != DriverState.RUNNING for at, state, _ in self.driver_states)

    def is_warning(self, node: str) -> bool:
        """Whether a node says that something is wrong."""
        return bytes(self._status(node).level) != DiagnosticStatus.OK

    def message(self, node: str) -> str:
        """What a node says of itself."""
        return str(self._status(node).message)

    def value(self, node: str, key: str) -> str:
        """One of the values of a node's diagnostics, or ""."""
        return next((pair.value for pair in self._status(node).values if pair.key == key), "")

    def count(self, node: str, key: str) -> int:
        """A value that counts."""
        text = self.value(node, key)
        return int(text) if text.isdigit() else 0

    @property
    def written_messages(self) -> int:
        """Messages that the recorder had written, and handed to the operating system, some time ago."""
        old = [written for at, written in list(self._written) if at < time.monotonic() - _FLUSH_SECONDS]
        return old[-1] if old else 0

    def forget_recording(self) -> None:
        """Count anew: the recorder was started anew, and writes another bag."""
        self._written.clear()

    def inject(self, fault: str) -> None:
        """Have the rig's devices fail, as `KIND[=VALUE][+DURATION]`.

        Raises:
            SoftformError: If the rig rejects it, or does not answer.
        """
        if not self._ask(fault):
            raise SoftformError(f"The rig did not answer when '{fault}' was to be injected.", "See the launch's log.")

    def clear_faults(self) -> None:
        """End all faults that are on, if the rig answers; a rejection is raised."""
        self._ask(CLEAR)

    def _ask(self, fault: str) -> bool:
        request = InjectFault.Request(fault=fault)
        answer = call_service(self.node, "rig", InjectFault, "rig/inject_fault", request, _INJECTED_SECONDS)
        if answer is not None and not answer.success:
            raise SoftformError(answer.message)
        return answer is not None

    def fault_moment(self, kind: str, event: str, since: float, seconds: float) -> float | None:
        """When a fault `starts`, `shows` or `ends`, s of `time.monotonic`; None if it does not in time."""

        def found() -> list[float]:
            events = list(self._fault_events)
            return [at for name, what, at in events if at >= since and name.startswith(kind) and what == event]

        wait_for(lambda: bool(found()), seconds)
        return next(iter(found()), None)

    def trigger(self, service: str, seconds: float) -> Trigger.Response | Reset.Response | None:
        """Call `stop` or `reset`; None without an answer in time."""
        answer = call_driver(self.node, service, seconds)
        if service == "stop" and answer is not None and answer.success:
            self.safe_reports.append((time.monotonic(), f"stop: {answer.message}"))
        return answer

    def stop_and_reset(self, seconds: float) -> str | None:
        """Call `stop`, then `reset`; what they answered if that was not success, None if all is well."""
        answers = [self.trigger(service, seconds) for service in ("stop", "reset")]
        return None if all(one is not None and one.success for one in answers) else f"stop and reset: {answers}"

    def asked(self, seconds_ago: float = 0.0, epoch: int | None = None) -> Asked:
        """What is asked for so long ago, s, in an epoch; None for the present one."""
        now = self.node.get_clock().now() - Duration(seconds=seconds_ago)
        return Asked(stamp=now.to_msg(), epoch=self.driver.epoch if epoch is None else epoch)

    def reset(self, asked: Asked, seconds: float) -> Reset.Response | None:
        """Ask for a reset that was asked for at another time; None without an answer in time."""
        return call_service(self.node, "actuation", Reset, "reset", Reset.Request(asked=asked), seconds)

    def ask_for_lease(
        self, source: str, seconds: float, asked: Asked | None = None, fingerprint: str | None = None
    ) -> Lease.Response | None:
        """Ask the driver for its lease under another name; None without an answer in time.

        It is asked for now and for the driver's robot, unless something else is given.
        """
        request = Lease.Request(
            request=Lease.Request.ACQUIRE,
            source=source,
            asked=self.asked() if asked is None else asked,
            fingerprint=self.driver.fingerprint if fingerprint is None else fingerprint,
        )
        return call_service(self.node, "actuation", Lease, "lease", request, seconds)

    def _status(self, node: str) -> DiagnosticStatus:
        return self._diagnostics[f"/{self._namespace}/{node}"]

    def _on_command(self, message: ActuatorCommand) -> None:
        if message.source == self.lease[0]:
            self.command, self.command_at = message, time.monotonic()

    def _on_driver_state(self, message: DriverState) -> None:
        self.driver = message
        if message.state == DriverState.SAFE or (message.at_rest and all(message.at_rest)):
            self.safe_reports.append((time.monotonic(), f"state {message.state}: {message.reason}"))
        self.lease = message.holder, int(message.lease)
        if not self.driver_states or self.driver_states[-1][1:] != (int(message.state), message.reason):
            self.driver_states.append((time.monotonic(), int(message.state), message.reason))

    def _on_bringup_state(self, message: BringupState) -> None:
        self.bringup_state = state_in_words(message)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self._diagnostics.update({status.name: status for status in message.status})
        if any(status.name.endswith("/bag_recorder") for status in message.status):
            self._written.append((time.monotonic(), self.count("bag_recorder", "messages")))

    def _on_fault_event(self, message: DiagnosticStatus) -> None:
        at = next(float(pair.value) for pair in message.values if pair.key == "steady time (s)")
        self._fault_events.append((message.name, message.message, at))

    def _on_actuator_state(self, message: ActuatorState) -> None:
        self.values, self.values_at = np.array(message.value), time.monotonic()
        self.stamp_ahead = seconds_from_stamp(message.header.stamp) - time.time()

    def _on_cloud(self, message: PointCloud2) -> None:
        self.clouds += 1
        points: Any = points_from_cloud(message)
        self.unfit_captures += int(len(points) == 0 or not np.isfinite(points).all())

    def _on_markers(self, message: MarkerFrame) -> None:
        self.marker_frames += 1
        visible = [place for place, is_seen in zip(message.position, message.visible, strict=True) if is_seen]
        self.unfit_captures += int(not np.isfinite([(place.x, place.y, place.z) for place in visible]).all())
