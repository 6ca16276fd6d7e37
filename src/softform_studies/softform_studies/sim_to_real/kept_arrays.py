"""Arrays that a long study goes on with, each result a file of its own."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.files import write_atomically


def write_arrays(path: Path, values: Mapping[str, Any]) -> None:
    """Write arrays, numbers and texts by their names as an .npz file.

    Raises:
        SoftformError: If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez_compressed(content, **dict(values))
    write_atomically(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, Any]:
    """Read what `write_arrays` has written; numbers and texts are arrays of no dimension."""
    with np.load(path, allow_pickle=False) as content:
        return {name: content[name] for name in content.files}
