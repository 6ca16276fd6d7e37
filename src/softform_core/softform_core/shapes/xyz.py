"""Clouds from text files of coordinates (.xyz): a point a row, as scanners' software and CloudCompare write them."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError

_COMMENTS = ("#", "//")
_HEADER_ROWS = 2


def read_xyz(path: str | Path) -> NDArray[np.float64]:
    """Read the points of a text file: x, y, z, then columns that are not used, such as normals or colours.

    Columns are separated by blanks, commas or semicolons. Before the points may stand comments (`#` or `//`), column
    names, and the number of points, which must then be true.

    Returns:
        (N, 3), in the file's unit.

    Raises:
        SoftformError: If rows are not all of as many numbers, three at least, if rows are missing, or if the last one
            has no line end: it may be cut within a number.
        OSError: If the file cannot be read.
    """
    content = Path(path).read_bytes()
    if not content.endswith((b"\n", b"\r")):
        raise SoftformError(f"The last row of {path} has no line end.", "The file is truncated: export it again.")
    # Bytes know two line ends; text would take other control characters, which only damage puts there, for more.
    lines = (line.decode("ascii", errors="replace").strip() for line in content.splitlines())
    rows = [line for line in lines if line and not line.startswith(_COMMENTS)]
    header, promised = _header(rows)
    del rows[:header]
    if promised is not None and promised != len(rows):
        raise SoftformError(
            f"{path} has {len(rows)} rows of the {promised} that it promises.",
            "The file is truncated: export it again.",
        )
    if not rows:
        raise SoftformError(f"{path} holds no points.", "Export it again.")
    separator = next((mark for mark in ";," if mark in rows[0]), None)
    try:
        table = np.loadtxt(rows, dtype=np.float64, delimiter=separator, ndmin=2)
    except ValueError as error:
        raise SoftformError(
            f"{path} is damaged or truncated ({error}).", "Export rows of x y z, with points in the numbers."
        ) from error
    if table.shape[1] < 3:
        raise SoftformError(f"The rows of {path} have {table.shape[1]} numbers.", "Export rows of x y z.")
    return table[:, :3]


def _header(rows: list[str]) -> tuple[int, int | None]:
    """Rows before the first point, and the number of points that they promise, if they do."""
    promised = None
    for index, row in enumerate(rows[:_HEADER_ROWS]):
        words = row.replace(",", " ").replace(";", " ").split()
        if len(words) == 1 and words[0].isdecimal() and promised is None:
            promised = int(words[0])
        elif any(map(_is_number, words)):
            return index, promised
    return min(len(rows), _HEADER_ROWS), promised


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
