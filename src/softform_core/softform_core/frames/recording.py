"""What every data set of captured frames holds: one Zarr v3 group, SI units.

Arrays with a row a frame: `actuation` (n, k) as commanded, `measured` (n, k) at the capture, `captured_at` (n,) s
since the epoch, `coverage` (n,) share of the robot that is seen, `status` (n,). Attributes: schema, provenance,
`sessions` (one entry each time collecting began) and `rejections` (frame -> reason). A frame's status is written last,
so whatever stops a run leaves a store in which every frame that is marked as captured is there.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import ClassVar

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.play import REMEMBERED, pasts
from softform_core.stores.actuation_store import ActuationStore
from softform_core.stores.zarr_stores import Shapes, StoreKind, disk_errors

ATTRIBUTES = ("seed", "source", "via", "git_revision", "created", "sessions", "rejections")
_FILL = {"measured": np.nan, "captured_at": np.nan, "coverage": np.nan, "outliers": np.nan, "positions": np.nan}

Rows = dict[str, tuple[tuple[int, ...], str]]
"""Arrays with a row a frame: shape of one row, and type."""


class FrameStatus(IntEnum):
    """What has become of a frame."""

    PENDING = 0
    CAPTURED = 1
    REJECTED = 2


def common_rows(inputs: int) -> Rows:
    """Rows that frames of every kind have, but for `actuation`."""
    return {"measured": ((inputs,), "f8"), "captured_at": ((), "f8"), "coverage": ((), "f8"), "status": ((), "u1")}


def misshapen_rows(shapes: Shapes, rows: Rows) -> list[str]:
    """Name the arrays that are missing, or have other rows or fewer than `actuation`."""
    if len(shapes.get("actuation", ())) != 2:
        return ["actuation"]
    # An interrupted growth leaves these arrays longer than `actuation`, which counts.
    frames = shapes["actuation"][0]
    return [
        name
        for name, (row, _) in rows.items()
        if shapes.get(name, ())[1:] != row or shapes.get(name, (0,))[0] < frames or not shapes.get(name)
    ]


def fill_new_group(group: zarr.Group, rows: Rows, actuations: NDArray[np.float64]) -> None:
    """Give a new store its pending frames, n of (n, k), and all other arrays."""
    group.attrs.update({"sessions": [], "rejections": {}})
    frames, inputs = actuations.shape
    actuation = group.create_array(
        "actuation", shape=actuations.shape, dtype="f8", chunks=(4096, inputs), fill_value=np.nan
    )
    actuation[:] = actuations
    for name, (row, kind) in rows.items():
        group.create_array(name, shape=(frames, *row), dtype=kind, chunks=(256, *row), fill_value=_FILL.get(name, 0))


class Recording(ActuationStore):
    """An open data set of frames; subclasses add what was captured.

    What writes raises a `SoftformError` if the disk is full or cannot be written.
    """

    kind: ClassVar[StoreKind]

    def _rows(self) -> Rows:
        """Arrays with a row a frame, but for `actuation`."""
        raise NotImplementedError

    @property
    def sessions(self) -> list[dict[str, str]]:
        """One entry each time collecting began or went on: when, by which command, where its bag is."""
        sessions = self._group.attrs["sessions"]
        assert isinstance(sessions, list)
        return [{str(key): str(value) for key, value in one.items()} for one in sessions if isinstance(one, dict)]

    @property
    def rejections(self) -> dict[int, str]:
        """Reason of every rejected frame."""
        return self._reasons("rejections")

    @property
    def measured(self) -> NDArray[np.float64]:
        """Actuation measured at every capture, (n, k), NaN without one."""
        return self._read("measured")[: len(self)]

    @property
    def captured_at(self) -> NDArray[np.float64]:
        """Time of every capture, (n,) s since the epoch, NaN without one."""
        return self._read("captured_at")[: len(self)]

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Share of the robot, or of its markers, that every capture shows, (n,), NaN without one."""
        return self._read("coverage")[: len(self)]

    @property
    def pending(self) -> NDArray[np.int64]:
        """Frames that have yet to be captured."""
        return np.flatnonzero(self.status == FrameStatus.PENDING)

    @property
    def captured(self) -> NDArray[np.int64]:
        """Frames to learn from."""
        return np.flatnonzero(self.status == FrameStatus.CAPTURED)

    def pasts(self, rest: Array) -> Array | None:
        """What was commanded before each frame, (n, h, k), the oldest first; None if that is not known.

        Collecting goes from one frame straight to the next, and begins at rest each time.

        Args:
            rest: (k,), the robot's.
        """
        if not self.sessions:  # imported frames: the times of files tell no order
            return None
        began = [datetime.fromisoformat(session["began"]).timestamp() for session in self.sessions]
        frames = list(zip(self.captured_at, self.actuation, range(len(self)), strict=True))
        commands = [(moment, rest, None) for moment in began] + self._other_commands(rest) + frames
        commands = sorted((each for each in commands if np.isfinite(each[0])), key=lambda each: each[0])
        found = np.tile(rest, (len(self), REMEMBERED, 1))
        before = pasts(np.array([command for _, command, _ in commands]), rest)
        for past, (_, _, number) in zip(before, commands, strict=True):
            if number is not None:
                found[number] = past
        return found

    def _other_commands(self, rest: Array) -> list[tuple[float, Array, int | None]]:
        """Times, s since the epoch, and actuations (k,) that were commanded between frames."""
        return []

    def begin_session(self, session: dict[str, str]) -> None:
        """Note that collecting begins or goes on.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        with disk_errors(self.path, self.kind):
            self._group.attrs["sessions"] = [*self.sessions, session]

    def extend(self, actuations: NDArray[np.float64]) -> None:
        """Grow to the frames of `actuations`, (m, k), which must begin with those that the store has.

        Raises:
            SoftformError: If it does not.
        """
        before = len(self)
        shared = min(before, len(actuations))
        if not np.array_equal(self.actuation[:shared], actuations[:shared]):
            raise SoftformError(
                f"{self.path} was begun with other actuations.", "Give another --output, or the seed it was begun with."
            )
        if len(actuations) > before:
            with disk_errors(self.path, self.kind):
                self._append(actuations[before:], self._rows())

    def take_back(self, rejected: Sequence[int]) -> None:
        """Make the last rejected frames pending again: what was wrong was not theirs.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        with disk_errors(self.path, self.kind):
            for number in rejected:
                self._array("status")[number] = FrameStatus.PENDING
            kept = {str(key): reason for key, reason in self.rejections.items() if key not in rejected}
            self._group.attrs["rejections"] = kept

    def _write(self, number: int, values: dict[str, ArrayLike], fault: str) -> None:
        """Write one frame's rows, then its reason if it has a fault, and its status last."""
        for name, value in values.items():
            self._array(name)[number] = np.asarray(value)
        if fault:
            rejections = {str(key): reason for key, reason in self.rejections.items()}
            self._group.attrs["rejections"] = rejections | {str(number): fault}
        self._array("status")[number] = FrameStatus.REJECTED if fault else FrameStatus.CAPTURED
