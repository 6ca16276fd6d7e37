"""Scans from a watched folder: what a scanner's software exports, and what the virtual rig's scanner writes alike."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from softform_core.errors import SoftformError, reason_of
from softform_core.periodic import PeriodicThread
from softform_core.shapes.ply_header import read_ply_header
from softform_core.shapes.read import EXTENSIONS, Unit, read_shape
from softform_core.shapes.shape import Shape
from softform_ros.capture_time import check_capture_time

_Signature = tuple[int, int, int]

REST_WITHOUT_END = 2.0
"""Time that a file without an end mark must stay unchanged before it is read, s."""
_WITHOUT_END = (".obj", ".xyz")

AT_ONCE = 8
"""Exports read in one poll; others wait for the next, so that thousands are never held at once."""


@dataclass(frozen=True)
class ScanFile:
    """One export that was read, in the scanner's frame, m, and when the surface was seen, s since the epoch."""

    path: Path
    shape: Shape
    captured_at: float


@dataclass(frozen=True)
class RejectedFile:
    """One export that cannot be used, and why."""

    path: Path
    reason: str


@dataclass
class FolderSource:
    """Finds new exports in a folder by polling, which works on network drives too.

    A file is taken once its size and time have not changed between two polls, so a file still being written is waited
    for; one that was read too early after all is rejected, and read again when it changes. Types that do not tell where
    they end could be read too early unnoticed: they must rest for longer. A name that is used again counts as a new
    export. Hidden files, folders and other file types are passed over.

    Args:
        folder: The folder; it need not exist yet.
        unit: Unit of the exports' coordinates.
        clock: Steady time, s.
    """

    folder: Path
    unit: Unit
    clock: Callable[[], float] = time.monotonic
    _taken: dict[str, _Signature] = field(default_factory=dict)
    _growing: dict[str, tuple[_Signature, float]] = field(default_factory=dict)  # and since when it rests

    def skip_existing(self) -> int:
        """Count all that lies in the folder now as old; returns how many files that are."""
        self._taken = self._signatures()
        self._growing = {}
        return len(self._taken)

    def poll(self) -> list[ScanFile | RejectedFile]:
        """Read the oldest exports that are new and complete, `AT_ONCE` at most; never raises for a bad file.

        Raises:
            SoftformError: If the folder cannot be read.
        """
        now, time_now = self._signatures(), self.clock()
        resting = {name: held for name, held in self._growing.items() if now.get(name) == held[0]}
        complete = [name for name, (_, since) in resting.items() if time_now - since >= _rest_needed(name)]
        complete = sorted(complete, key=lambda name: (now[name][0], name))[:AT_ONCE]
        if now:  # where all is gone it may be the drive, which comes back: that does not make its exports new
            self._taken = {name: signature for name, signature in self._taken.items() if name in now}
        self._taken |= {name: now[name] for name in complete}
        self._growing = {
            name: resting.get(name, (signature, time_now))
            for name, signature in now.items()
            if self._taken.get(name) != signature
        }
        read = (self._read(self.folder / name, now[name]) for name in complete)
        return [result for result in read if result is not None]

    def _signatures(self) -> dict[str, _Signature]:
        """Return the time, size and inode of every export in the folder."""
        signatures: dict[str, _Signature] = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or os.path.splitext(entry.name)[1].lower() not in EXTENSIONS:
                        continue
                    try:
                        signature = _signature(entry.stat())
                    except OSError:  # gone since it was listed, or a link to nothing
                        continue
                    if not entry.is_dir():
                        signatures[entry.name] = signature
        except OSError as error:
            raise SoftformError(
                f"The scan folder {self.folder} cannot be read: {error.strerror or error}.",
                "Check the path and that the drive is mounted.",
            ) from error
        return signatures

    def _read(self, path: Path, signature: _Signature) -> ScanFile | RejectedFile | None:
        try:
            shape = read_shape(path, self.unit)
            captured_at = capture_time(path)
            if _signature(path.stat()) != signature:
                return None  # another export took its name meanwhile: this shape has not that time; it comes next
        except SoftformError as error:
            # Scanner software may delete its exports: a file that is gone by now is no fault.
            return RejectedFile(path, str(error)) if os.path.exists(path) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            return RejectedFile(path, f"{path} cannot be read: {error.strerror or error}.")
        return ScanFile(path, shape, captured_at)


def _signature(status: os.stat_result) -> _Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _rest_needed(name: str) -> float:
    """Return how long a file must stay unchanged before it is read, s; at least two polls see it so."""
    return REST_WITHOUT_END if os.path.splitext(name)[1].lower() in _WITHOUT_END else 0.0


def capture_time(path: Path) -> float:
    """Return when the surface in an export was seen, s since the epoch.

    A PLY file may say so in a header comment `captured_at <seconds>`; otherwise it is the file's time of change, which
    is later by the time that the scanner's software took.

    Raises:
        SoftformError: If the comment is not a time, or lies in the future.
        OSError: If the file cannot be read.
    """
    captured_at = path.stat().st_mtime
    stated = read_ply_header(path).comment("captured_at") if path.suffix.lower() == ".ply" else None
    if stated is not None:
        try:
            captured_at = float(stated)
        except ValueError as error:
            raise SoftformError(
                f"The capture time '{stated}' in {path} is not a number.", "Write seconds since the epoch."
            ) from error
    check_capture_time(captured_at, str(path))
    return captured_at


class FolderWatcher(PeriodicThread):
    """Polls a `FolderSource` until stopped.

    Args:
        source: Folder in which exports appear.
        period: Time between two polls, s.
        on_scan: Called in the thread for each export that was read; a `SoftformError` from it rejects the export.
        on_rejected: Called in the thread for each export that cannot be used.
        on_folder: Called in the thread after each poll, with what is wrong with the folder, or "" if it can be read.
    """

    def __init__(
        self,
        source: FolderSource,
        period: float,
        on_scan: Callable[[ScanFile], None],
        on_rejected: Callable[[RejectedFile], None],
        on_folder: Callable[[str], None],
    ) -> None:
        super().__init__("folder watcher", period, self._look)
        self._source = source
        self._on_scan, self._on_rejected, self._on_folder = on_scan, on_rejected, on_folder

    def _look(self) -> None:
        try:
            found = self._source.poll()
            self._on_folder("")
        except Exception as error:  # nothing that a drive does may end the watch
            self._on_folder(reason_of(error))
            return
        for result in found:
            if self._stop.is_set():
                return
            if isinstance(result, RejectedFile):
                self._on_rejected(result)
                continue
            try:
                self._on_scan(result)
            except Exception as error:  # one bad file must not end the watch
                self._on_rejected(RejectedFile(result.path, reason_of(error)))
