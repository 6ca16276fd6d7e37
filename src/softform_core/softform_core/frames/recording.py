"""Contents that every data set of captured frames shares: one Zarr v3 group, SI units.

Arrays with a row a frame: `actuation` (n, k) as commanded, `measured` (n, k) at the capture, `captured_at` (n,) s
since the epoch, `coverage` (n,) share of the robot that is seen, `status` (n,), `checksum` (n,) CRC-32 of all that is
kept of the frame. Attributes: schema, provenance, `sessions` (one entry each time collecting began) and `rejections`
(frame -> reason). A frame's status is written when all else is on disk, so whatever stops a run, a power cut included,
leaves a store in which every frame that is marked as captured is there. One that differs from its checksum all the same
is lost: it is named, no longer counts as captured, and can be captured again.
"""

import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.stores.actuation_store import ActuationStore
from softform_core.stores.past import REMEMBERED, pasts
from softform_core.stores.zarr_stores import Rows, disk_errors, sync

ATTRIBUTES = ("seed", "source", "via", "git_revision", "created", "sessions", "rejections")
_SEALS = {"status": "u1", "checksum": "u4"}


class FrameStatus(IntEnum):
    """State of a frame in its data set."""

    PENDING = 0
    CAPTURED = 1
    REJECTED = 2


def common_rows(inputs: int) -> Rows:
    """Return rows that frames of every kind have, but for `actuation`."""
    each = {"measured": ((inputs,), "f8"), "captured_at": ((), "f8"), "coverage": ((), "f8")}
    return each | {name: ((), kind) for name, kind in _SEALS.items()}


def fill_new_group(group: zarr.Group, rows: Rows, actuations: NDArray[np.float64]) -> None:
    """Give a new store its pending frames, n of (n, k), and all other arrays."""
    group.attrs.update({"sessions": [], "rejections": {}})
    frames, inputs = actuations.shape
    actuation = group.create_array(
        "actuation", shape=actuations.shape, dtype="f8", chunks=(4096, inputs), fill_value=np.nan
    )
    actuation[:] = actuations
    for name, (row, kind) in rows.items():
        fill = np.nan if kind.startswith("f") else 0  # a chunk that is lost must not read as numbers
        group.create_array(name, shape=(frames, *row), dtype=kind, chunks=(256, *row), fill_value=fill)


class Recording(ActuationStore):
    """An open data set of frames; subclasses add what was captured.

    What writes raises a `SoftformError` if the disk is full or cannot be written.
    """

    def __init__(self, path: Path, group: zarr.Group) -> None:
        super().__init__(path, group)
        self._is_whole: dict[int, bool] = {}  # of the captured frames that were compared with their checksum

    def _rows(self) -> Rows:
        """Return arrays with a row a frame, but for `actuation`."""
        raise NotImplementedError

    def _more_of(self, offsets: NDArray[np.int64] | None) -> NDArray | None:
        """Return further entries that are kept of a frame, if there are any."""
        return None

    @property
    def sessions(self) -> list[dict[str, str]]:
        """One entry each time collecting began or went on: when, by which command, where its bag is."""
        sessions = self._group.attrs["sessions"]
        assert isinstance(sessions, list)
        return [{str(key): str(value) for key, value in one.items()} for one in sessions if isinstance(one, dict)]

    @property
    def rejections(self) -> dict[int, str]:
        """Reason of every rejected frame."""
        rejected = np.flatnonzero(self.status == FrameStatus.REJECTED).tolist()  # a reason is written before the status
        return {number: reason for number, reason in self._reasons("rejections").items() if number in rejected}

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
        """Frames that have yet to be captured, or captured again, for they are lost."""
        return np.flatnonzero(self._seen_status() == FrameStatus.PENDING)

    @property
    def captured(self) -> NDArray[np.int64]:
        """Frames to learn from: those that are lost are not among them."""
        return np.flatnonzero(self._seen_status() == FrameStatus.CAPTURED)

    @property
    def lost(self) -> dict[int, str]:
        """Frames that were captured, but differ from their checksum: number and reason; compared once each.

        Raises:
            SoftformError: If an array of all frames cannot be read.
        """
        reason = "what is on disk is not what was stored (a power cut, or a damaged disk)"
        return dict.fromkeys(np.flatnonzero(self._seen_status() != self.status).tolist(), reason)

    def _seen_status(self) -> NDArray[np.uint8]:
        """Return the status of every frame, (n,); lost ones are pending."""
        status = self.status
        marked = np.flatnonzero(status == FrameStatus.CAPTURED).tolist()
        new = [number for number in marked if number not in self._is_whole]
        if new:
            rows = {name: self._read(name) for name in ("actuation", *self._rows())}
            for number in new:
                kept = {name: array[number] for name, array in rows.items()}
                try:
                    more = self._more_of(kept.get("offsets"))
                    found = _checksum(number, FrameStatus.CAPTURED, kept, more)
                except SoftformError:
                    found = None
                self._is_whole[number] = found == kept["checksum"]
        status[[number for number in marked if not self._is_whole[number]]] = FrameStatus.PENDING
        return status

    @property
    def _kept(self) -> NDArray[np.int64]:
        """Captured and rejected frames, but for those that are lost."""
        return np.flatnonzero(self._seen_status() != FrameStatus.PENDING)

    def pasts(self, rest: Array) -> Array | None:
        """Return the commands before each frame, (n, h, k), the oldest first, NaN if unknown; None if nothing is known.

        Collecting goes from one frame straight to the next, and begins at rest each time. Imported frames follow one
        another where the import was told so (`in_order`); what was before the first is then not known.

        Args:
            rest: (k,), the robot's.
        """
        if not self.sessions:  # imported frames: the times of files tell no order
            return pasts(self.actuation) if self.attributes.get("in_order") else None
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
        """Return times, s since the epoch, and actuations (k,) that were commanded between frames."""
        return []

    def begin_session(self, session: dict[str, str]) -> None:
        """Note that collecting begins or goes on.

        Raises:
            SoftformError: If the disk is full or cannot be written.
        """
        with disk_errors(self.path, self.kind):
            self._group.attrs["sessions"] = [*self.sessions, session]
            sync(self._group)

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
            sync(self._group)

    def _write(self, number: int, values: dict[str, ArrayLike], fault: str, more: NDArray | None = None) -> None:
        """Write one frame's rows, then its reason if it has a fault, and when they are on disk its status.

        Args:
            number: Number of the frame.
            values: Values of all its arrays but `actuation` and the one that seals it.
            fault: Reason why it is rejected; empty if it is not.
            more: Result of `_more_of`.
        """
        status = FrameStatus.REJECTED if fault else FrameStatus.CAPTURED
        arrays = {name: self._array(name) for name in values}
        rows = {name: np.asarray(value, dtype=arrays[name].dtype) for name, value in values.items()}
        for name, value in rows.items():
            arrays[name][number] = value
        rows["actuation"] = self._row("actuation", number)
        self._array("checksum")[number] = _checksum(number, status, rows, more)
        if fault:
            rejections = {str(key): reason for key, reason in self.rejections.items()}
            self._group.attrs["rejections"] = rejections | {str(number): fault}
        sync(self._group)
        self._array("status")[number] = status
        sync(self._group)
        self._is_whole[number] = True


def _checksum(number: int, status: FrameStatus, rows: Mapping[str, NDArray], more: NDArray | None) -> int:
    """Return the CRC-32 of all that is kept of a frame, but for its seal."""
    kept = [np.array([number, status]), *(rows[name] for name in sorted(rows.keys() - _SEALS.keys()))]
    found = 0
    for each in kept if more is None else [*kept, more]:
        found = zlib.crc32(np.ascontiguousarray(each).tobytes(), found)
    return found
