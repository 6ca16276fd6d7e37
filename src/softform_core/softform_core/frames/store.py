"""Frames captured by a scanner, on disk (see `recording`): clouds and which regions of the robot they miss.

On top of every recording's arrays: `points` (M, 3) f4 m of all frames one after the other, `offsets` (n, 2) a frame's
first and one past its last point, `covered` (n, g, g) where the robot is seen (False: missing region; of
several patches one below the other), `outliers` (n,).
Points behind the last frame that is marked as captured or rejected are overwritten.
"""

from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from softform_core.errors import SoftformError
from softform_core.frames.marker_store import MARKER_FRAMES, MarkerStore, open_marker_frames
from softform_core.frames.quality import COVERAGE_CELLS, FrameQuality
from softform_core.frames.recording import ATTRIBUTES, FrameStatus, Recording, common_rows, fill_new_group
from softform_core.robots import Robot
from softform_core.stores.zarr_stores import Rows, Shapes, StoreKind, disk_errors, misshapen_rows, new_group

_POINTS_PER_CHUNK = 16384


def _rows(inputs: int, patches: int) -> Rows:
    return common_rows(inputs) | {
        "offsets": ((2,), "i8"),
        "covered": ((patches * COVERAGE_CELLS, COVERAGE_CELLS), "bool"),
        "outliers": ((), "f8"),
    }


def _misshapen(shapes: Shapes) -> list[str]:
    inputs = shapes.get("actuation", (0, 0))[-1]
    patches = max(1, shapes.get("covered", (0, 0))[1] // COVERAGE_CELLS)
    return misshapen_rows(shapes, _rows(inputs, patches)) + ["points"] * (shapes.get("points", ())[1:] != (3,))


FRAMES = StoreKind(
    name="set of frames",
    schema="softform/frames",
    version=2,
    attributes=ATTRIBUTES,
    made_by="./softform collect",
    misshapen=_misshapen,
)


class FrameStore(Recording):
    """An open store; `open_frames` and `create_frames` make one."""

    kind = FRAMES

    def _rows(self) -> Rows:
        return _rows(self.actuation.shape[1], self._array("covered").shape[1] // COVERAGE_CELLS)

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Where every capture shows the robot, (n, p g, g), patch by patch; False is a missing region."""
        return self._read("covered")[: len(self)].astype(bool)

    def points(self, number: int) -> NDArray[np.float32]:
        """Return the cloud of one frame, captured or rejected, (M, 3) m; a pending one has no points."""
        return self._more_of(self._row("offsets", number))

    def _more_of(self, offsets: NDArray[np.int64] | None) -> NDArray[np.float32]:
        assert offsets is not None
        return np.asarray(self._read("points", slice(*offsets.tolist())), dtype=np.float32)

    def captured_points(self, number: int) -> NDArray[np.float32]:
        """Return the cloud of one frame that may be learned from, (M, 3) m, compared with its checksum once more.

        Raises:
            SoftformError: If frame `number` is not captured, or is lost.
        """
        if not 0 <= number < self._array("status").shape[0] or self._row("status", number) != FrameStatus.CAPTURED:
            raise SoftformError(f"Frame {number} of {self.path} is not captured.", "See `captured` for those that are.")
        self._is_whole.pop(number, None)
        if reason := self.lost.get(number):
            raise SoftformError(f"Frame {number} of {self.path} is lost: {reason}.", "Collect again, or do without it.")
        return self.points(number)

    def same_cloud(self, points: NDArray[np.floating]) -> int | None:
        """Return the kept frame that holds just these points, or None: two scans never agree in every digit."""
        offsets, kept = self._read("offsets"), self._kept
        sought = np.asarray(points, dtype=np.float32)
        for number in kept[offsets[kept, 1] - offsets[kept, 0] == len(sought)].tolist():
            if np.array_equal(self.points(number), sought):
                return int(number)
        return None

    def write_captured(
        self,
        number: int,
        points: NDArray[np.floating],
        measured: NDArray[np.float64],
        captured_at: float,
        quality: FrameQuality,
    ) -> None:
        """Keep a frame; it is rejected, with its points, if its quality has a fault.

        Args:
            number: Number of the frame.
            points: (M, 3) m in the robot's frame.
            measured: (k,) at the capture.
            captured_at: Capture time, s since the epoch.
            quality: Result of `assess_cloud`.

        Raises:
            SoftformError: If values are not finite, or the disk is full or cannot be written.
        """
        if not (np.isfinite(points).all() and np.isfinite(measured).all() and np.isfinite(captured_at)):
            raise SoftformError(f"Frame {number} holds values that are not finite.", "Drop them before it is stored.")
        with disk_errors(self.path, FRAMES):
            first = int(self._read("offsets")[self._kept].max(initial=0))
            kept, cloud = self._array("points"), np.asarray(points, dtype=np.float32)
            kept.resize((first + len(cloud), 3))
            kept[first:] = cloud
            values: dict[str, ArrayLike] = {
                "offsets": (first, first + len(points)),
                "measured": measured,
                "captured_at": captured_at,
                "coverage": quality.coverage,
                "covered": quality.covered,
                "outliers": quality.outliers,
            }
            self._write(number, values, quality.fault, cloud)


open_frames = FrameStore.open


def create_frames(path: Path, robot: Robot, actuations: NDArray[np.float64], provenance: dict[str, Any]) -> FrameStore:
    """Make a store of pending frames, n of (n, k); it appears at `path` complete or not at all.

    Raises:
        SoftformError: If the disk is full or cannot be written.
    """
    with new_group(path, FRAMES, robot) as group:
        group.attrs.update(provenance)
        fill_new_group(group, _rows(robot.degrees_of_freedom, len(robot.surfaces)), actuations)
        group.create_array("points", shape=(0, 3), dtype="f4", chunks=(_POINTS_PER_CHUNK, 3), fill_value=np.nan)
    return open_frames(path, robot, writable=True)


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
