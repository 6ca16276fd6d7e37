"""What faults do to the exports of the scanner."""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.ply_export import export_scan
from softform_rig.scanner import Scan


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
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SoftformError(f"{folder} cannot be made: {error}.", "Free space there.") from error
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
