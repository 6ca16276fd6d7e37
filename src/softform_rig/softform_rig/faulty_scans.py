"""Exports of the scanner: binary PLY files in millimetres, the latest ones kept; and what faults do to them."""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from softform_core.errors import SoftformError
from softform_core.files import made_folder, write_atomically
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.scanner import Scan

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
