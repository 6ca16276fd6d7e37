"""Life-cycle node `scanner`: exports of a watched folder become `captured_cloud`."""

import time
from pathlib import Path
from threading import Lock

from sensor_msgs.msg import PointCloud2

from softform_capture.captured_cloud import CloudOptions, captured_cloud
from softform_capture.folder_source import FolderSource, RejectedFile, ScanFile
from softform_capture.folder_watcher import FolderWatcher
from softform_capture.parameters import PARAMETERS
from softform_capture.registration import Registration
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_ros.conversions import cloud_from_points, stamp_from_seconds
from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.qos import CAPTURED_CLOUD


class ScannerNode(SoftformLifecycleNode):
    """Publishes every new scan of the robot, in its frame, stamped with the time of capture."""

    def __init__(self) -> None:
        """Declare the parameters; nothing is watched before activation."""
        super().__init__("scanner", PARAMETERS, hardware_id="scanner")
        self._publisher = self.create_publisher(PointCloud2, "captured_cloud", CAPTURED_CLOUD)
        self._watcher: FolderWatcher | None = None
        self._lock = Lock()
        self._reset_record()

    def _reset_record(self) -> None:
        self._published = 0
        self._rejected = 0
        self._last_scan = ""
        self._last_points = 0
        self._last_captured_at = 0.0
        self._last_rejected: RejectedFile | None = None
        self._last_was_rejected = False
        self._folder_fault = ""
        self._active_since = 0.0

    def configure(self) -> None:
        """Load the robot and check folder, unit and registration."""
        values = self.parameters
        if not values["watch_folder"]:
            raise SoftformError(
                "Parameter watch_folder is empty.", "Set it to the folder where the scanner writes its exports."
            )
        self._robot = load_robot(values["robot"])
        self._registration = Registration.from_pose(values["registration"])
        self._options = CloudOptions(
            values["crop"], values["crop_margin"], values["remove_outliers"], values["max_points"]
        )
        self._source = FolderSource(Path(values["watch_folder"]).expanduser(), values["unit"])

    def activate(self) -> None:
        """Start watching."""
        self._reset_record()
        self._active_since = time.monotonic()
        if not self.parameters["include_existing"] and self._source.folder.is_dir():
            skipped = self._source.skip_existing()
            if skipped:
                self.get_logger().info(f"passing over {skipped} older exports in {self._source.folder}")
        self._watcher = FolderWatcher(
            self._source, self.parameters["poll_period"], self._on_scan, self._on_rejected, self._on_folder
        )
        self._watcher.start()

    def deactivate(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None

    def health(self) -> Health:
        """Age of the last scan, and what was rejected and why."""
        with self._lock:
            rejected, was_rejected, fault = self._last_rejected, self._last_was_rejected, self._folder_fault
            age = time.time() - self._last_captured_at if self._published else None
            values = {
                "watch_folder": self._source.folder,
                "published": self._published,
                "rejected": self._rejected,
                "last_scan": self._last_scan or "none",
                "last_scan_points": self._last_points,
                "last_scan_age_s": "none" if age is None else f"{age:.1f}",
                "last_rejected": rejected.path.name if rejected else "none",
                "last_rejected_reason": rejected.reason if rejected else "none",
            }
        if not self.is_active:
            return Health(OK, "inactive", values)
        if fault:
            return Health(WARN, fault, values)
        if rejected is not None and was_rejected:
            return Health(WARN, f"rejected {rejected.path.name}: {rejected.reason}", values)
        stale_after = self.parameters["stale_after"]
        if age is not None and age > stale_after:
            return Health(WARN, f"no scan for {age:.0f} s", values)
        if age is None and time.monotonic() - self._active_since > stale_after:
            return Health(WARN, f"no usable scan since activation: is {self._source.folder} the right folder?", values)
        return Health(OK, "waiting for the first scan" if age is None else "scans arrive", values)

    def _on_scan(self, scan: ScanFile) -> None:
        points = captured_cloud(scan.shape, self._registration, self._robot, self._options)
        stamp = stamp_from_seconds(scan.captured_at)
        self._publisher.publish(cloud_from_points(points, self.parameters["frame_id"], stamp))
        with self._lock:
            self._published += 1
            self._last_scan, self._last_points = scan.path.name, len(points)
            self._last_captured_at = scan.captured_at
            self._last_was_rejected = False

    def _on_rejected(self, rejected: RejectedFile) -> None:
        self.get_logger().warning(f"rejected {rejected.path.name}: {rejected.reason}")
        with self._lock:
            self._rejected += 1
            self._last_rejected = rejected
            self._last_was_rejected = True

    def _on_folder(self, fault: str) -> None:
        if fault and fault != self._folder_fault:
            self.get_logger().warning(fault)
        with self._lock:
            self._folder_fault = fault


def main() -> None:
    """Run the node until it is told to stop."""
    run_node(ScannerNode)


if __name__ == "__main__":
    main()
