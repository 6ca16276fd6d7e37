"""Clouds from text files of coordinates (.xyz): a point a row, as scanners' software and CloudCompare write them."""

import re

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.shapes.text import Parsed, check_last_row, is_number, plain_text, respelled, shown

_COMMENT = re.compile(rb"(?:#|//|%)+\s*")
_UNIT = re.compile(rb"\[.*?\]|\(.*?\)")
_AXIS = re.compile(
    rb"""["']?(?:(?:points?|pos(?:ition)?|coord(?:inate)?s?)[\s_:.]*([xyz012])
    |([xyz])(?:[_ /]?[mc]?m|[\s_-]*[ck]oord\w*)?)["']?""",
    re.IGNORECASE | re.VERBOSE,
)
_UNITS = re.compile(rb"[\"']?(?:[mc]?m|-)[\"']?", re.IGNORECASE)
_DECIMAL_COMMAS = re.compile(rb"[-+]?\d*,?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_PADDED = re.compile(rb"(?:^|,)\s*[-+]?0\d+\s*(?:,|$)", re.MULTILINE)
_QUOTED = re.compile(rb"\"([^\"\n]*)\"")
_COMMAS_TWICE = (
    "Commas seem to be decimal marks and to separate columns, too.",
    "Separate columns by semicolons or blanks.",
)
_BY_NAME = "Name the columns in a row before the points, such as: id x y z."
_MOST_UNNAMED = 16
_MOST_IN_FEW_ROWS = 10
_SAMPLED = 1000
_EVEN = 0.5
"""Steps of a clock that was rounded differ by less than this part of one."""


def read_xyz(content: bytes) -> Parsed:
    """Read the points of a text file: the columns x, y and z by their names, or the first three.

    Columns are separated by blanks, tabs, semicolons or commas; decimal marks may be commas where these do not
    separate. Before the points may stand comments (`#`, `//`, `%`), titles, names of columns, and the number of points,
    which must then be true. Columns that are not used, such as normals or colours, may follow.

    Raises:
        SoftformError: If rows are not all of as many numbers, three at least, if rows are missing, if names or numbers
            tell that the columns are others, or if the last row is cut.
    """
    text = _QUOTED.sub(_unquoted, plain_text(content))
    lines = [stripped for line in text.split(b"\n") if (stripped := line.strip().rstrip(b" \t,;"))]
    first = next((place for place, line in enumerate(lines) if _is_row(line)), None)
    if first is None:
        raise SoftformError(
            f"No row has numbers alone; the first one is '{shown(lines[0] if lines else b'')}'.",
            "Export rows of x y z.",
        )
    rows = [row for row in lines[first:] if not _COMMENT.match(row)]
    separator = _separator(rows[0])
    columns, promised = _columns(lines[:first], separator, len(_cells(rows[0], separator)))
    if promised is not None and promised < len(rows):
        raise SoftformError(
            f"It has {len(rows)} rows; above them it promises {promised}.",
            "Export each cloud into a file of its own, as rows of x y z.",
        )
    if promised not in (None, len(rows)):
        raise SoftformError(
            f"It has {len(rows)} rows of the {promised} that it promises.", "The file is truncated: export it again."
        )
    if not text.endswith(b"\n"):
        check_last_row([row.rpartition(b",")[2] for row in rows] if separator == b"," else rows)
    if separator == b"," and columns is None and b"." not in text and _PADDED.search(text):
        raise SoftformError(*_COMMAS_TWICE)
    delimiter = None if separator is None else separator.decode()
    try:
        try:
            table = np.loadtxt(rows, delimiter=delimiter, comments=None, ndmin=2)
        except ValueError:
            rows = respelled(b"\n".join(rows), separator == b",").split(b"\n")
            table = np.loadtxt(rows, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        raise SoftformError(
            f"Its rows are not all of as many numbers: {str(error).split(';')[0]}.", "Export rows of x y z."
        ) from error
    if table.shape[1] < 3:
        raise SoftformError(f"Its rows have {table.shape[1]} numbers.", "Export rows of x y z.")
    if columns is None:
        _check_first_three(rows, table, separator)
    return table[:, columns or [0, 1, 2]], [], []


def _unquoted(cell: re.Match[bytes]) -> bytes:
    """A number without its quotes, within which a comma can only be a decimal mark; other cells as they are."""
    number = respelled(cell[1].strip())
    return number if is_number(number) else cell[0]


def _check_first_three(rows: list[bytes], table: Array, separator: bytes | None) -> None:
    """See that the first three columns of a table (n, k) without names may be x, y and z.

    Raises:
        SoftformError: If they count rows or time, are numbers of something, or are whole numbers and decimals in turn.
    """
    width = table.shape[1]
    if width > _MOST_UNNAMED or width >= max(len(table), _MOST_IN_FEW_ROWS):
        raise SoftformError(f"Its {len(table)} rows have {width} numbers, which are not named.", _BY_NAME)
    behind = table[:, 1::2]  # the decimals, if every second comma is a mark
    if separator == b"," and width in (6, 8) and np.isin(behind, np.arange(10.0)).all():
        raise SoftformError(*_COMMAS_TWICE)
    if width < 4:
        return
    steps = np.diff(table[:, 0])
    if abs(np.sign(steps).sum()) == len(steps) and (
        (steps % 1.0 == 0.0).all() or np.ptp(steps) < _EVEN * abs(np.median(steps))
    ):
        raise SoftformError("Its first column counts the rows, or time.", _BY_NAME)
    is_held = np.ptp(table[:, :4], axis=0) == 0.0
    if is_held[0] and not is_held[1:].any():
        raise SoftformError("Its first column has one number in all rows, three others have not.", _BY_NAME)
    are_normals = width > 5 and np.allclose(np.linalg.norm(table[:, 3:6], axis=1), 1.0, atol=0.01)
    if are_normals or (table[:, 0] % 1.0).any():
        return
    written = [[cell.lstrip(b"+-").isdigit() for cell in _cells(row, separator)] for row in rows[:_SAMPLED]]
    are_whole = np.asarray(np.all(written, axis=0))
    if are_whole[0] and (~are_whole).sum() > 2:
        raise SoftformError("Its first column has whole numbers, three others have not.", _BY_NAME)


def _separator(row: bytes) -> bytes | None:
    """What separates the columns, None for blanks; commas do not if each number between blanks has one at most."""
    words = row.split()
    if b"," in row and len(words) > 2 and all(_DECIMAL_COMMAS.fullmatch(word) for word in words):
        return b"\t" if b"\t" in row else None
    return next((mark for mark in (b";", b"\t", b",") if mark in row), None)


def _cells(row: bytes, separator: bytes | None) -> list[bytes]:
    return [cell.strip() for cell in row.split(separator)]


def _is_row(line: bytes) -> bool:
    """Whether a line is a row of numbers; a single one is their count."""
    separator = _separator(line)
    cells = _cells(respelled(line, separator == b","), separator)
    return len(cells) > 1 and all(map(is_number, cells))


def _columns(head: list[bytes], separator: bytes | None, width: int) -> tuple[list[int] | None, int | None]:
    """Which of the columns are x, y and z, None if that is not said, and how many rows are promised, if that is."""
    promised, columns = None, None
    for line in head:
        title = _UNIT.sub(b"", _COMMENT.sub(b"", line, count=1))
        names = [cell.strip(b" ,;") for cell in _cells(title, separator)]
        if len(names) != width:
            names = re.split(rb"[\s,;]+", b" ".join(names).strip())
        axes = [match[1] or match[2] if (match := _AXIS.fullmatch(name)) else b"" for name in names]
        axes = [axis.lower().translate(bytes.maketrans(b"012", b"xyz")) for axis in axes]
        if all(axes.count(axis) == 1 for axis in (b"x", b"y", b"z")):
            columns = [axes.index(axis) for axis in (b"x", b"y", b"z")]
            if len(names) != width and columns != [0, 1, 2]:
                raise SoftformError(f"Its header names {len(names)} of {width} columns.", _BY_NAME)
            columns = columns if len(names) == width else None
        elif len(names) == 1 and names[0].isdigit():
            promised = int(names[0])
        elif columns and all(map(_UNITS.fullmatch, names)):
            continue  # they are read with the rest of what states a unit (`read`)
        elif 2 * sum(map(is_number, names)) > len(names):
            raise SoftformError(f"The row '{shown(line)}' is damaged.", "Correct it, or export the file again.")
        elif len(names) == width and not _COMMENT.match(line):
            raise SoftformError(f"None of its columns is named x, y or z: '{shown(line)}'.", _BY_NAME)
    return columns, promised
