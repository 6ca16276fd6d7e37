"""Tables with named columns: CSV, NPZ and Parquet."""

import csv
import hashlib
import importlib
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_SHOWN = 5


@dataclass(frozen=True)
class Table:
    """A table in memory."""

    path: Path
    sha256: str  # of the file's bytes
    columns: dict[str, NDArray]  # (n,) each, by name: numbers or text
    first_row: int  # number by which messages name the first row of data: 2 in a CSV file, below its header

    def text(self, name: str) -> list[str]:
        """A column as text.

        Raises:
            SoftformError: If there is no such column.
        """
        if name not in self.columns:
            raise SoftformError(
                f"{self.path} has no column '{name}'.",
                f"Its columns are {', '.join(self.columns)}: name those that you mean by the options.",
            )
        return [str(value).strip() for value in self.columns[name]]

    def numbers(self, names: Sequence[str]) -> Array:
        """Columns side by side, (n, k); an empty cell is NaN.

        Raises:
            SoftformError: If a column is missing or a cell is not a number.
        """
        found = []
        for name in names:
            cells = self.text(name)
            try:
                found.append(np.array([float(cell or "nan") for cell in cells]))
            except ValueError as error:
                raise SoftformError(
                    f"Column '{name}' of {self.path} holds text: {error}.",
                    "Name a column of numbers, with a point as decimal mark.",
                ) from error
        return np.stack(found, axis=1)

    def files(self, name: str) -> list[Path]:
        """Files that a column names, absolute or from the table's folder; a `SoftformError` if one is missing."""
        files = [self.path.parent / given for given in self.text(name)]
        absent = np.flatnonzero([not file.is_file() for file in files])
        if len(absent):
            raise SoftformError(
                f"{files[absent[0]]} does not exist: {self.rows(absent)} of {self.path}.",
                f"Name files in column '{name}' from the folder of the table, or by absolute paths.",
            )
        return files

    def rows(self, which: NDArray[np.integer]) -> str:
        """Rows by the numbers that a user sees, the first few of them."""
        named = ", ".join(str(self.first_row + int(row)) for row in which[:_SHOWN])
        return f"row {named}" if len(which) == 1 else f"{len(which)} rows ({named}{', …' * (len(which) > _SHOWN)})"


def read_table(path: Path) -> Table:
    """Read a .csv with a header (comma, semicolon or tab), an .npz with one array a column, or a .parquet.

    An array (n, k) named `p` of an NPZ is the columns `p1 … pk`. Parquet is read by pyarrow, which Softform does not
    install itself.

    Raises:
        SoftformError: If the file is missing, damaged, empty or of another type, or pyarrow is missing.
    """
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv", ".txt", ".npz", ".parquet", ".pq"):
        raise SoftformError(
            f"{path} is not of a type that is read.", "Give a .csv with a header, an .npz or a .parquet."
        )
    try:
        content = path.read_bytes()
        if kind == ".npz":
            columns = _arrays(path)
        elif kind in (".parquet", ".pq"):
            columns = _parquet(content)
        else:
            columns = _cells(content.decode("utf-8-sig"))
    except SoftformError:
        raise
    except OSError as error:
        raise SoftformError(f"{path} cannot be read: {error.strerror or error}.", "Check the path.") from error
    except Exception as error:  # zip files and pickles fail in many ways
        raise SoftformError(
            f"{path} is damaged or no such table ({error}).", "Export it again: UTF-8 text, or arrays of numbers."
        ) from error
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise SoftformError(f"The columns of {path} have {sorted(lengths)} rows.", "Give one value a row in each.")
    return Table(path, hashlib.sha256(content).hexdigest(), columns, 2 if kind in (".csv", ".tsv", ".txt") else 0)


def _cells(text: str) -> dict[str, NDArray]:
    lines = text.splitlines()
    delimiter = max(",;\t", key=lines[0].count) if lines else ","
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    if len(set(header)) != len(header):
        raise SoftformError(f"The header names a column twice: {', '.join(header)}.", "Give each its own name.")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise SoftformError(f"Row {number} has {len(row)} cells, the header {len(header)}.", "Correct the row.")
    return {name: np.array([row[place] for row in rows[1:]]) for place, name in enumerate(header)}


def _parquet(content: bytes) -> dict[str, NDArray]:
    """Columns of numbers and text; what is null is an empty cell."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise SoftformError(
            "Parquet is read by pyarrow, which is not installed.",
            f"Install it: {sys.executable} -m pip install pyarrow; or export the table as CSV.",
        ) from error
    table = parquet.read_table(io.BytesIO(content))
    cells = {name: table.column(name).to_pylist() for name in table.column_names}
    return {name: np.array(["" if cell is None else cell for cell in column]) for name, column in cells.items()}


def _arrays(path: Path) -> dict[str, NDArray]:
    columns = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name, array in arrays.items():
            if array.ndim == 1:
                columns[name] = array
            elif array.ndim == 2:
                columns |= {f"{name}{place + 1}": column for place, column in enumerate(array.T)}
    return columns
