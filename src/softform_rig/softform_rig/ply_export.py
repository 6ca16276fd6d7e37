"""Exports of the scanner: binary PLY files in millimetres, each whole or not there, the latest ones kept."""

from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.shapes.target import TargetShape
from softform_core.shapes.write import write_ply
from softform_rig.scanner import Scan

_PATTERN = "scan_*.ply"


def export_scan(folder: Path, scan: Scan, captured_at: float, keep: int) -> Path:
    """Write a scan into `folder` and delete the oldest exports beyond `keep`.

    Args:
        folder: made if it is missing.
        scan: points in the scanner's frame.
        captured_at: s since the epoch; goes into the name and the header.
        keep: number of exports to keep.

    Returns:
        The new file.

    Raises:
        SoftformError: If the scan is empty or cannot be written (disk full, no permission).
    """
    if len(scan.points) == 0:
        raise SoftformError("The scanner saw no part of the surface.", "Check viewpoints and look_at of the reality.")
    path = folder / f"scan_{round(captured_at * 1000.0):015d}.ply"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_ply(path, TargetShape(scan.points, scan.normals), "mm", [f"captured_at {captured_at:.6f}"])
        # What is dated later than this one was written before the clock was set back.
        for old in sorted(folder.glob(_PATTERN), key=lambda each: (each.name <= path.name, each.name))[:-keep]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise SoftformError(f"Scans cannot be written to {folder}: {error}.", "Free space there.") from error
    return path
