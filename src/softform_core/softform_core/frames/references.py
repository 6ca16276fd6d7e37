"""Captures of one and the same pose over the hours of a data set: whether robot, markers or cameras have drifted.

A group `references` in the data set: `positions` (r, M, 3) m, NaN where a marker is missing; `measured` (r, k);
`frames_done` (r,), frames that were captured or rejected before; `captured_at` (r,) s since the epoch, written last: a
capture that was cut short has none, and does not count. Attribute `actuation`, (k,), is the pose.
"""

from pathlib import Path

import numpy as np
import zarr
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.stores.zarr_stores import StoreKind, disk_errors, sync

_GROUP = "references"


def reference_actuation(robot: Robot) -> Array:
    """Return the pose that is captured again and again: every actuation at the middle of its range, (k,)."""
    return np.asarray(0.5 * (robot.actuation_min + robot.actuation_max))


def marker_drift(first: Array, now: Array) -> Array:
    """Return distances of markers (M, 3) m from where they were first, (M,) m; NaN where one is missing in either."""
    return np.asarray(np.linalg.norm(now - first, axis=1))


class ReferenceCaptures:
    """The reference captures in the Zarr group of one data set; `kind` names it in messages."""

    def __init__(self, path: Path, group: zarr.Group, kind: StoreKind) -> None:
        self._path, self._data_set, self._kind = path, group, kind

    def __len__(self) -> int:
        return len(self.captured_at)

    @property
    def captured_at(self) -> Array:
        """Times of capture, (r,) s since the epoch."""
        moments = self._read("captured_at", (0,))
        return moments[np.isfinite(moments)]

    @property
    def actuation(self) -> Array:
        """The pose, (k,).

        Raises:
            KeyError: If there is no capture of it.
        """
        return np.asarray(self._data_set[_GROUP].attrs["actuation"], dtype=np.float64)

    @property
    def positions(self) -> Array:
        """Markers, (r, M, 3) m."""
        return self._whole("positions", (0, 0, 3))

    @property
    def measured(self) -> Array:
        """Measured actuation, (r, k)."""
        return self._whole("measured", (0, 0))

    @property
    def frames_done(self) -> Array:
        """Frames captured or rejected before each, (r,)."""
        return self._whole("frames_done", (0,))

    def drift(self) -> Array:
        """Distances of all markers from their places in the first capture, (r, M) m; NaN where one is missing."""
        positions = self.positions
        return np.asarray([marker_drift(positions[0], now) for now in positions]).reshape(positions.shape[:2])

    def add(self, actuation: Array, positions: Array, measured: Array, captured_at: float, frames_done: int) -> None:
        """Keep one capture: pose (k,), markers (M, 3) m, measured (k,), s since the epoch, frames before it.

        Raises:
            SoftformError: If the pose is another one than the first, or the disk is full or cannot be written.
        """
        with disk_errors(self._path, self._kind):
            group = self._data_set.require_group(_GROUP)
            kept = group.attrs.setdefault("actuation", actuation.tolist())
            if not np.array_equal(kept, actuation):
                raise SoftformError(
                    f"The reference pose of {self._path} is another one.", "Collect into another --output."
                )
            row = len(self)
            _write_row(group, "positions", row, positions)
            _write_row(group, "measured", row, measured)
            _write_row(group, "frames_done", row, frames_done)
            sync(self._data_set)
            _write_row(group, "captured_at", row, captured_at)
            sync(self._data_set)

    def _read(self, name: str, empty: tuple[int, ...]) -> Array:
        array = self._data_set.get(f"{_GROUP}/{name}")
        return np.asarray(array[...]) if isinstance(array, zarr.Array) else np.empty(empty)

    def _whole(self, name: str, empty: tuple[int, ...]) -> Array:
        return self._read(name, empty)[: len(self)]


def _write_row(group: zarr.Group, name: str, row: int, given: ArrayLike) -> None:
    """Write a row of an array, which is made or grown if need be."""
    value, array = np.asarray(given, dtype=np.float64), group.get(name)
    if not isinstance(array, zarr.Array):
        array = group.create_array(
            name, shape=(row + 1, *value.shape), dtype="f8", chunks=(64, *value.shape), fill_value=np.nan
        )
    if array.shape[0] <= row:
        array.resize((row + 1, *value.shape))
    array[row] = value
