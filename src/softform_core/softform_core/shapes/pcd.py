"""Clouds from PCD files, as the Point Cloud Library and ROS' tools write them."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.shapes.validate import check_count

MAX_HEADER_BYTES = 1 << 16

_KEYS = ("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA")
_LINE = re.compile(rb"(?:#[^\n]{0,999}|([A-Z]{1,9})([ \t][ \t!-~]{1,900}))\r?\n")


@dataclass(frozen=True)
class _Header:
    """What a file says of itself.

    Attributes:
        points: Number of points.
        row_bytes: Bytes of a point in a binary body.
        columns: Columns of x, y and z in an ascii body.
        width: Number of all columns there.
        encoding: "ascii", "binary" or "binary_compressed".
        body_offset: Offset of the body in the file, bytes.
    """

    points: int
    row_bytes: int
    columns: tuple[int, ...]
    width: int
    encoding: str
    body_offset: int


def read_pcd(path: str | Path) -> NDArray[np.float64]:
    """Read the points of a PCD file (ascii, binary or binary_compressed); NaN marks what was not measured.

    Returns:
        (N, 3), in the file's unit, without the points that were not measured.

    Raises:
        SoftformError: If the header is not understood, or the body does not hold what it promises.
        OSError: If the file cannot be read.
    """
    content = Path(path).read_bytes()
    try:
        header = _read_header(content[:MAX_HEADER_BYTES])
    except (KeyError, ValueError) as error:
        raise SoftformError(f"The PCD header of {path} is not understood: {error}.", "Export it again.") from error
    check_count(header.points, f"file {path}")
    body = content[header.body_offset :]
    points = _ascii_points(body, header) if header.encoding == "ascii" else _binary_points(path, body, header)
    if len(points) != header.points:
        raise SoftformError(
            f"{path} does not hold the {header.points} points that its header promises.",
            "The file is truncated or damaged: export it again.",
        )
    return points[~np.isnan(points).any(axis=1)]


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
    fields, kinds, sizes = values["FIELDS"], values["TYPE"], _integers(values["SIZE"])
    counts = _integers(values.get("COUNT", ["1"] * len(fields)))
    rows = list(zip(fields, kinds, sizes, counts, strict=True))
    if any(kind not in "FIU" or size not in (1, 2, 4, 8) or not 0 < count < 1000 for _, kind, size, count in rows):
        raise ValueError("a field is of an unknown type")
    if any(
        (axis, "F", 4, 1) not in rows and (axis, "F", 8, 1) not in rows or fields.count(axis) != 1 for axis in "xyz"
    ):
        raise ValueError("x, y and z must be floating-point numbers")
    (points,), (width,), (height,) = (_integers(values[key]) for key in ("POINTS", "WIDTH", "HEIGHT"))
    (encoding,) = values["DATA"]
    if width * height != points or encoding not in ("ascii", "binary", "binary_compressed"):
        raise ValueError(f"{width} x {height} points of {points}, {encoding}")
    columns = tuple(sum(counts[: fields.index(axis)]) for axis in "xyz")
    row_bytes = sum(size * count for size, count in zip(sizes, counts, strict=True))
    return _Header(points, row_bytes, columns, sum(counts), encoding, offset)


def _integers(words: list[str]) -> list[int]:
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"numbers {words}")
    return [int(word) for word in words]


def _ascii_points(body: bytes, header: _Header) -> NDArray[np.float64]:
    """Points of an ascii body; none if it is cut off or holds anything but numbers (Open3D takes that for zeros)."""
    rows = body.decode("ascii", errors="replace").split("\n")
    if rows.pop() or not rows:
        return np.empty((0, 3))
    try:
        table = np.loadtxt(rows, dtype=np.float64, ndmin=2)
    except ValueError:
        return np.empty((0, 3))
    return table[:, header.columns] if table.shape[1] == header.width else np.empty((0, 3))


def _binary_points(path: str | Path, body: bytes, header: _Header) -> NDArray[np.float64]:
    """Points of a binary body; none if it is cut off: Open3D would read beyond its end."""
    import open3d  # here, as it takes a second, and other files do not need it

    size = header.points * header.row_bytes
    if header.encoding == "binary_compressed":
        packed, unpacked = np.frombuffer(body[:8].ljust(8, b"\0"), "<u4").tolist()
        whole = unpacked == size and len(body) >= 8 + packed
    else:
        whole = len(body) >= size
    if not whole:
        return np.empty((0, 3))
    with open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error):  # else it prints warnings
        return np.asarray(open3d.io.read_point_cloud(Path(path), format="pcd").points)
