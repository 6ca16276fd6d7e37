"""Reads shapes from PLY, OBJ, STL, PCD and XYZ files, in a stated unit.

Each format has one reader, of ours: it takes what programs write (`shapes.text`), and rejects a file whose content is
not as many numbers as the file itself says. Measured on some 90 files of kinds that public reports name, trimesh and
meshio read some of them wrongly without a word (negative indices, tabs, concave polygons, a vertex on two lines), and
Open3D ends the process on a damaged PLY file, rounds OBJ to single precision, and reads doubles of PCD as zeros.
"""

import codecs
import logging
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.shapes.obj import read_obj
from softform_core.shapes.pcd import read_pcd
from softform_core.shapes.ply import read_ply
from softform_core.shapes.polygons import triangulated
from softform_core.shapes.shape import Shape
from softform_core.shapes.stl import read_stl
from softform_core.shapes.text import Parsed
from softform_core.shapes.validate import check_count, check_points, measured, one_place
from softform_core.shapes.xyz import read_xyz
from softform_core.units import PER_METRE, AnyUnit

__all__ = ["EXTENSIONS", "UNITS", "ReadShape", "Unit", "read_file", "read_shape"]

Unit = Literal["m", "mm"]
UNITS: tuple[Unit, ...] = ("m", "mm")
"""Those that commands and messages offer."""

_READERS: dict[str, Callable[[bytes], Parsed]] = {
    ".ply": read_ply,
    ".obj": read_obj,
    ".stl": read_stl,
    ".pcd": read_pcd,
    ".xyz": read_xyz,
}
EXTENSIONS = tuple(_READERS)

MAX_FILE_BYTES = 256 * 1024**2
"""Larger files are rejected unread: an ASCII file of 2 million points with normals is about as large."""

LARGEST_COORDINATE = 1e9
"""In the file's unit; a larger number is a damaged one."""

_LONGEST_MARK = 100  # bytes, with what may stand before it
_MISTAKEN = (
    (b"version https://git-lfs", "a pointer of Git LFS", "Run: git lfs pull"),
    ((b"\x1f\x8b", b"PK", b"BZh", b"7z\xbc\xaf", b"\xfd7zXZ", b"Rar!"), "packed (gzip, ZIP or the like)", "Unpack it."),
    ((b"<!", b"<html", b"<?xml"), "a web page or XML", "Download the file itself, or export it again."),
)

_UNIT_START = 1000
"""Bytes of a file within which it says its unit: few formats have a place for it, so programs write it in comments."""

_UNIT_WORD = rb"mm|cm|m|ft|feet|inch(?:es)?|(?:\xc2?\xb5|u)m|(?:milli|centi|micro)?met(?:er|re)s?"
_UNIT_COMMENT = re.compile(
    rb"(?<![a-z])units?[ \t\"']*(?:[:=]|are|in)?[ \t\"']*(" + _UNIT_WORD + rb")\b", re.IGNORECASE
)
_UNIT_NAME = re.compile(rb"(?<![a-z])[xyz](?: ?(mm|cm)|[ \t]*[\[(/_][ \t]*(in|" + _UNIT_WORD + rb"))\b", re.IGNORECASE)
_UNIT_ROW = re.compile(rb"^[ \t#/%]*(" + _UNIT_WORD + rb")(?:[,;\s]+\1){2}\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class ReadShape:
    """What was read.

    Attributes:
        shape: The shape, m.
        notes: What of the file was left out or mended, a sentence each.
        not_measured: Number of points that were left out because they were not measured.
    """

    shape: Shape
    notes: tuple[str, ...]
    not_measured: int = 0

    def log_notes(self, path: str | Path) -> None:
        """Log what of the file was left out or mended."""
        for note in self.notes:
            logging.getLogger(__name__).warning("%s: %s", path, note)


def read_shape(path: str | Path, unit: AnyUnit = "m") -> Shape:
    """Read a shape as `read_file` does; what was left out or mended is logged."""
    read = read_file(path, unit)
    read.log_notes(path)
    return read.shape


def read_file(path: str | Path, unit: AnyUnit = "m") -> ReadShape:
    """Read a mesh or a cloud, in metres; a file without faces is a cloud.

    A cut-off OBJ file cannot be recognised, as the format has neither counts nor an end mark; the others are checked.
    What a file says of its unit at its start, as a comment (`unit mm`) or in names of columns (`x [mm]`), must agree
    with `unit`. Polygons are cut into triangles. Of a cloud points that were not measured are left out
    (`shapes.validate.measured` and `one_place`), of a mesh triangles that are one point, and vertices without a face.

    Args:
        path: A .ply, .obj, .stl, .pcd or .xyz file; a name may be written with composed or decomposed letters.
        unit: Unit of the file's coordinates.

    Raises:
        SoftformError: If the file is missing, too large, of another type, damaged or truncated, or if its points are
            unusable (`shapes.validate.check_points`).
    """
    if unit not in PER_METRE:
        raise SoftformError(f"The unit '{unit}' is not known.", f"State one of: {', '.join(UNITS)}.")
    path = on_disk(Path(path))
    _check_file(path)
    try:
        content = path.read_bytes()
        start = content[:_LONGEST_MARK].removeprefix(codecs.BOM_UTF8).lstrip()
        for mark, what, cure in _MISTAKEN:
            if start.startswith(mark):
                raise SoftformError(f"It is {what}, not the file itself.", cure)
        _check_unit(_stated_unit(content, path.suffix.lower() == ".xyz"), unit)
        with np.errstate(all="ignore"):  # a damaged number becomes NaN, which is told
            points, polygons, notes = _READERS[path.suffix.lower()](content)
            return _made(points, polygons, notes, unit)
    except SoftformError as error:
        raise SoftformError(f"{path} cannot be used: {error.message}", error.next_step) from error
    except OSError as error:
        raise SoftformError(f"{path} cannot be read: {error.strerror or error}.", "Check its permissions.") from error
    except MemoryError as error:
        raise SoftformError(f"{path} does not fit into memory.", "Reduce the shape first.") from error


def on_disk(path: Path) -> Path:
    """The file that lies on the disk under this name, whether its letters are composed or decomposed.

    Programs and disks do not agree on whether "ü" is one character or two.
    """
    if path.exists() or path == path.parent:
        return path
    name, folder = unicodedata.normalize("NFC", path.name), on_disk(path.parent)
    listed = folder.iterdir() if folder.is_dir() else ()
    return next((one for one in listed if unicodedata.normalize("NFC", one.name) == name), path)


def _made(points: Array, polygons: list[NDArray[np.integer]], notes: list[str], unit: AnyUnit) -> ReadShape:
    if len(points) == 0:
        raise SoftformError("It holds no shape.", "It is empty, damaged or truncated: export it again.")
    check_count(len(points), "file")
    faces = np.concatenate([np.empty((0, 3), np.int64), *(triangulated(points, one) for one in polygons)])
    is_point = np.ptp(faces, axis=1) == 0
    if is_point.any() and not is_point.all():
        notes, faces = [*notes, f"{is_point.sum()} triangles that are one point were left out"], faces[~is_point]
    if len(faces):
        used = np.zeros(len(points), dtype=bool)
        used[faces] = True
        if not used.all():
            notes = [*notes, f"{(~used).sum()} vertices that belong to no face were left out"]
            points, faces = points[used], (np.cumsum(used) - 1)[faces]
    given = len(points)
    if not len(faces):
        kept = measured(points)
        points, left_out = points[kept], given - int(kept.sum())
        if left_out:
            notes = [*notes, f"{left_out} points that were not measured (NaN, or all zeros) were left out"]
        if len(points) and (again := one_place(points)).any():
            notes = [*notes, f"{again.sum()} points at one place were left out, as if they were not measured"]
            points = points[~again]
    not_measured = given - len(points)
    largest = float(np.abs(points).max(initial=0.0))
    if largest > LARGEST_COORDINATE:
        raise SoftformError(f"A coordinate is {largest:.3g}.", "The file is damaged: export it again.")
    points = check_points(points, "file")
    points = points / PER_METRE[unit]
    shape = Shape.from_mesh(points, faces) if len(faces) else Shape.from_cloud(points)
    return ReadShape(shape, tuple(notes), not_measured)


def _stated_unit(content: bytes, is_table: bool) -> str | None:
    """The unit that the start of a file states, such as "mm", "cm" or "inch"; None if it states none.

    Args:
        content: The file.
        is_table: Whether names of columns, such as `x [mm]`, and a row of units below them may say it, too.
    """
    for pattern in (_UNIT_COMMENT, _UNIT_NAME, _UNIT_ROW) if is_table else (_UNIT_COMMENT,):
        if found := pattern.search(content, 0, _UNIT_START):
            word = next(filter(None, found.groups())).decode("latin-1").lower()
            words = {"milli": "mm", "centi": "cm", "meter": "m", "metre": "m", "inch": "in", "inche": "in"}
            return words.get(word[:5], word)
    return None


def _check_unit(stated: str | None, unit: AnyUnit) -> None:
    if stated not in (None, unit):
        says, asked = ("inches" if one == "in" else one for one in (stated, unit))
        raise SoftformError(
            f"It says that it is in {says}, but was to be read in {asked}.",
            f"State the unit {stated}." if stated in UNITS else f"Export it in {' or '.join(UNITS)}.",
        )


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise SoftformError(f"{path} is a folder.", f"Give a file of type {', '.join(EXTENSIONS)}.")
    if not path.exists():
        raise SoftformError(f"{path} does not exist.", "Check the path.")
    if path.suffix.lower() not in EXTENSIONS:
        raise SoftformError(
            f"{path} is not of a type that is read ('{path.suffix or 'no extension'}').",
            f"Export it as one of: {', '.join(EXTENSIONS)}.",
        )
    if not path.is_file():
        raise SoftformError(f"{path} is not a regular file.", f"Give a file of type {', '.join(EXTENSIONS)}.")
    size = path.stat().st_size
    if size == 0:
        raise SoftformError(f"{path} is empty.", "Export it again.")
    if size > MAX_FILE_BYTES:
        raise SoftformError(
            f"{path} has {size / 1024**2:.0f} MB; at most {MAX_FILE_BYTES // 1024**2} MB are read.",
            "Reduce the shape; a few thousand points describe any shape that the robot can take.",
        )
