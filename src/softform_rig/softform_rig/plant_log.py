"""Recordings of a board's channel, from which its plant is identified.

A row has measured and target pressure (kPa), inflation and deflation command (counts, 0 … 4090 and 0 … −4090) and, in
most recordings, a rate, which is not used. There are no times: rows are taken as equally long. Real recordings have a
header, rows that are not numbers and a last line that was cut off; those rows keep their place in time.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError

FULL_SCALE = 4090.0  # counts
ROW_PERIOD = 0.0427  # s, of the recordings that the emulated plant comes from: 117 rows between changes every 5 s
_COLUMNS = (4, 5)
_FEWEST_ROWS = 50
_VALID_RANGE = 100.0  # kPa, beyond which the board takes no reading for true
_LARGEST_SHARE_LOST = 0.5
_SHOWN = 60  # characters of a line in a message
_HELP = (
    "Give measured and target pressure (kPa), inflation and deflation command (counts), perhaps a rate, in each row."
)


@dataclass(frozen=True)
class PlantLog:
    """One recording.

    Attributes:
        name: Name of the file.
        row_period: s a row.
        measured: (n,) kPa, NaN where there is no reading.
        targets: (n,) kPa.
        inflate: (n,) duty of the inflation pump, 0 … 1.
        deflate: (n,) duty of the deflation pump, 0 … 1.
        lost_rows: Number of rows that could not be read.
    """

    name: str
    row_period: float
    measured: Array
    targets: Array
    inflate: Array
    deflate: Array
    lost_rows: int = 0

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.targets)

    def part(self, first: int, last: int) -> "PlantLog":
        """Rows `first` … `last` − 1."""
        rows = slice(first, last)
        return PlantLog(
            self.name, self.row_period, self.measured[rows], self.targets[rows], self.inflate[rows], self.deflate[rows]
        )

    def steps(self) -> list[tuple[int, int]]:
        """Rows (first, past the last) of each target; of equal pieces where the target changes all the time."""
        changes = np.flatnonzero(np.diff(self.targets)) + 1
        if len(changes) > len(self) / _SHORTEST_STEP:
            changes = np.arange(_PIECE, len(self) - _PIECE // 2, _PIECE)
        edges = [0, *changes.tolist(), len(self)]
        return list(zip(edges[:-1], edges[1:], strict=True))


_SHORTEST_STEP = 5  # rows; where targets last shorter on average they are a trajectory, not steps
_PIECE = 100  # rows


def read_plant_log(path: Path, row_period: float = ROW_PERIOD) -> PlantLog:
    """Read a recording: CSV with commas, semicolons or blanks between columns, a row each `row_period` s.

    Raises:
        SoftformError: If the file cannot be read, has other columns, or too few rows that can be used.
    """
    if not row_period > 0.0:
        raise SoftformError(f"A row cannot last {row_period} s.", "Give a positive --row-period.")
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise SoftformError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    rows = [_numbers(line) for line in lines if line.strip()]
    while rows and np.isnan(rows[0]).all():
        rows.pop(0)  # a header, or remarks
    widths = [len(row) for row in rows]
    columns = max(_COLUMNS, key=widths.count)
    if rows and widths[-1] < columns:
        rows.pop()  # the recording was cut off in its last line
    whole = [row for row in rows if len(row) == columns]
    if len(whole) < max(_FEWEST_ROWS, (1.0 - _LARGEST_SHARE_LOST) * len(rows)):
        raise SoftformError(
            f"{path} has {len(whole)} rows of {columns} columns among {len(rows)}. {_what_is_there(lines)}", _HELP
        )
    table = np.array([row if len(row) == columns else [np.nan] * columns for row in rows])
    table[~np.isfinite(table)] = np.nan
    measured = np.where(np.abs(table[:, 0]) <= _VALID_RANGE, table[:, 0], np.nan)
    lost = int(np.isnan(measured).sum())
    if len(table) - lost < _FEWEST_ROWS or lost > _LARGEST_SHARE_LOST * len(table):
        raise SoftformError(f"{path} has a valid reading in {len(table) - lost} of {len(table)} rows only.", _HELP)
    if np.isnan(table[:, 1]).all():
        raise SoftformError(f"{path} has no target.", _HELP)
    targets, inflate, deflate = (_held(column) for column in table.T[1:4])
    duties = (np.clip(inflate / FULL_SCALE, 0.0, 1.0), np.clip(np.abs(deflate) / FULL_SCALE, 0.0, 1.0))
    log = PlantLog(path.name, row_period, measured, targets, *duties, lost)
    # The simulation begins at a reading: rows before the first have nothing to begin with.
    return replace(log.part(int(np.argmax(~np.isnan(measured))), len(log)), lost_rows=lost)


def _what_is_there(lines: list[str]) -> str:
    """What a file has that is no recording, for the one who gave it."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return "The file is empty."
    shown = filled[0].strip()
    if not shown.isprintable():
        return f"It is no text: it begins with {shown[:_SHOWN]!r}."
    widths = Counter(len(_numbers(line)) for line in filled)
    usual, count = widths.most_common(1)[0]
    words = sum(np.isnan(_numbers(line)).all() for line in filled)
    return (
        f"Of its {len(filled)} lines {count} have {usual} column{'s' * (usual > 1)}, {words} hold no number; the first "
        f"one is '{shown[:_SHOWN]}'."
    )


def _numbers(line: str) -> list[float]:
    return [_number(word) for word in re.split(r"\s*[,;]\s*|\s+", line.strip().rstrip(",;"))]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return np.nan


def _held(column: Array) -> Array:
    """The column with its gaps filled by the last value before them, and the first value before that."""
    known = np.flatnonzero(~np.isnan(column))
    if len(known) == 0:
        return np.zeros(len(column))
    return column[known[np.maximum(np.searchsorted(known, np.arange(len(column)), side="right") - 1, 0)]]
