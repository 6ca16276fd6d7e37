"""State from which a long run continues: results in one file, one a line; arrays, each in a file of its own."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.errors import SoftformError
from softform_core.files import write_atomically


class Ledger:
    """One JSON line for each finished run, in a file that is made if missing: settings, their digest, and result.

    Raises:
        SoftformError: If it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there; a line that was cut off by a crash does not count."""
        self._path = path
        self._results: dict[str, dict[str, Any]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if text and not text.endswith("\n"):
                with path.open("a", encoding="utf-8") as file:
                    file.write("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SoftformError(f"{path} cannot be used: {error}.", "Give another --output.") from error
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                self._results[entry["digest"]] = entry["result"]
            except (ValueError, KeyError, TypeError):
                continue

    def find(self, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the result of a run of just these settings, or None."""
        return self._results.get(digest_of(settings))

    def kept(self, settings: Mapping[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the result of a run of just these settings: as it was kept, or measured now and kept."""
        result = self.find(settings)
        if result is None:
            result = measure()
            self.keep(settings, result)
        return result

    def keep(self, settings: Mapping[str, Any], result: dict[str, Any]) -> None:
        """Write a result down; it is on disk when this returns.

        Raises:
            SoftformError: If it cannot be written.
        """
        digest = digest_of(settings)
        line = json.dumps({"digest": digest, "settings": settings, "result": result}, default=str)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SoftformError(f"{self._path} cannot be written: {error.strerror}.", "Free disk space.") from error
        self._results[digest] = result


def kept_arrays(folder: Path, settings: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return arrays, numbers and texts by name, of just these settings: from a file, or made and written there.

    Returns:
        What was made, as arrays; numbers and texts are arrays of no dimension.

    Raises:
        SoftformError: If the file cannot be written.
    """
    path = folder / f"{digest_of(settings)}.npz"
    if not path.is_file():
        content = io.BytesIO()
        np.savez_compressed(content, **dict(make()))
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def digest_of(settings: Mapping[str, Any]) -> str:
    """Return the same for the same settings, in whatever order."""
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
