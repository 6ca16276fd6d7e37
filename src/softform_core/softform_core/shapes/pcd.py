"""Clouds from PCD files, as the Point Cloud Library and ROS' tools write them."""

import codecs
import re
import struct
from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.shapes.text import Parsed, check_last_row, plain_text, respelled
from softform_core.shapes.validate import check_count

MAX_HEADER_BYTES = 1 << 16

_KEYS = ("VERSION", "FIELDS", "COLUMNS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA")
_LINE = re.compile(rb"(?:#[^\n]*|([A-Z]{1,9})([ \t][ \t!-~]{1,9000})|[ \t]*)\r?\n")
_AXES = ("x", "y", "z")
_SIZES = {"F": (4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}
_NOWHERE = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


@dataclass(frozen=True)
class _Header:
    """What a file says of itself.

    Attributes:
        points: Number of points.
        row: Type of a point in a binary body; x, y and z are fields of it, (1,) each.
        encoding: "ascii", "binary" or "binary_compressed".
        body_offset: Offset of the body in the file, bytes.
        notes: What of it is not used.
    """

    points: int
    row: np.dtype
    encoding: str
    body_offset: int
    notes: list[str]


def read_pcd(content: bytes) -> Parsed:
    """Read the points of a PCD file (ascii, binary or binary_compressed) with numbers of any type.

    Open3D reads doubles as zeros, or, by its other interface, only where x, y and z are of one type.

    Raises:
        SoftformError: If the header is not understood, or the body does not hold what it promises.
    """
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        header = _read_header(content[:MAX_HEADER_BYTES])
    except (KeyError, ValueError) as error:
        raise SoftformError(f"Its PCD header is not understood: {error}.", "Export it again.") from error
    check_count(header.points, "file")
    body, row = content[header.body_offset :], header.row
    try:
        if header.encoding == "ascii":
            columns = _ascii_columns(body, header)
        elif header.encoding == "binary":
            table = np.frombuffer(body, row, header.points)
            if body[table.nbytes :].strip(b" \r\n\0"):
                raise ValueError(f"{len(body)} bytes")
            columns = [table[axis][:, 0] for axis in _AXES]
        else:  # a field after the other, each of all points
            body = _unpacked(body, header.points * row.itemsize)
            assert row.fields is not None
            fields = [row.fields[axis] for axis in _AXES]
            columns = [np.frombuffer(body, kind.base, header.points, header.points * at) for kind, at, *_ in fields]
    except (ValueError, IndexError, struct.error) as error:
        raise SoftformError(
            f"It does not hold just the {header.points} points that its header promises.",
            "The file is truncated or damaged: export it again.",
        ) from error
    return np.stack(columns, axis=1).astype(np.float64), [], header.notes


def _read_header(start: bytes) -> _Header:
    """Read and check the header.

    Raises:
        KeyError: If a line is missing.
        ValueError: If a line is not understood, or contradicts another.
    """
    values: dict[str, list[str]] = {}
    offset = 0
    while "DATA" not in values:
        line = _LINE.match(start, offset)
        if line is None or (line[1] is not None and (line[1].decode() not in _KEYS or line[1].decode() in values)):
            raise ValueError(f"line {start[offset : offset + 40]!r}")
        offset = line.end()
        if line[1] is not None:
            values[line[1].decode()] = line[2].decode().split()
    # Up to version 0.5 fields were columns, and there was no width.
    values = {"FIELDS": values.get("COLUMNS", []), "WIDTH": values["POINTS"], "HEIGHT": ["1"]} | values
    fields = [name.lower() for name in values["FIELDS"]]
    counts = _integers(values.get("COUNT", ["1"] * len(fields)))
    row: list[tuple[str, str, tuple[int]]] = []
    if any(fields.count(axis) != 1 for axis in _AXES):
        raise ValueError(f"x, y and z must be fields, once each, of {', '.join(fields)}")
    for name, kind, size, count in zip(fields, values["TYPE"], _integers(values["SIZE"]), counts, strict=True):
        if size not in _SIZES.get(kind.upper(), ()) or not 0 < count < 1000 or (name in _AXES and count > 1):
            raise ValueError(f"field '{name}' is of an unknown type")
        row.append((name if name in _AXES else str(len(row)), f"<{kind.lower()}{size}", (count,)))
    (points,), (width,), (height,) = (_integers(values[key]) for key in ("POINTS", "WIDTH", "HEIGHT"))
    (encoding,) = (word.lower() for word in values["DATA"])
    if width * height != points:
        raise ValueError(f"{width} x {height} points of {points}")
    if encoding not in ("ascii", "binary", "binary_compressed"):
        raise ValueError(f"data '{encoding}'")
    is_moved = [float(word) for word in values.get("VIEWPOINT", [])] not in ([], _NOWHERE)
    notes = ["the scanner's own pose (VIEWPOINT) was not applied"] if is_moved else []
    return _Header(points, np.dtype(row), encoding, offset, notes)


def _integers(words: list[str]) -> list[int]:
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"numbers {words}")
    return [int(word) for word in words]


def _ascii_columns(body: bytes, header: _Header) -> list[Array]:
    """Columns x, y and z of an ascii body; a `ValueError` if it has not as many rows or numbers as the header says."""
    text = plain_text(body)
    rows = [row for row in text.split(b"\n") if row.strip()]
    if rows and not text.endswith(b"\n"):
        check_last_row(rows)
    try:
        table = np.loadtxt(rows, comments=None, ndmin=2)
    except ValueError:
        table = np.loadtxt([respelled(row) for row in rows], comments=None, ndmin=2)
    names = [name for name in header.row.names or () for _ in range(header.row[name].shape[0])]
    if table.shape != (header.points, len(names)):
        raise ValueError(f"{table.shape}")
    return [table[:, names.index(axis)] for axis in _AXES]


def _unpacked(body: bytes, size: int) -> bytes:
    """The `size` bytes that a body packed by LZF holds; a `ValueError` or `IndexError` if it does not."""
    length, unpacked = struct.unpack_from("<II", body)
    packed, out, at = body[8 : 8 + length], bytearray(), 0
    while at < len(packed) and len(out) <= size:
        control, at = packed[at], at + 1
        if control < 32:  # a run of bytes as they are
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        count = control >> 5  # a repetition of what came up to 8 KB before, which may reach into itself
        if count == 7:
            count, at = count + packed[at], at + 1
        back, at, count = 1 + ((control & 31) << 8) + packed[at], at + 1, count + 2
        if back > len(out):
            raise ValueError(f"{back} bytes before the start")
        again = bytes(out[-back:][:count])
        out += (again * (count // len(again) + 1))[:count]
    if len(packed) != length or not len(out) == unpacked == size:
        raise ValueError(f"{len(out)} bytes")
    return bytes(out)
