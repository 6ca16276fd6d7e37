"""Life-cycle node `camera_tracker`: images of a planar robot become `captured_markers` (paper 001, Sec. III-C2)."""

import threading
import time
from collections import deque
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
from rclpy.subscription import Subscription
from sensor_msgs.msg import Image
from visualization_msgs.msg import Marker

from softform_capture.camera_tracker.code_sheet import RULER_LENGTH, SHEETS, CodeDetector
from softform_capture.camera_tracker.colour_marker import ColourMarker
from softform_capture.camera_tracker.image_source import (
    TOPIC_PREFIX,
    CapturedImages,
    HandedImages,
    TimedImage,
    bgr_from_image,
)
from softform_capture.camera_tracker.plane_view import Lens, SheetPlacement
from softform_capture.camera_tracker.tracker import CameraTracker, Sighting
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_interfaces.msg import MarkerFrame
from softform_ros.capture_time import check_capture_time
from softform_ros.conversions import marker_message, seconds_from_stamp, stamp_from_seconds
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter
from softform_ros.qos import CAMERA_INPUT, CAPTURED_MARKERS
from softform_ros.viewer_markers import captured_spheres

PARAMETERS = (
    Parameter("robot", "planar_fingers", "Robot that wears the marker: a name in `config/robots`, or a path."),
    Parameter("source", "0",
        "Camera's index, path of a video, pattern of images (`f/%04d.png`), or `topic:NAME` of images."),
    Parameter("marker", "tip", "Name of the marker in `captured_markers`."),
    Parameter("hue", 0.0, "The marker's hue, degrees: red 0, yellow 60, green 120, blue 240.", 0.0, 360.0),
    Parameter("hue_tolerance", 15.0, "Largest difference of hue, degrees.", 1.0, 90.0),
    Parameter("least_saturation", 0.5, "Of the marker, 0 grey to 1.", 0.0, 1.0),
    Parameter("least_value", 0.2, "Of the marker, 0 black to 1.", 0.0, 1.0),
    Parameter("diameter", 0.012, "Of the marker, m.", 0.001, 0.2),
    Parameter("sheet", "A4", "Which sheet of codes was printed.", choices=tuple(SHEETS)),
    Parameter("ruler_length", RULER_LENGTH, "Length of the sheet's ruler as measured on paper, m.", 0.1, 0.3),
    Parameter("sheet_pose", [0.0, 0.0, 0.0],
        "Where the sheet's cross lies in the robot's plane and where its x axis points: x, y (m), yaw (rad)."),
    Parameter("marker_height", 0.0, "Height of the marker above the sheet, m; other than 0 needs the lens.", -0.5, 0.5),
    Parameter("camera_calibration", "", "ROS camera calibration of the lens (.yaml); empty if it draws straight."),
    Parameter("hold_codes", 5.0, "How long the camera is trusted to stand still while codes are hidden, s.",
        0.0, 3600.0),
    Parameter("least_rate", 10.0, "Below so many images a second the node warns, Hz.", 0.1, 1000.0),
)  # fmt: skip


_WATCHED = 3.0  # s over which rate, latency and share of lost markers are taken
_STOP_PATIENCE = 10.0


class CameraTrackerNode(SoftformLifecycleNode):
    """Publishes the marker's place with every image, stamped with the time of capture."""

    def __init__(self) -> None:
        super().__init__("camera_tracker", PARAMETERS, hardware_id="camera")
        self._publisher = self.create_publisher(MarkerFrame, "captured_markers", CAPTURED_MARKERS)
        self._spheres = self.create_publisher(Marker, "captured_spheres", CAPTURED_MARKERS)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._subscription: Subscription | None = None
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, float, bool]] = deque()  # steady time, latency s, whether the marker was lost

    def configure(self) -> None:
        """Check what is looked for, and read the lens."""
        values = self.parameters
        self._robot = load_robot(values["robot"]).in_namespace(self.get_namespace())
        pose = values["sheet_pose"]
        if len(pose) != 3 or not np.isfinite(pose).all():
            raise SoftformError(f"Parameter sheet_pose is {pose}.", "Give x, y in metres and yaw in radians.")
        x, y, yaw = pose
        lens = values["camera_calibration"]
        self._make_tracker = partial(
            CameraTracker,
            CodeDetector(SHEETS[values["sheet"]], values["ruler_length"]),
            ColourMarker(**{one.name: values[one.name] for one in fields(ColourMarker)}),
            SheetPlacement(x, y, yaw, values["marker_height"]),
            Lens.from_file(Path(lens).expanduser()) if lens else None,
            values["hold_codes"],
        )
        if values["marker_height"] != 0.0 and not lens:
            raise SoftformError(
                "A marker above the sheet needs the lens.", "Give camera_calibration, or marker_height 0."
            )

    def activate(self) -> None:
        """Open the source and follow the marker in a thread of its own."""
        self._tracker = self._make_tracker()
        self._recent.clear()
        self._sighting, self._frames = Sighting(np.full(3, np.nan), "no image yet"), 0
        self._fault = self._unreadable = ""
        self._active_since = time.monotonic()
        source = self._open(self.parameters["source"])
        # An event of its own: a thread that hangs in its camera longer than `deactivate` waits must end all the same.
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._follow, args=(source, self._stop), name="camera_tracker", daemon=True
        )
        self._thread.start()

    def deactivate(self) -> None:
        """Close the source."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_STOP_PATIENCE)
            self._thread = None
        if self._subscription is not None:
            self.destroy_subscription(self._subscription)
            self._subscription = None

    def health(self) -> Health:
        """Return the rate, latency, what is seen of codes and marker, and what hinders it."""
        if self._thread is None:
            return Health(OK, "inactive")
        with self._lock:
            now = time.monotonic()
            while self._recent and self._recent[0][0] < now - _WATCHED:
                self._recent.popleft()
            recent, sighting, view = list(self._recent), self._sighting, self._tracker.view
            fault, unreadable = self._fault, self._unreadable
        rate = len(recent) / min(_WATCHED, max(now - self._active_since, 0.1))
        latencies = sorted(latency for _, latency, _ in recent)
        values = {
            "source": self.parameters["source"],
            "frames": self._frames,
            "rate_hz": f"{rate:.1f}",
            "latency_ms": f"{1000.0 * latencies[len(latencies) // 2]:.1f}" if latencies else "none",
            "lost_share": f"{np.mean([lost for *_, lost in recent]):.3f}" if recent else "none",
            "codes": "none" if view is None else view.codes,
            "code_residual_pixels": "none" if view is None else f"{view.residual:.2f}",
        }
        if fault:
            return Health(ERROR, fault, values)
        if not recent:
            if now - self._active_since <= _WATCHED:
                return Health(WARN, unreadable or "no image yet", values)
            return Health(ERROR, unreadable or f"no image for {_WATCHED:.0f} s: is the camera running?", values)
        if unreadable:
            return Health(WARN, unreadable, values)
        if sighting.problem:
            return Health(WARN, ("marker lost: " if sighting.is_lost else "") + sighting.problem, values)
        if now - self._active_since > _WATCHED and rate < self.parameters["least_rate"]:
            return Health(WARN, f"only {rate:.1f} images a second", values)
        return Health(OK, "the marker is seen", values)

    def _open(self, source: str) -> CapturedImages | HandedImages:
        if not source.startswith(TOPIC_PREFIX):
            lens = self._tracker.lens
            return CapturedImages(source, None if lens is None else lens.size)
        handed = HandedImages()

        def on_image(message: Image) -> None:
            try:
                captured_at = seconds_from_stamp(message.header.stamp)
                check_capture_time(captured_at, "the image")
                handed.hand(TimedImage(bgr_from_image(message), captured_at))
            except SoftformError as error:
                with self._lock:
                    self._unreadable = str(error)

        self._subscription = self.create_subscription(Image, source[len(TOPIC_PREFIX) :], on_image, CAMERA_INPUT)
        return handed

    def _follow(self, source: CapturedImages | HandedImages, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                image = source.read()
                if image is not None and not stop.is_set():
                    self._take(image)
        except Exception as error:  # what ends the images is reported in diagnostics, not in a silent end of the thread
            if not stop.is_set():
                self.get_logger().error(str(error))
                with self._lock:
                    self._fault = str(error)
        finally:
            source.close()

    def _take(self, image: TimedImage) -> None:
        sighting = self._tracker.look(image.picture, image.captured_at)
        self._frames += 1
        stamp = stamp_from_seconds(image.captured_at)
        names, frame = [self.parameters["marker"]], self._robot.base_frame
        message = marker_message(names, sighting.position[None], frame, stamp, self._frames)
        self._publisher.publish(message)
        if self._spheres.get_subscription_count():
            self._spheres.publish(captured_spheres(message))
        with self._lock:
            self._sighting, self._unreadable = sighting, ""
            self._recent.append((time.monotonic(), time.time() - image.captured_at, sighting.is_lost))


def main() -> None:
    """Run the node until it is asked to stop."""
    run_node(CameraTrackerNode)


if __name__ == "__main__":
    main()
