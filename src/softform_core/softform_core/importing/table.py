"""Tables with named columns, for each command that takes one: text as programs and people write it, NPZ and Parquet."""

import csv
import hashlib
import importlib
import io
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.shapes.text import check_last_row, stated_length

_SHOWN = 5
_LONGEST = 60  # characters of a line in a message
_SAMPLED = 300  # lines, the last ones, by which the delimiter is found
_DELIMITERS = ";\t| ,"  # of those that part the most numbers the first; a blank is any white space
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*|,\d+)?|\.\d+)([eEdD][+-]?\d+)?", re.ASCII)
_MISSING = re.compile(r"[+-]?(nan(\(\w*\))?|inf(inity)?|1\.#\w+)|#?n/?a|null|none|-*", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_UNIT = re.compile(
    r"[\[(]?([hkM]?Pa|m?bar|psi|[mk]?N|[mcµμuk]?m|in|m?s|min|h|Hz|rad|deg|°|°?[CK]|m?V|m?A|counts?|%|-|1)?[\])]?"
)
_OF_UNIT = re.compile(r"[\[(/]\s*([^\s\[\](/]+?)\s*[\])]?$|(?<=[\s_,])((?:[hk]?Pa|m?bar|psi|[mc]m))$", re.IGNORECASE)
_LENGTH_OR_PRESSURE = re.compile(r"[hkM]?Pa|m?bar|psi|[mcµμu]?m|in|inch", re.IGNORECASE)
_RULE = re.compile(r"[\s|:+-]*-{3}[\s|:+-]*")
_BETWEEN_BARS = re.compile(r"^\s*\|(.*)\|(?=\s*$)")
_TIME = re.compile(r"[mµμu]?s|min|h")
_Row = tuple[int, list[str]]  # line, as an editor counts, and cells


@dataclass(frozen=True)
class Table:
    """A table in memory."""

    path: Path
    sha256: str  # of the file's bytes
    columns: dict[str, NDArray]  # by name: numbers or text
    lines: NDArray[np.int64]  # (n,) line of the file in which each row begins, as an editor counts; of arrays the index
    delimiter: str = ""  # between the cells of text; none in arrays
    units: Mapping[str, str] = field(default_factory=dict)  # of columns, by name, where a line below the header says so
    length_unit: str = ""  # of all lengths, where a line above the header says so

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.lines)

    def column(self, name: str) -> NDArray:
        """A column (n,) by its name, or by one that differs in case, blanks or the coding of accents alone.

        Raises:
            SoftformError: If there is no such column, or it has another length than the others.
        """
        alike = [own for own in self.columns if _plain(own) == _plain(name)]
        if name not in self.columns and len(alike) != 1:
            names = ", ".join(f'"{own}"' if "," in own else own for own in self.columns)
            raise SoftformError(
                f"{self.path} has no column '{name}'. Its columns are {names}.",
                "Name those that you mean by the options; a name with a comma in it stands in double quotes.",
            )
        found = self.columns[name if name in self.columns else alike[0]]
        if len(found) != len(self):
            raise SoftformError(
                f"'{name}' of {self.path} has {len(found)} values, other columns {len(self)}.", "Give one value a row."
            )
        return found

    def unit(self, name: str) -> str:
        """The unit of a column (`column`) that the header tells, of times where a line of units does; "" if none."""
        if name in self.units and (
            _TIME.fullmatch(self.units[name]) or _LENGTH_OR_PRESSURE.fullmatch(self.units[name])
        ):
            return self.units[name]
        found = match[1] or match[2] if (match := _OF_UNIT.search(name)) else ""
        return found if _LENGTH_OR_PRESSURE.fullmatch(found) else ""

    def text(self, name: str) -> list[str]:
        """A column (`column`) as text."""
        cells = (cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell) for cell in self.column(name))
        return [cell.strip() for cell in cells]

    def numbers(self, names: Sequence[str], *, gaps: bool = False) -> Array:
        """Columns (`column`) side by side, (n, k); a cell that is empty or says that it has no value is NaN.

        With `gaps` any other text is, too.

        Raises:
            SoftformError: If a column is missing, a cell is not a number, or its decimal mark cannot be told.
        """
        found = np.full((len(self), len(names)), np.nan)
        marks: dict[str, list[str]] = {",": [], ".": []}
        for place, name in enumerate(names):
            column = self.column(name)
            if column.dtype.kind in "fiub":
                found[:, place] = column
                continue
            for row, cell in enumerate(self.text(name)):
                if _NUMBER.fullmatch(cell):
                    found[row, place] = float(cell.replace(",", ".").lower().replace("d", "e"))
                    if mark := next((mark for mark in marks if mark in cell), None):
                        marks[mark].append(cell)
                elif not (gaps or _MISSING.fullmatch(cell)):
                    raise SoftformError(
                        f"Column '{name}' of {self.path} holds text: '{cell}' in {self.rows(np.array([row]))}.",
                        "Name a column of numbers, or correct the cell; digits are not grouped.",
                    )
        commas = marks[","]
        if commas and (marks["."] or self.delimiter != ";" and all(_THOUSANDS.fullmatch(cell) for cell in commas)):
            raise SoftformError(
                f"What the comma in '{commas[0]}' of {self.path} means cannot be told"
                + (f": there is '{marks['.'][0]}', too." if marks["."] else "."),
                "Write numbers without grouped digits, with one decimal mark in all columns.",
            )
        return found

    def files(self, name: str) -> list[Path]:
        r"""Files that a column names, absolute or from the table's folder, by / or \.

        A name that differs from a file's in case or the coding of accents alone is that file's, if no other is like it.

        Raises:
            SoftformError: If there is no such column, or a file is missing.
        """

        @cache
        def listed(folder: Path) -> dict[str, list[Path]]:
            content: dict[str, list[Path]] = {}
            for each in folder.iterdir() if folder.is_dir() else ():
                content.setdefault(_plain(each.name), []).append(each)
            return content

        def found(given: str) -> Path:
            file = self.path.parent / given
            if file.is_file():
                return file
            place = self.path.parent
            for part in Path(given.replace("\\", "/")).parts:
                alike = listed(place).get(_plain(part), [])
                place = alike[0] if len(alike) == 1 and not (place / part).exists() else place / part
            return place if place.is_file() else file

        files = [found(given) for given in self.text(name)]
        absent = np.flatnonzero([not file.is_file() for file in files])
        if len(absent):
            raise SoftformError(
                f"{files[absent[0]]} does not exist: {self.rows(absent)} of {self.path}.",
                f"Name files in column '{name}' from the folder of the table, or by absolute paths of this computer.",
            )
        return files

    def rows(self, which: NDArray[np.integer]) -> str:
        """Rows by the numbers that a user sees, the first few of them: lines of text, indices of arrays."""
        word = "line" if self.delimiter else "row"
        named = ", ".join(str(self.lines[row]) for row in which[:_SHOWN])
        return (
            f"{word} {named}" if len(which) == 1 else f"{len(which)} {word}s ({named}{', …' * (len(which) > _SHOWN)})"
        )


def read_table(path: Path, unnamed: Sequence[str] = (), *, gaps: bool = False) -> Table:
    """Read a table: text, or an .npz with one array a column, or a .parquet.

    Text is in UTF-8, UTF-16 with its mark, or the code page of Western Windows. Commas, semicolons, tabs, bars or
    blanks part its columns; numbers may have decimal commas where that is no question. The last line above the numbers
    that names as many columns is the header, be it a comment (# or %) or not; a line of units below it, other lines
    above it, comments and the header once more are passed over. Where it names a column twice, lines above it tell them
    apart.

    An array (n, k) named `p` of an NPZ is the columns `p1 … pk`; a structured one has its fields. Parquet is read by
    pyarrow, which Softform does not install itself.

    Args:
        path: The file.
        unnamed: Names for the columns of a table without header, which is refused without them.
        gaps: Keep lines with too few or too many cells as rows without values, but for a last one that was cut off.

    Raises:
        SoftformError: If the file is missing, damaged or empty, has no header or ragged lines, or pyarrow is missing.
    """
    kind = path.suffix.lower()
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe would be waited for, a device read on
            raise SoftformError(f"{path} is not a regular file.", "Write the table into a file first.")
        content = path.read_bytes()
        if kind == ".npz":
            columns = _arrays(path)
        elif kind in (".parquet", ".pq"):
            columns = _parquet(content)
        else:
            return _text_table(path, content, unnamed, gaps)
    except SoftformError:
        raise
    except OSError as error:
        raise SoftformError(f"{path} cannot be read: {error.strerror or error}.", "Check the path.") from error
    except Exception as error:  # zip files and pickles fail in many ways
        raise SoftformError(
            f"{path} is damaged or no such table ({error}).", "Export it again: text, or arrays of numbers."
        ) from error
    lengths = Counter(len(column) for column in columns.values())
    length = max(lengths, key=lambda each: (lengths[each], each), default=0)
    if not length:
        raise SoftformError(f"{path} has no rows.", "Give one value a row in each column.")
    return Table(path, hashlib.sha256(content).hexdigest(), columns, np.arange(length))


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _is_value(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell) or _MISSING.fullmatch(cell))


def _text_table(path: Path, content: bytes, unnamed: Sequence[str], gaps: bool) -> Table:
    text = _decoded(path, content)
    lines = list(io.StringIO(text, newline=""))
    given = re.fullmatch(r"sep=(.)\s*", lines[0], re.IGNORECASE) if lines else None
    delimiter = given[1] if given else max(_DELIMITERS, key=lambda each: _numbers_between(lines[-_SAMPLED:], each))
    if delimiter == "|":  # of a page, each row is between bars, and a rule is below the header
        lines = ["\n" if _RULE.fullmatch(line) else _BETWEEN_BARS.sub(r"\1", line) for line in lines]
    is_remark = [line.lstrip()[:1] in ("#", "%") or (given is not None and not at) for at, line in enumerate(lines)]
    remarks = [(at, line.strip(" \t#%")) for at, line in enumerate(lines, 1) if is_remark[at - 1]]
    try:
        rows = _rows(["\n" if remark else line for remark, line in zip(is_remark, lines, strict=True)], delimiter, gaps)
    except csv.Error as error:
        raise SoftformError(f"{path} is no table: {error}.", "See whether each quote is closed.") from error

    numeric = [cells for _, cells in rows if any(_NUMBER.fullmatch(cell) for cell in cells)]
    width = Counter(map(len, numeric)).most_common(1)[0][0] if numeric else 0
    numeric = [cells for cells in numeric if len(cells) == width]
    usual = [2 * sum(_is_value(cell) for cell in column) > len(numeric) for column in zip(*numeric, strict=True)]

    def is_data(cells: list[str]) -> bool:
        values = [cell for cell, number in zip(cells, usual, strict=False) if number]
        return len(cells) == width and all(map(_is_value, values)) and any(cell.strip("-") for cell in values)

    first = next((at for at, (_, cells) in enumerate(rows) if is_data(cells)), None)
    if first is None:
        began = f"; the first is '{lines[0].strip()[:_LONGEST]}'" if lines else ""
        raise SoftformError(
            f"{path} holds no row of numbers, in {len(lines)} lines{began}.", "Name the columns in its first line."
        )
    start = rows[first][0]
    told = [(at, cells) for at, line in remarks if at < start for _, cells in _rows([line], delimiter, True)]
    above = told + rows[:first]
    if delimiter == " ":  # between numbers; names may have single blanks within
        wide = [re.split(r"\s{2,}", lines[at - 1].strip(" \t\r\n#%")) for at, _ in above]
        above = [(at, apart if len(apart) == width else cells) for (at, cells), apart in zip(above, wide, strict=True)]
    names, header, units = _header(path, above, numeric, unnamed, start)

    kept: list[_Row] = []
    for line, cells in rows[first:]:
        if header and cells[: len(header)] == header and not gaps:
            continue
        if len(cells) < len(names) or any(cells[len(names) :]):
            if not gaps:
                raise SoftformError(
                    f"Line {line} of {path} has {len(cells)} cells, the header {len(names)}.",
                    "Correct the line; numbers with decimal commas need semicolons or tabs between the columns.",
                )
            cells = [""] * len(names)
        kept.append((line, cells))
    if gaps and len(rows[-1][1]) < len(names):
        kept.pop()
    elif not lines[-1].endswith(("\n", "\r")):
        check_last_row([cells[len(names) - 1].encode() for _, cells in kept], f"The last row of {path}")
    columns = {name: np.array([cells[at] for _, cells in kept], dtype=object) for at, name in enumerate(names) if name}
    places = np.array([line for line, _ in kept])
    of_columns = dict(zip(names, units, strict=False))
    length_unit = stated_length("".join(lines[: start - 1]).encode()) or ""
    return Table(path, hashlib.sha256(content).hexdigest(), columns, places, delimiter, of_columns, length_unit)


def _decoded(path: Path, content: bytes) -> str:
    if content.startswith(b"version https://git-lfs"):
        raise SoftformError(f"{path} is a pointer of Git LFS, not the table itself.", "Run: git lfs pull")
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    if "\0" in text:
        raise SoftformError(
            f"{path} is no text.", "Give a table as text (a spreadsheet saved as CSV), as .npz or as .parquet."
        )
    return text


def _rows(lines: Sequence[str], delimiter: str, apart: bool) -> list[_Row]:
    """Lines as cells, but for blank ones; `apart`: none goes on in the next, whatever its quotes."""
    if delimiter == " ":
        lines = [" ".join(line.split()) + "\n" for line in lines]
    rows, line = [], 1
    for each in [[line] for line in lines] if apart else [lines]:
        reader = csv.reader(each, delimiter=delimiter, skipinitialspace=True, strict=not apart)
        before = line
        for cells in reader:
            if any(cells) or (apart and len(cells) > 1):
                rows.append((line, [cell.strip() for cell in cells]))
            line = before + reader.line_num
    return rows


def _numbers_between(lines: Sequence[str], delimiter: str) -> int:
    return sum(bool(_NUMBER.fullmatch(cell)) for _, cells in _rows(lines, delimiter, True) for cell in cells)


def _header(
    path: Path, above: Sequence[_Row], numeric: Sequence[list[str]], unnamed: Sequence[str], start: int
) -> tuple[list[str], list[str], list[str]]:
    """Names of the columns of rows with numbers, told apart by the lines above, the cells of the header, and units."""
    width = len(numeric[0])
    used = max(at for row in numeric for at, cell in enumerate(row, 1) if cell)
    fitting = [cells[:width] for _, cells in above if used <= len(cells) and not any(cells[width:])]
    labels = [next(filter(None, cells), "") for cells in fitting]
    if "Name" in labels:  # of Motive, which writes below it what tells rigid bodies and markers apart for programs
        fitting = [cells for cells, label in zip(fitting, labels, strict=True) if label not in ("ID", "Parent")]
        fitting = [["" if cell in ("Type", "Name") else cell for cell in cells] for cells in fitting]
    are_units = len(fitting) > 1 and all(_UNIT.fullmatch(cell) for cell in fitting[-1])
    units = [cell.strip("[]()") for cell in fitting.pop()] if are_units else []
    if not fitting:
        markers = next((cells[1:] for _, cells in above if cells[0] == "MARKER_NAMES"), [])  # of Qualisys
        if markers and width == 3 * len(markers):
            return [f"{marker} {axis}" for marker in markers for axis in "XYZ"], [], []
        if above and (len(above[-1][1]) > 1 or not unnamed):
            line, cells = above[-1]
            raise SoftformError(
                f"The header in line {line} of {path} names {len(cells)} columns, line {start} has {width} cells.",
                "Correct the header; numbers with decimal commas need semicolons or tabs between the columns.",
            )
        if not unnamed or width > len(unnamed):
            raise SoftformError(
                f"{path} has no header above its {width} columns.", "Name the columns in its first line."
            )
        return list(unnamed[:width]), [], []
    header = names = fitting.pop()
    numbers = [cell for cell in names if _NUMBER.fullmatch(cell)]
    if (
        fitting
        and 2 * len(numbers) > len(names)
        and len({*fitting[-1]}) == width
        and not any(map(_is_value, fitting[-1]))
    ):
        raise SoftformError(
            f"The row of {path} that begins with {', '.join(names)[:_LONGEST]} holds text where others have numbers.",
            "Correct it; write numbers without grouped digits.",
        )
    while (twice := [name for name in names if name and names.count(name) > 1]) and fitting:
        upper = fitting.pop()
        for at in range(1, len(upper)):
            upper[at] = upper[at] or upper[at - 1]  # a cell that was merged with others stands in the first
        names = [f"{over} {name}".strip() for over, name in zip_longest(upper, names, fillvalue="")]
    while names and not names[-1]:
        names = names[:-1]
    if twice:
        raise SoftformError(f"The header of {path} names '{twice[0]}' twice.", "Give each column its own name.")
    return names, header, units


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
    columns: dict[str, NDArray] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name, array in arrays.items():
            if array.dtype.names:
                columns |= {field: array[field].ravel() for field in array.dtype.names}
            elif array.ndim == 1 or array.ndim == 2 and array.shape[1] == 1:
                columns[name] = array.ravel()
            elif array.ndim == 2:
                columns |= {f"{name}{place + 1}": column for place, column in enumerate(array.T)}
    return columns
