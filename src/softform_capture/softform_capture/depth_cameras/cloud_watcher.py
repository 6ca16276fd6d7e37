"""A thread that merges the newest clouds of all depth cameras, so that merging never blocks a node."""

import threading
import time
from collections.abc import Callable, Sequence

from sensor_msgs.msg import PointCloud2

from softform_capture.depth_cameras.merging import CameraCloud, CloudMerger, MergedCloud
from softform_core.errors import reason_of
from softform_core.periodic import PeriodicThread
from softform_ros.capture_time import check_capture_time
from softform_ros.conversions import points_from_cloud, seconds_from_stamp


class CloudWatcher(PeriodicThread):
    """Merges until stopped; a cloud is used once.

    Args:
        merger: Knows where the cameras are.
        cameras: Names of the cameras.
        period: Shortest time between two merged clouds, s.
        longest_silence: Time without a cloud after which a camera is reported, s.
        on_merged: Called in the thread with each merged cloud; a `SoftformError` from it rejects the cloud.
        on_rejected: Called in the thread with the reason for which clouds cannot be used.
        on_silence: Called in the thread after each look with which cameras are silent, or "".
    """

    def __init__(
        self,
        merger: CloudMerger,
        cameras: Sequence[str],
        period: float,
        longest_silence: float,
        on_merged: Callable[[MergedCloud], None],
        on_rejected: Callable[[str], None],
        on_silence: Callable[[str], None],
    ) -> None:
        super().__init__("cloud watcher", period, self._look)
        self._merger, self._longest_silence = merger, longest_silence
        self._on_merged, self._on_rejected, self._on_silence = on_merged, on_rejected, on_silence
        self._newest: dict[str, PointCloud2] = {}
        self._heard_at = dict.fromkeys(cameras, time.monotonic())
        self._lock = threading.Lock()

    def take(self, camera: str, message: PointCloud2) -> None:
        """Keep a camera's newest cloud; called from any thread."""
        with self._lock:
            self._newest[camera] = message
            self._heard_at[camera] = time.monotonic()

    def _look(self) -> None:
        with self._lock:
            now = time.monotonic()
            silent = [name for name, at in self._heard_at.items() if now - at > self._longest_silence]
            messages = dict(self._newest) if len(self._newest) == len(self._heard_at) else {}
            if messages:
                self._newest.clear()
        self._on_silence(f"camera {', '.join(silent)} sends no clouds: is it running?" if silent else "")
        if not messages:
            return
        try:
            self._on_merged(self._merger.merge({name: _cloud(name, each) for name, each in messages.items()}))
        except Exception as error:  # one bad cloud must not end the watch
            self._on_rejected(reason_of(error))


def _cloud(camera: str, message: PointCloud2) -> CameraCloud:
    captured_at = seconds_from_stamp(message.header.stamp)
    check_capture_time(captured_at, f"the cloud of camera {camera}")
    return CameraCloud(points_from_cloud(message), message.header.frame_id, captured_at)
