"""Surfaces and tetrahedra of VTK files: legacy .vtk and XML .vtu and .vtp (with .pvtu and .pvtp).

They may be text or binary, in pieces or not.

Read here, as meshio takes one piece of several for the whole (https://github.com/nschloe/meshio/issues/1444), knows no
PolyData, and passes over cells that it does not know.
"""

import base64
import codecs
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.elements import ElementMesh, triangles
from softform_core.shapes.polygons import cut_alike

_NO_SURFACE = {0, 1, 2, 3, 4, 21, 35}  # points and lines
_STRIP, _POLYGON, _PIXEL = 6, 7, 8
_SURFACES = {5, _POLYGON, _PIXEL, 9, 22, 23, 28, 34}
_TETRAHEDRA = {(10, 4), (24, 10)}
_OF_POLYDATA = {"Verts": 2, "Lines": 4, "Strips": _STRIP, "Polys": _POLYGON}
_OF_LEGACY = {"VERTICES": 2, "LINES": 4, "TRIANGLE_STRIPS": _STRIP, "POLYGONS": _POLYGON, "CELLS": None}
_LEGACY_TYPES = {
    "char": "i1",
    "short": "i2",
    "int": "i4",
    "vtkidtype": "i4",
    "long": "i8",
    "float": "f4",
    "double": "f8",
}
_XML_KINDS = {"Float": "f", "Int": "i", "UInt": "u"}
_APPENDED = re.compile(rb"<AppendedData[^>]*>\s*_")


class _Cells(NamedTuple):
    """Cells: all their points in turn, where each ends among them (E,), and their types (E,)."""

    points: NDArray[np.integer]
    ends: NDArray[np.integer]
    types: NDArray[np.integer]


class _Piece(NamedTuple):
    points: Array
    cells: list[_Cells]
    fields: dict[str, NDArray]


def read_vtk(path: Path) -> ElementMesh:
    """The surface of a VTK file, all pieces joined one behind the other.

    Raises:
        SoftformError: If it has no surface, or cells that are none.
        ValueError: If it is damaged, or holds other numbers of points and cells than it says.
        OSError: If it cannot be read.
    """
    pieces = _pieces(path)
    faces, others, first = [np.empty((0, 3), dtype=np.int64)], 0, 0
    for points, blocks, _ in pieces:
        for cells in blocks:
            faces.append(_faces_of(path, cells, points) + first)
            others += int(np.isin(cells.types, list(_NO_SURFACE)).sum())
        first += len(points)
    if not sum(map(len, faces)):
        raise SoftformError(f"{path} has no triangles.", "Export the outer surface as a mesh.")
    names = [name for name in pieces[0].fields if all(name in piece.fields for piece in pieces)]
    fields = {name: np.concatenate([piece.fields[name] for piece in pieces]).astype(np.float64) for name in names}
    points = np.concatenate([piece.points for piece in pieces])
    fields = {name: values for name, values in fields.items() if values.shape == points.shape}
    told = (f"{others} points and lines",) if others else ()
    return ElementMesh(points, np.concatenate(faces), fields, told)


def read_tetrahedra(path: Path) -> tuple[Array, NDArray[np.int64]] | None:
    """Points (V, 3) and tetrahedra (E, 4), or (E, 10) of quadratic ones, of a VTK file, all pieces joined.

    Surfaces, lines and points beside them are passed over; None if it has nothing else.

    Raises:
        SoftformError: If it has other cells, or straight and quadratic tetrahedra.
        ValueError: As `read_vtk`.
        OSError: If it cannot be read.
    """
    pieces, found, first = _pieces(path), [], 0
    for points, blocks, _ in pieces:
        for cells in blocks:
            for kind, size, elements, _ in _by_kind(cells, points):
                if (kind, size) in _TETRAHEDRA:
                    found.append(elements + first)
                elif kind not in _SURFACES | _NO_SURFACE | {_STRIP}:
                    raise SoftformError(
                        f"{path} has {len(elements)} cells of VTK's type {kind}: a volume is of tetrahedra.",
                        "Mesh it by tetrahedra (in ParaView: Tetrahedralize).",
                    )
        first += len(points)
    if len({elements.shape[1] for elements in found}) > 1:
        raise SoftformError(f"{path} has straight and quadratic tetrahedra.", "Export one kind of them.")
    return (np.concatenate([piece.points for piece in pieces]), np.concatenate(found)) if found else None


def _pieces(path: Path) -> list[_Piece]:
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    return _xml(path, content) if content.lstrip().startswith(b"<") else [_legacy(content)]


def _by_kind(cells: _Cells, points: Array) -> Iterator[tuple[int, int, NDArray[np.int64], NDArray[np.bool_]]]:
    """Type, number of points, points (n, size) and places (E,) of the cells of each kind over points (V, 3)."""
    named, sizes = cells.points, np.diff(cells.ends, prepend=0)
    if len(named) and not 0 <= named.min() <= named.max() < len(points):
        raise ValueError(f"a cell names point {named.max()} of {len(points)}")
    if len(cells.types) != len(sizes) or sizes.sum() != len(named) or sizes.min(initial=0) < 0:
        raise ValueError(f"{len(sizes)} cells of {len(cells.types)} types with {len(named)} points")
    for kind, size in sorted(set(zip(cells.types.tolist(), sizes.tolist(), strict=True))):
        chosen = (cells.types == kind) & (sizes == size)
        yield kind, size, named[(cells.ends - sizes)[chosen][:, None] + np.arange(size)].astype(np.int64), chosen


def _faces_of(path: Path, cells: _Cells, points: Array) -> NDArray[np.int64]:
    """Triangles (F, 3) of the cells over points (V, 3) that are surfaces."""
    faces = [np.empty((0, 3), dtype=np.int64)]
    for kind, size, elements, chosen in _by_kind(cells, points):
        if kind not in _SURFACES | _NO_SURFACE | {_STRIP}:
            raise SoftformError(
                f"{path} has {chosen.sum()} cells of VTK's type {kind}: a surface is of triangles and quadrilaterals.",
                "Export the outer surface alone (in ParaView: Extract Surface, then Triangulate).",
            )
        if kind == _STRIP:
            faces += [elements[:, [i, i + 1 + i % 2, i + 2 - i % 2]] for i in range(size - 2)]
        elif kind == _POLYGON:
            faces.append(cut_alike(points, elements) if size > 2 else faces[0])
        elif kind in _SURFACES:
            faces.append(triangles(elements[:, [0, 1, 3, 2]] if kind == _PIXEL else elements))
    return np.concatenate(faces)


def _xml(path: Path, content: bytes) -> list[_Piece]:
    appended, is_base64 = b"", False
    if match := _APPENDED.search(content):
        appended, is_base64 = content[match.end() : content.rindex(b"</AppendedData>")], b"base64" in match[0]
        content = content[: match.start()] + b"</VTKFile>"
    root = ElementTree.fromstring(content)
    kind, compressor = root.get("type", ""), root.get("compressor")
    if compressor not in (None, "vtkZLibDataCompressor"):
        raise SoftformError(f"{path} is compressed by {compressor}.", "Export it without, or compressed by ZLib.")
    if kind.startswith("P") and kind != "PolyData":
        sources = [path.parent / piece.get("Source", "") for piece in root.iter("Piece")]
        return [piece for source in sources for piece in _xml(source, source.read_bytes())]
    if kind not in ("UnstructuredGrid", "PolyData"):
        raise SoftformError(f"{path} holds a {kind or 'nothing of VTK'}.", "Export it as UnstructuredGrid or PolyData.")

    def dtype(name: str) -> np.dtype:
        word, bits = name.rstrip("0123456789"), int(name.lstrip("FloatUIn"))
        return np.dtype(f"{'>' if root.get('byte_order') == 'BigEndian' else '<'}{_XML_KINDS[word]}{bits // 8}")

    def array(element: ElementTree.Element) -> NDArray:
        form, width = element.get("format", "ascii"), int(element.get("NumberOfComponents") or 1)
        if form == "ascii":
            values = np.array((element.text or "").split(), dtype=dtype(element.get("type", "")))
        else:
            place = int(element.get("offset", "0"))
            given = appended[place:] if form == "appended" else (element.text or "").encode()
            if form == "binary" or is_base64:  # header and data may each be padded
                given = b"".join(base64.b64decode(part) for part in re.findall(rb"[^=\s]+={0,2}", given))
            header = dtype(root.get("header_type", "UInt32"))
            values = np.frombuffer(_unpacked(given, header, compressor is not None), dtype(element.get("type", "")))
        return values.reshape(-1, width) if width > 1 else values

    def read(piece: ElementTree.Element) -> _Piece:
        def named(tag: str, width: str | None = None) -> dict[str, NDArray]:
            all_of = piece.iterfind(f"{tag}/DataArray")
            wanted = (one for one in all_of if width is None or one.get("NumberOfComponents") == width)
            return {str(one.get("Name")): array(one) for one in wanted}

        points = np.concatenate([*named("Points").values(), np.empty((0, 3))]).astype(np.float64)
        _check(len(points), int(piece.get("NumberOfPoints", "-1")), "points")
        cells = []
        for tag, type_of_all in (_OF_POLYDATA if kind == "PolyData" else {"Cells": None}).items():
            if told := int(piece.get(f"NumberOf{tag}", "0")):
                parts = named(tag)
                _check(len(parts["offsets"]), told, "cells")
                types = parts["types"] if type_of_all is None else np.full(told, type_of_all)
                cells.append(_Cells(parts["connectivity"], parts["offsets"], types))
        return _Piece(points, cells, named("PointData", "3"))

    return [read(piece) for piece in root.iter("Piece")]


def _check(found: int, told: int, what: str) -> None:
    if found != told:
        raise ValueError(f"{found} {what} where {told} were promised")


def _unpacked(given: bytes, header: np.dtype, is_packed: bool) -> bytes:
    """The bytes of an array, without its header."""
    size, count = header.itemsize, int(np.frombuffer(given, header, 1)[0])
    if not is_packed:
        _check(len(given[size : size + count]), count, "bytes")
        return given[size : size + count]
    place, blocks = size * (3 + count), b""
    for length in np.frombuffer(given, header, count, 3 * size).tolist():
        blocks += zlib.decompress(given[place : place + length])
        place += length
    return blocks


class _Legacy(io.BytesIO):
    """Lines and numbers of a legacy file, one after the other."""

    is_binary = False

    def words(self) -> list[str]:
        """The words of the next line that has some; none at the end."""
        return next((words for line in self if (words := line.decode(errors="replace").split())), [])

    def numbers(self, count: int, kind: str) -> NDArray:
        """So many numbers of a type."""
        name = kind.lower().removeprefix("vtktype")
        sign, name = ("u", name.removeprefix("unsigned_")) if name.startswith("unsigned_") else ("", name)
        code = _LEGACY_TYPES.get(name) or re.sub(r"(u?)int(\d+)", lambda m: f"{m[1] or 'i'}{int(m[2]) // 8}", name)
        dtype = np.dtype(">" + (sign + code[1:] if sign else code))
        if self.is_binary:
            return np.frombuffer(self.read(count * dtype.itemsize), dtype, count)
        words: list[str] = []
        while len(words) < count and (line := self.words()):
            words += line
        _check(len(words), count, "numbers")
        return np.array(words, dtype=dtype)

    def cells(self, count: int, size: int, kind: int | None) -> _Cells:
        """Cells of one kind, or of types that come later; with offsets from version 5 on, else each with its length."""
        place = self.tell()
        if (words := self.words())[:1] == ["OFFSETS"]:
            ends = self.numbers(count, words[1])[1:]
            points = self.numbers(size, self.words()[1])
        else:
            self.seek(place)
            given, begin = self.numbers(size, "int"), [0]
            while begin[-1] < size and len(begin) <= size:  # damaged lengths may lead backwards
                begin.append(begin[-1] + 1 + int(given[begin[-1]]))
            _check(len(begin) - 1, count, "cells")
            ends = np.array(begin[1:]) - np.arange(1, len(begin))
            points = np.delete(given, begin[:-1])
        return _Cells(points, ends, np.full(len(ends), -1 if kind is None else kind))


def _legacy(content: bytes) -> _Piece:
    file = _Legacy(content)
    if not file.readline().startswith(b"# vtk DataFile"):
        raise ValueError("it does not begin as a VTK file")
    file.readline()
    file.is_binary = file.words() == ["BINARY"]
    points, cells, fields = np.empty((0, 3)), list[_Cells](), dict[str, NDArray]()
    count, kept = 0, dict[str, NDArray]()  # of the points or cells that arrays come for
    while words := file.words():
        section = words[0].upper()
        if section == "DATASET" and words[1].upper() not in ("POLYDATA", "UNSTRUCTURED_GRID"):
            raise SoftformError(f"The file holds {words[1]}.", "Export it as UNSTRUCTURED_GRID or POLYDATA.")
        if section == "POINTS":
            points = file.numbers(3 * int(words[1]), words[2]).reshape(-1, 3).astype(np.float64)
        elif section in _OF_LEGACY:
            cells.append(file.cells(int(words[1]), int(words[2]), _OF_LEGACY[section]))
        elif section == "CELL_TYPES":
            cells[-1] = cells[-1]._replace(types=file.numbers(int(words[1]), "int"))
        elif section in ("POINT_DATA", "CELL_DATA"):
            count, kept = int(words[1]), fields if section == "POINT_DATA" else {}
        elif section == "METADATA":
            while file.readline().strip():
                pass
        elif section in ("VECTORS", "NORMALS", "TENSORS"):
            width = 9 if section == "TENSORS" else 3
            kept[words[1]] = file.numbers(width * count, words[2]).reshape(-1, width)
        elif section == "SCALARS":
            file.words()  # its table of colours
            width = int((words + ["1"])[3])
            kept[words[1]] = file.numbers(width * count, words[2]).reshape(-1, width)
        elif section == "TEXTURE_COORDINATES":
            file.numbers(count * int(words[2]), words[3])
        elif section in ("COLOR_SCALARS", "LOOKUP_TABLE"):
            size = count * int(words[2]) if section == "COLOR_SCALARS" else 4 * int(words[2])
            file.numbers(size, "unsigned_char" if file.is_binary else "float")
        elif len(words) == 4 and words[1].isdigit():  # one of the arrays of a FIELD
            kept[words[0]] = file.numbers(int(words[1]) * int(words[2]), words[3]).reshape(int(words[2]), -1)
        elif section not in ("DATASET", "FIELD"):
            if not cells:
                raise ValueError(f"'{words[0]}' is no section of a VTK file")
            break  # colours and the like: what moves the points comes as vectors or as a field
    return _Piece(points, cells, fields)
