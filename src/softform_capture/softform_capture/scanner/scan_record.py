"""Record of the scans of one run, and what the scanner's diagnostics say of them."""

import time
from collections.abc import Mapping

from softform_capture.scanner.scan_quality import ScanQuality
from softform_ros.diagnostics import ERROR, OK, WARN, Health


class ScanRecord:
    """Counts scans from now on.

    Attributes:
        fault: Present fault of the source; empty if there is none.

    Args:
        doubt: Question to ask the user if no scan comes.
        needs_source: Whether a fault of the source is an error from the beginning: a camera that is gone is, a folder
            may come yet; one from which scans came may not go.
    """

    def __init__(self, doubt: str, needs_source: bool = False) -> None:
        self.fault = ""
        self._doubt, self._fault_level = doubt, ERROR if needs_source else WARN
        self._begun_at = time.monotonic()
        self._published = self._rejected = 0
        self._last: dict[str, object] = {"last_scan": "none", "last_scan_points": 0}
        self._quality: ScanQuality | None = None
        self._captured_at = 0.0
        self._rejection: tuple[str, str] | None = None
        self._last_was_rejected = False

    def note(
        self, name: str, points: int, captured_at: float, quality: ScanQuality, figures: Mapping[str, object]
    ) -> None:
        """Count a scan that was published.

        Args:
            name: Name of the scan.
            points: It has.
            captured_at: Capture time, s since the epoch.
            quality: Quality of the scan.
            figures: Further figures on the scan.
        """
        self._published += 1
        self._last = {"last_scan": name, "last_scan_points": points, **quality.values(), **figures}
        self._quality, self._captured_at, self._last_was_rejected = quality, captured_at, False

    def reject(self, name: str, reason: str) -> bool:
        """Count a scan that cannot be used; returns whether that differs from the one before."""
        is_news = not self._last_was_rejected or self._rejection != (name, reason)
        self._rejected += 1
        self._rejection, self._last_was_rejected = (name, reason), True
        return is_news

    def health(self, source: Mapping[str, object], stale_after: float, least_coverage: float) -> Health:
        """Return diagnostics; warns `stale_after` s without a scan, and of one below the least coverage."""
        age = time.time() - self._captured_at if self._published else None
        name, reason = self._rejection or ("none", "none")
        values = {
            **source,
            "published": self._published,
            "rejected": self._rejected,
            **self._last,
            "last_scan_age_s": "none" if age is None else f"{age:.1f}",
            "last_rejected": name,
            "last_rejected_reason": reason,
        }
        if self.fault:
            return Health(ERROR if self._published else self._fault_level, self.fault, values)
        if self._last_was_rejected:
            return Health(WARN, f"rejected {name}: {reason}", values)
        if age is not None and age > stale_after:
            return Health(WARN, f"no scan for {age:.0f} s", values)
        if age is None and time.monotonic() - self._begun_at > stale_after:
            return Health(WARN, f"no usable scan since activation: {self._doubt}", values)
        if self._quality is not None and self._quality.coverage < least_coverage:
            return Health(WARN, f"the scan shows {self._quality.coverage:.0%} of the robot", values)
        return Health(OK, "waiting for the first scan" if age is None else "scans arrive", values)
