"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path

from softform_core.errors import SoftformError


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write `data` under a hidden temporary name (`.name.xxxx.part`) in the same folder, then rename it.

    Raises:
        SoftformError: If the file cannot be written; nothing is left behind and an older file stays as it was.
    """
    path = Path(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise SoftformError(
            f"{path} cannot be written: {error.strerror or error}.", "Check the folder, its permissions and free space."
        ) from error
