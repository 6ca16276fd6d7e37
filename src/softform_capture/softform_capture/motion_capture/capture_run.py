"""One run of a motion-capture system without ROS: its frames in, believable markers and the run's health out."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from softform_capture.motion_capture.captured_frame import CapturedFrame
from softform_capture.motion_capture.labelling import Labeller
from softform_capture.motion_capture.marker_plausibility import PlausibilityLimits
from softform_capture.motion_capture.marker_stream import MarkerStream
from softform_core.arrays import Array
from softform_core.errors import SoftformError, reason_of
from softform_core.robots import Robot
from softform_ros.capture_time import check_capture_time

_WATCHED = 5.0  # s over which rate and latency are taken
_SOONER = 0.9
"""Factor on the shortest period of frames by which one may come early."""
_AHEAD = 0.01  # s by which a stamp may lie ahead of this machine's clock
_NAMED = 5  # unknown markers that are reported by name


@dataclass
class CaptureRun:
    """Takes frames from the thread that reads them, and reports its state to another.

    Its settings are the node's parameters of the same names (m, s, Hz), and what is made of others.

    Attributes:
        robot: Robot whose base markers align the system.
        limits: Plausibility limits of a marker's motion.
        renames: The system's names -> ours.
        labeller: Names unlabelled markers; None if the system does.
    """

    robot: Robot
    max_residual: float
    limits: PlausibilityLimits
    renames: dict[str, str] = field(default_factory=dict)
    markers: list[str] = field(default_factory=list)
    labeller: Labeller | None = None
    stale_after: float = 1.0
    max_gap: float = 10.0
    max_latency: float = 2.0
    max_rate: float = 100.0

    def __post_init__(self) -> None:
        self.stream = MarkerStream(self.robot.base_markers, self.max_residual, self.limits, self.markers)
        self._lock = threading.Lock()
        self._arrivals: deque[tuple[float, float]] = deque()  # steady time and latency, s
        self._started = self._last_arrival = time.monotonic()
        self._used = -float("inf")  # time of the last frame that was used

    def take(self, frame: CapturedFrame) -> tuple[list[str], Array] | None:
        """Use one frame.

        Returns:
            Names of the markers on the robot, and their positions, (M, 3) m, robot frame, NaN where missing; None if
            the frame is passed over as it comes too soon after the one before.

        Raises:
            SoftformError: If it cannot be used; that is counted.
        """
        with self._lock:
            try:
                return self._taken(frame)
            except SoftformError as error:
                self.stream.reject(str(error))
                raise
            except Exception as error:  # one bad frame must not end the run
                self.stream.reject(reason_of(error))
                raise SoftformError(
                    f"Frame {frame.number} cannot be used: {reason_of(error)}.",
                    "Look at what the capture system sends.",
                ) from error

    def _taken(self, frame: CapturedFrame) -> tuple[list[str], Array] | None:
        check_capture_time(frame.time, f"frame {frame.number}")
        if 0.0 < frame.time - self._used < _SOONER / self.max_rate:
            self.stream.pass_over(frame.time, frame.number)
            return None
        frame = frame.renamed(self.renames)
        if self.labeller is not None:
            frame = self.labeller.label(frame)
        believed = self.stream.take(frame.names, frame.positions, frame.time, frame.number)
        self._used = frame.time
        self._last_arrival = time.monotonic()
        self._arrivals.append((self._last_arrival, time.time() - frame.time))
        return self.stream.names, believed

    def reject(self, error: Exception) -> str:
        """Count a frame that could not even be read; returns the reason."""
        with self._lock:
            self.stream.reject(reason_of(error))
            return self.stream.record.rejection

    @property
    def is_silent(self) -> bool:
        """Whether no frame could be used for too long."""
        return time.monotonic() - self._last_arrival > self.stale_after

    def health(self) -> tuple[str, dict[str, object]]:
        """Return what needs attention, in a sentence (empty if nothing does), and the values behind it."""
        with self._lock:
            now = time.monotonic()
            while self._arrivals and self._arrivals[0][0] < now - _WATCHED:
                self._arrivals.popleft()
            return self._fault(now), self._values(now)

    def _latencies(self) -> list[float]:
        return sorted(latency for _, latency in self._arrivals)

    def _values(self, now: float) -> dict[str, object]:
        stream, latencies = self.stream, self._latencies()
        record = stream.record
        milliseconds = [f"{1000.0 * latency:.1f}" for latency in latencies] or ["none"]
        return {
            "rate_hz": f"{len(latencies) / min(_WATCHED, max(now - self._started, 0.1)):.1f}",
            "latency_ms": milliseconds[len(milliseconds) // 2],
            "latency_worst_ms": milliseconds[-1],
            "frames": record.frames,
            "frames_lost": stream.order.lost,
            "frames_rejected": record.rejected,
            "last_rejection": record.rejection or "none",
            "clock_steps": stream.order.clock_steps,
            "markers": len(stream.names),
            "missing_share": f"{record.missing:.3f}",
            "gaps": stream.gaps.count if stream.gaps else 0,
            "longest_gap_s": f"{stream.gaps.longest if stream.gaps else 0.0:.2f}",
            "jumps": record.jumps,
            "exchanges": record.exchanges,
            "alignment_residual_mm": f"{1000.0 * record.residual:.3f}",
        }

    def _fault(self, now: float) -> str:
        stream, record = self.stream, self.stream.record
        if self.is_silent:
            why = f", the last one was rejected: {record.rejection}" if record.rejected else ""
            return f"no usable frame for {now - self._last_arrival:.0f} s{why}"
        if record.misalignment:
            return ("the last good alignment is used: " if stream.alignment else "") + record.misalignment
        return "; ".join(self._marker_faults()) or self._clock_fault()

    def _marker_faults(self) -> Iterator[str]:
        """Return what is wrong with the robot's markers, then which others are seen: a renamed marker is in both."""
        stream, record = self.stream, self.stream.record
        if record.exchanged:
            yield f"labels {', '.join(record.exchanged)} seem to be exchanged: correct them in the capture system"
        if record.jumped:
            yield f"{', '.join(record.jumped)} jumped, and are hidden until they stay in one place"
        if stream.gaps and (missing := stream.gaps.lasting(stream.names, self.max_gap)):
            worst = next(iter(missing.values()))
            yield f"{', '.join(missing)} missing for up to {worst:.0f} s: occluded, or fallen off?"
        if strangers := stream.strangers.names:
            more = f" and {len(strangers) - _NAMED} more" if len(strangers) > _NAMED else ""
            names = ", ".join(strangers[:_NAMED])
            yield f"unknown markers {names}{more}: were they renamed? Activate again to start with the new names"

    def _clock_fault(self) -> str:
        latencies = self._latencies()
        middle = latencies[len(latencies) // 2] if latencies else 0.0
        if middle < -_AHEAD:
            return f"frames are stamped {-middle:.3f} s ahead of this machine's clock: synchronise the clocks (NTP)"
        if middle > self.max_latency:
            return f"frames are stamped {middle:.1f} s before they come: synchronise the clocks (NTP)"
        return ""
