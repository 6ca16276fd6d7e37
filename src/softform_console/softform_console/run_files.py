"""Files below the folder of runs that a page may have: reports, recordings and logs of jobs."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from softform_console.job_messages import Recording, RunFile
from softform_core.errors import SoftformError

SHOWN = {".html": "text/html; charset=utf-8", ".png": "image/png", ".txt": "text/plain; charset=utf-8"}
"""Kinds that a browser shows; the others it saves."""

_SAVED = {".pdf", ".csv", ".json", ".mcap", ".db3", ".yaml"}
_BAGS = (".mcap", ".db3")
_DEEPEST = 5
_MOST_RECORDINGS = 100
_MOST_LOOKED_AT = 20_000
_SECONDS = re.compile(r"^  duration:\n    nanoseconds: (\d{1,19})$", re.MULTILINE)
_MESSAGES = re.compile(r"^  message_count: (\d{1,15})$", re.MULTILINE)
_MOST_READ = 2**20


class RunFiles:
    """The folder of runs, as far as pages may see it.

    Args:
        runs: The folder.
    """

    def __init__(self, runs: Path) -> None:
        self._runs = runs

    def file(self, path: str) -> Path | None:
        """Return a file by its path in the folder, or None where a page may not have it or it is not there."""
        found = self._resolved(path)
        if found is None or not found.is_file() or found.suffix not in SHOWN.keys() | _SAVED:
            return None
        return found

    def recording(self, path: str) -> str:
        """Return the folder of a recording by its path in the folder of runs.

        Raises:
            SoftformError: If it is not there.
        """
        found = self._resolved(path)
        if found is None or not found.is_dir() or not _bag_files(found):
            raise SoftformError("This recording is not there.", "Look at the list.")
        return str(found)

    def recordings(self) -> list[Recording]:
        """Return the newest recordings, the newest first."""
        found = sorted(self._bags(), key=lambda bag: bag[1], reverse=True)[:_MOST_RECORDINGS]
        return [self._recording(folder, recorded) for folder, recorded in found]

    def _resolved(self, path: str) -> Path | None:
        try:
            found = (self._runs / path).resolve(strict=True)
            inside = found.relative_to(self._runs.resolve())
        except (OSError, ValueError, RuntimeError):  # not there, not inside, or no path
            return None
        return None if not path or any(part.startswith(".") for part in inside.parts) else found

    def _bags(self) -> Iterator[tuple[Path, float]]:
        for here, folders, names in islice(os.walk(self._runs), _MOST_LOOKED_AT):
            folder = Path(here)
            if any(name.endswith(_BAGS) for name in names):
                folders.clear()
                yield folder, folder.stat().st_mtime
            elif len(folder.relative_to(self._runs).parts) >= _DEEPEST:
                folders.clear()
            folders[:] = [name for name in folders if not (name.startswith(".") or name.endswith(".zarr"))]

    def _recording(self, folder: Path, recorded: float) -> Recording:
        told = ""
        try:
            with (folder / "metadata.yaml").open(encoding="utf-8", errors="replace") as metadata:
                told = metadata.read(_MOST_READ)
        except OSError:  # it was not closed
            pass
        seconds, messages = _SECONDS.search(told), _MESSAGES.search(told)
        return Recording(
            path=str(folder.relative_to(self._runs)),
            recorded=recorded,
            seconds=1e-9 * int(seconds[1]) if seconds else None,
            messages=int(messages[1]) if messages else None,
            files=[
                RunFile(path=str(file.relative_to(self._runs)), size=file.stat().st_size)
                for file in _bag_files(folder)
                if self.file(str(file.relative_to(self._runs))) is not None
            ],
        )


def _bag_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in _BAGS and file.is_file())
