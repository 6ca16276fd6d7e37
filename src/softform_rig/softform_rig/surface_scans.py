"""The scanner on the rig: exports what it sees of the body when that is due, and what faults do to the exports.

Exports are binary PLY files in millimetres, of which the latest ones are kept.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import made_folder, write_atomically
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.reality import ScannerDescription
from softform_rig.rig_settings import RigSettings
from softform_rig.scanner import Scan, Scanner, half_size

_PATTERN = "scan_*.ply"


def export_scan(folder: Path, scan: Scan, captured_at: float, keep: int) -> Path:
    """Write a scan, in the scanner's frame, into `folder`, delete all but the newest `keep`, and return the file.

    Raises:
        SoftformError: If the scan is empty or cannot be written (disk full, no permission).
    """
    if len(scan.points) == 0:
        raise SoftformError("The scanner saw no part of the surface.", "Check viewpoints and look_at of the reality.")
    path = folder / f"scan_{round(captured_at * 1000.0):015d}.ply"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_ply(path, Shape(scan.points, scan.normals), "mm", [f"captured_at {captured_at:.6f}"])
        # What is dated later than this one was written before the clock was set back.
        for old in sorted(folder.glob(_PATTERN), key=lambda each: (each.name <= path.name, each.name))[:-keep]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise SoftformError(f"Scans cannot be written to {folder}: {error}.", "Free space there.") from error
    return path


def export_faulty_scan(folder: Path, scan: Scan, captured_at: float, keep: int, schedule: FaultSchedule) -> Path:
    """Export a scan as the faults that are on have it, else as `export_scan`; arguments and result as there.

    Raises:
        SoftformError: For the reasons of `export_scan`.
    """
    kinds = ("scan_nan", "scan_truncated", "scan_empty", "scan_partial_write")
    faults = {kind: schedule.on(kind) for kind in kinds}
    for fault in faults["scan_nan"]:
        scan = _with_holes(scan, fault.number())
    if not any(faults[kind] for kind in kinds[1:]):
        path = export_scan(folder, scan, captured_at, keep)
    else:
        with tempfile.TemporaryDirectory() as staging:
            whole = export_scan(Path(staging), scan, captured_at, keep)
            path, data = folder / whole.name, whole.read_bytes()
        made_folder(folder)
        for fault in faults["scan_truncated"]:
            data = data[: round(fault.number() * len(data))]
        if faults["scan_empty"]:
            data = b""
        if faults["scan_partial_write"]:
            _write_slowly(path, data, faults["scan_partial_write"][0].number())
        else:
            write_atomically(path, data)
    for fault in sum(faults.values(), []):
        schedule.shows(fault)
    return path


def _with_holes(scan: Scan, share: float) -> Scan:
    """The scan with a share of its points NaN, spread evenly."""
    points = scan.points.copy()
    count = len(points)
    points[np.linspace(0, count - 1, round(share * count)).astype(int)] = np.nan
    return replace(scan, points=points)


def _write_slowly(path: Path, data: bytes, pause: float) -> None:
    """Write a file under its own name in two parts, `pause` s apart, as a careless program does."""
    half = len(data) // 2
    try:
        with path.open("wb", buffering=0) as file:
            file.write(data[:half])
            time.sleep(pause)
            file.write(data[half:])
    except OSError as error:
        raise SoftformError(f"{path} cannot be written: {error}.", "Free space there.") from error


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
