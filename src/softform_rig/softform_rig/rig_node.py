"""Node `rig`: parameters, life cycle, diagnostics, motion capture and the true surface of the virtual rig."""

import time
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import PointCloud2

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.heap import keep_large_arrays_off_the_heap
from softform_core.paths import runs_dir
from softform_core.robots import load_robot
from softform_core.text import printable
from softform_interfaces.msg import MarkerFrame
from softform_interfaces.srv import InjectFault
from softform_rig.faults import CLEAR, parse_fault, parse_faults
from softform_rig.origin import origin
from softform_rig.parameters import PARAMETERS
from softform_rig.reality import load_reality
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig
from softform_ros.conversions import cloud_from_points, marker_message, stamp_from_seconds
from softform_ros.diagnostics import ERROR, OK, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.qos import CAPTURED_MARKERS, FAULT_EVENTS, TRUE_SURFACE
from softform_ros.timers import create_steady_timer

EVENTS_PERIOD = 0.1  # s; each event carries its own time
_AS_GIVEN = ("registration", "board", "firmware", "seed", "scan_period", "keep_scans", "mocap_rate")


class RigNode(SoftformLifecycleNode):
    """The virtual rig as a node."""

    def __init__(self) -> None:
        super().__init__("rig", PARAMETERS, hardware_id="virtual rig")
        self.is_finished, self.exit_code = False, 0
        self._rig: VirtualRig | None = None
        self._activated_at = 0.0
        self._hosts: set[Path] = set()
        self._true_surface = self.create_publisher(PointCloud2, "rig/true_surface", TRUE_SURFACE)
        self._markers = self.create_publisher(MarkerFrame, "mocap/markers", CAPTURED_MARKERS)
        self._events = self.create_publisher(DiagnosticStatus, "rig/fault_events", FAULT_EVENTS)
        self.create_service(InjectFault, "rig/inject_fault", self._inject)
        create_steady_timer(self, EVENTS_PERIOD, self._publish_events)

    def configure(self) -> None:
        """Build the reality."""
        given = self.parameters
        robot = self._robot = load_robot(given["robot"]).in_namespace(self.get_namespace())
        settings = RigSettings(
            port_link=Path(given["port_link"] or runs_dir() / "openpneu"),
            scan_folder=Path(given["scan_folder"] or runs_dir() / "scans"),
            faults=parse_faults(given["faults"]),
            wire_log=Path(given["wire_log"]) if given["wire_log"] else None,
            **{name: given[name] for name in _AS_GIVEN},
        )
        reality = load_reality(given["reality"], robot)
        self._rig = VirtualRig(robot, reality, settings, self._publish_surface, self._publish_markers)
        self.get_logger().info(f"reality '{reality.name}': {reality.title}")
        if told := origin(robot, reality):
            self.get_logger().warning(told)

    def activate(self) -> None:
        """Open the port and start scanning."""
        assert self._rig is not None
        self._rig.start()
        self._activated_at, self._hosts = time.monotonic(), set()
        ports = ", ".join(str(terminal.link) for terminal in self._rig.terminals)
        self.get_logger().info(f"board at {ports}, {self._rig.devices}")

    def deactivate(self) -> None:
        """Close the port, as if the board were unplugged."""
        if self._rig is not None:
            self._rig.stop()

    def cleanup(self) -> None:
        """Forget the reality."""
        self.deactivate()
        self._rig = None

    def _inject(self, request: InjectFault.Request, response: InjectFault.Response) -> InjectFault.Response:
        """Inject the fault that is asked for, or clear all; the answer says why it was rejected."""
        try:
            if self._rig is None or not self.is_active:
                raise SoftformError("The rig is not active.", "Activate it first.")
            if request.fault == CLEAR:
                self._rig.clear_faults()
            else:
                self._rig.inject(parse_fault(printable(request.fault)))
            response.success = True
        except SoftformError as error:
            self.get_logger().warning(f"fault rejected: {error}")
            response.message = str(error)
        return response

    def _publish_events(self) -> None:
        if self._rig is None:
            return
        for event in self._rig.fault_events():
            self._say_event(str(event.fault), event.event, event.time)
        for terminal in self._rig.terminals:
            if self.is_active and terminal.connected != (terminal.link in self._hosts):
                self._hosts ^= {terminal.link}
                done = "opens" if terminal.link in self._hosts else "has left"
                self.get_logger().info(f"a host {done} the port {terminal.link.name}")
            while terminal.board.vent_times:
                self._say_event("host", "vent on the wire", terminal.board.vent_times.popleft())

    def _say_event(self, name: str, event: str, at: float) -> None:
        """Publish and log one event at `at`, s of the steady clock, which all processes of this machine share."""
        self.get_logger().info(f"{at - self._activated_at:.2f} s: {name} {event}")
        self._events.publish(
            DiagnosticStatus(
                level=DiagnosticStatus.OK,
                name=name,
                message=event,
                hardware_id="virtual rig",
                values=[KeyValue(key="steady time (s)", value=f"{at:.6f}")],
            )
        )

    def health(self) -> Health:
        """Faults of board, body and scanner, and how far they have come."""
        assert self._rig is not None
        rig, faults = self._rig, self._rig.faults
        values = {
            "port": ", ".join(str(terminal.link) for terminal in rig.terminals),
            "host connected": all(terminal.connected for terminal in rig.terminals),
            f"true {rig.quantity}": " ".join(f"{value:.6g}" for value in rig.actuator_values()),
            "scans": rig.scans,
            "marker frames": rig.marker_frames,
            "solves": rig.body.solves,
            "faults that are on": ", ".join(map(str, rig.faults_on)) or "none",
            "last solve (s)": f"{rig.body.solve_seconds:.3f}",
        }
        return Health(ERROR if faults else OK, "; ".join(faults) or "the virtual rig runs", values)

    def _publish_surface(self, points: Array, captured_at: float) -> None:
        self._true_surface.publish(cloud_from_points(points, self._robot.base_frame, stamp_from_seconds(captured_at)))

    def _publish_markers(self, positions: Array, captured_at: float, number: int) -> None:
        assert self._rig is not None
        stamp = stamp_from_seconds(captured_at)
        frame = self._robot.frame_of("mocap")
        self._markers.publish(marker_message(self._rig.cameras.names, positions, frame, stamp, number))


def make_node() -> RigNode:
    """The node, active already if its parameter `autostart` says so; finished if that fails."""
    node = RigNode()
    if node.get_parameter("autostart").value:
        steps = (node.trigger_configure, node.trigger_activate)
        if any(step() != TransitionCallbackReturn.SUCCESS for step in steps):
            node.is_finished, node.exit_code = True, 1
    return node


def main() -> None:
    """Run the node."""
    keep_large_arrays_off_the_heap()
    run_node(make_node)


if __name__ == "__main__":
    main()
