"""Life-cycle node `motion_capture`: frames of a capture system on `mocap/markers` become `captured_markers`."""

import time
from collections import deque

from softform_capture.marker_plausibility import PlausibilityLimits
from softform_capture.marker_stream import MarkerStream
from softform_capture.motion_capture_parameters import PARAMETERS
from softform_core.errors import SoftformError
from softform_core.robots import load_any_robot
from softform_interfaces.msg import MarkerFrame
from softform_ros.conversions import marker_message, positions_from_markers, seconds_from_stamp
from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.qos import CAPTURED_MARKERS

_WATCHED = 5.0  # s over which rate and latency are taken


class MotionCaptureNode(SoftformLifecycleNode):
    """Publishes every frame of markers in the robot's frame, stamped with the time of capture."""

    def __init__(self) -> None:
        """Declare the parameters; frames are passed over before activation."""
        super().__init__("motion_capture", PARAMETERS, hardware_id="motion capture")
        self._publisher = self.create_publisher(MarkerFrame, "captured_markers", CAPTURED_MARKERS)
        self.create_subscription(MarkerFrame, "mocap/markers", self._on_frame, CAPTURED_MARKERS)
        self._stream: MarkerStream | None = None
        self._arrivals: deque[tuple[float, float]] = deque()  # steady time and latency, s
        self._active_since = 0.0

    def configure(self) -> None:
        """Load the robot and check that it says where its base markers are."""
        values = self.parameters
        self._robot = load_any_robot(values["robot"])
        if len(self._robot.base_markers) < 3:
            raise SoftformError(
                f"Robot '{self._robot.name}' describes {len(self._robot.base_markers)} base markers.",
                "Give base_markers in its description: three at least, name and place.",
            )
        self._limits = PlausibilityLimits(values["max_speed"], values["max_departure"], values["settle_time"])

    def activate(self) -> None:
        """Start with the next frame; nothing is kept of an earlier run."""
        self._stream = MarkerStream(self._robot.base_markers, self.parameters["max_residual"], self._limits)
        self._arrivals.clear()
        self._active_since = time.monotonic()

    def deactivate(self) -> None:
        """Pass frames over."""
        self._stream = None

    def health(self) -> Health:
        """Rate, latency, missing share and alignment of the frames, and what was wrong with them."""
        stream = self._stream
        if stream is None:
            return Health(OK, "inactive")
        record, now = stream.record, time.monotonic()
        while self._arrivals and self._arrivals[0][0] < now - _WATCHED:
            self._arrivals.popleft()
        latencies = sorted(latency for _, latency in self._arrivals)
        values = {
            "rate_hz": f"{len(self._arrivals) / min(_WATCHED, max(now - self._active_since, 0.1)):.1f}",
            "latency_ms": f"{1000.0 * latencies[len(latencies) // 2]:.1f}" if latencies else "none",
            "frames": record.frames,
            "frames_lost": record.lost,
            "frames_rejected": record.rejected,
            "last_rejection": record.rejection or "none",
            "markers": len(stream.names),
            "missing_share": f"{record.missing:.3f}",
            "alignment_residual_mm": f"{1000.0 * record.residual:.3f}",
            "jumps": record.jumps,
            "exchanges": record.exchanges,
        }
        fault = self._fault(stream, now)
        return Health(WARN if fault else OK, fault or "frames arrive", values)

    def _fault(self, stream: MarkerStream, now: float) -> str:
        """What needs somebody's attention, in a sentence; empty if nothing does."""
        record = stream.record
        last = self._arrivals[-1][0] if self._arrivals else self._active_since
        if now - last > self.parameters["stale_after"]:
            why = f", the last one was rejected: {record.rejection}" if record.rejected else ""
            return f"no usable frame for {now - last:.0f} s{why}"
        if record.misalignment:
            return f"the last good alignment is used: {record.misalignment}" if record.frames else record.misalignment
        if record.exchanged:
            return f"labels {', '.join(record.exchanged)} seem to be exchanged: mend them in the capture system"
        if record.strangers:
            names = ", ".join(sorted(record.strangers))
            return f"unknown markers {names}: were they renamed? Activate again to start with the new names"
        return ""

    def _on_frame(self, message: MarkerFrame) -> None:
        stream = self._stream
        if stream is None:
            return
        captured_at = seconds_from_stamp(message.header.stamp)
        try:
            positions = positions_from_markers(message)
            believed = stream.take(message.name, positions, captured_at, message.frame_number)
        except SoftformError as error:
            stream.reject(str(error))
            self.get_logger().warning(str(error), throttle_duration_sec=5.0)
            return
        frame_id, stamp = self.parameters["frame_id"], message.header.stamp
        self._publisher.publish(marker_message(stream.names, believed, frame_id, stamp, message.frame_number))
        self._arrivals.append((time.monotonic(), time.time() - captured_at))


def main() -> None:
    """Run the node until it is told to stop."""
    run_node(MotionCaptureNode)


if __name__ == "__main__":
    main()
