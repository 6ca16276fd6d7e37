"""The scanner on the rig: exports what it sees of the body's surface, when that is due."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faulty_scans import export_faulty_scan
from softform_rig.reality import ScannerDescription
from softform_rig.rig_settings import RigSettings
from softform_rig.scanner import Scanner, half_size

LONGEST_WITHOUT_SCAN = 2.0  # s
_CHANGED = 2e-4  # m; a surface that moved less is not new to a scanner with as much noise
_COVERAGE = 1.1  # of what the robot at rest reaches from its middle

OnSurface = Callable[[Array, float], None]
"""Called at every scan with points (n, 3) m of the true surface and their time, s since the epoch."""


class SurfaceScans:
    """The scanner of one robot: counts its exports, and says why the last one failed, if it did.

    Args:
        robot: The robot.
        description: Description of the scanner.
        faces: (F, 3) of the surface.
        settings: Settings of the rig's devices.
        schedule: Schedule of their faults.
        on_surface: Called with the true surface.

    Raises:
        SoftformError: If the registration is no pose.
    """

    def __init__(
        self,
        robot: Robot,
        description: ScannerDescription,
        faces: NDArray[np.int32],
        settings: RigSettings,
        schedule: FaultSchedule,
        on_surface: OnSurface | None,
    ) -> None:
        pose = RigidTransform.from_pose(settings.registration)
        self._scanner = Scanner(description, pose, _COVERAGE * half_size(robot), settings.seed + 1)
        self._faces, self._settings, self._schedule, self._on_surface = faces, settings, schedule, on_surface
        self.count = 0
        self.failure: str | None = None
        self._scanned: Array | None = None
        self._scanned_at = -np.inf

    def look(self, vertices: Array, captured_at: float) -> bool:
        """Scan vertices (V, 3) m of a moment, s since the epoch, if that is due; returns whether it was."""
        now = time.monotonic()
        moved = self._scanned is None or float(np.abs(vertices - self._scanned).max()) > _CHANGED
        if not moved and now - self._scanned_at < LONGEST_WITHOUT_SCAN - 0.5 * self._settings.scan_period:
            return False
        self._scanned, self._scanned_at = vertices, now
        if self._on_surface is not None:
            self._on_surface(surface_points(vertices, self._faces), captured_at)
        scan = self._scanner.scan(vertices, self._faces)
        try:
            folder, keep = self._settings.scan_folder, self._settings.keep_scans
            export_faulty_scan(folder, scan, captured_at, keep, self._schedule)
            self.failure = None
            self.count += 1
        except SoftformError as error:
            self.failure = str(error)
        return True

    def warm_up(self, vertices: Array) -> None:
        """Compile the scanner by a small scan that is forgotten."""
        Scanner(self._scanner.description, self._scanner.pose, 0.1, 0).scan(vertices, self._faces)


_THIRDS = (
    np.array([[7, 1, 1], [1, 7, 1], [1, 1, 7], [5, 2, 2], [2, 5, 2], [2, 2, 5], [4, 4, 1], [4, 1, 4], [1, 4, 4]]) / 9
)
"""Barycentric centres of the nine parts of a triangle whose sides are cut in three."""


def surface_points(vertices: Array, faces: NDArray[np.integer]) -> Array:
    """Dense points on a triangle mesh: its vertices and nine points in each triangle, (V + 9 F, 3) m."""
    inner = np.einsum("bc,fcd->fbd", _THIRDS, vertices[faces])
    return np.concatenate([vertices, inner.reshape(-1, 3)])
