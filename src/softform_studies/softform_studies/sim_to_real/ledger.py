"""Results of finished trainings, kept on disk as they come, so that an interrupted study goes on where it stopped."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softform_core.errors import SoftformError


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
        """The result of a run of just these settings, or None."""
        return self._results.get(digest_of(settings))

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


def digest_of(settings: Mapping[str, Any]) -> str:
    """The same for the same settings, in whatever order."""
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
