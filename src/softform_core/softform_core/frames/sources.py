"""Opens a data set of frames of a scanner or of motion capture."""

from pathlib import Path

import zarr

from softform_core.frames.marker_store import MARKER_FRAMES, MarkerStore, open_marker_frames
from softform_core.frames.store import FrameStore, open_frames
from softform_core.robots import Robot


def open_recording(path: Path | str, robot: Robot | None = None, *, writable: bool = False) -> FrameStore | MarkerStore:
    """Open a store of scanned or of marker frames, as its schema says; of just this robot if one is given.

    Raises:
        SoftformError: If there is no store, or its schema, version, arrays or robot are other than expected.
    """
    try:
        schema = zarr.open_group(path, mode="r").attrs.get("schema")
    except (OSError, ValueError, KeyError, TypeError, zarr.errors.BaseZarrError):
        schema = None  # the check below says what is wrong
    if schema == MARKER_FRAMES.schema:
        return open_marker_frames(path, robot, writable=writable)
    return open_frames(path, robot, writable=writable)
