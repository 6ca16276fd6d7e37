"""Meshes and clouds from PLY files."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.shapes.ply_header import PlyProperty, ply_header
from softform_core.shapes.text import Parsed, check_last_row, numbers, plain_text

_COUNT = "number of "


def read_ply(content: bytes) -> Parsed:
    """Read vertices, and faces or triangle strips, in any order of elements and of properties.

    Raises:
        SoftformError: If the header is not understood, or the body does not hold just what it promises.
    """
    header = ply_header(content)
    body, order, elements = content[header.body_offset :], header.byte_order, header.properties
    if not order:
        # From here on an ascii body is a binary one, all of whose numbers are doubles: line ends mean nothing.
        text = plain_text(body)
        if not text.endswith(b"\n") and [*header.counts][-1:] == ["vertex"]:
            check_last_row(text.split(b"\n"))
        body, order = numbers(text).astype("<f8").tobytes(), "<"
        elements = {
            name: [PlyProperty(one.name, "f8", "f8" if one.count_kind else "") for one in listed]
            for name, listed in elements.items()
        }
    offset, points, notes = 0, np.empty((0, 3)), []
    polygons: list[NDArray[np.integer]] = []
    for element, count in header.counts.items():
        tables = _read_rows(body, offset, count, elements[element], order)
        offset += sum(table.nbytes for table in tables)
        if element == "vertex" and count:
            names = [one.name for one in elements[element]]
            if any(names.count(axis) != 1 for axis in "xyz") or len(tables) > 1 or tables[0]["x"].ndim > 1:
                raise SoftformError(
                    f"Its vertices have the properties {', '.join(names)}.", "Export x, y and z, each a number."
                )
            points = np.stack([tables[0][axis] for axis in "xyz"], axis=1).astype(np.float64)
        elif element in ("face", "tristrips") and count:
            corners = [_corners(table) for table in tables]
            polygons = [_of_strips(corners)] if element == "tristrips" else _by_size(corners)
            if too_few := sum(len(one) for one in corners if one.shape[1] < 3):
                notes.append(f"{too_few} faces with less than three corners were left out")
        elif count:
            notes.append(f"{count} rows of the element '{element}' are no shape: not read")
    if body[offset:].strip():
        size, unit = (1, "bytes") if header.byte_order else (8, "numbers")
        raise SoftformError(
            f"It holds {len(body) // size} {unit} after the header, which promises {offset // size}.",
            "Correct the numbers of elements and properties in the header, or export it again.",
        )
    return points, polygons, notes


def _read_rows(body: bytes, offset: int, count: int, properties: list[PlyProperty], order: str) -> list[NDArray]:
    """Rows of an element, as tables with lists of one length each.

    Raises:
        SoftformError: If the body does not hold them.
    """

    @cache
    def kind_of(lengths: tuple[int, ...]) -> np.dtype:
        left, fields = list(lengths), []
        for name, kind, count_kind in properties:
            if count_kind:
                fields += [(_COUNT + name, order + count_kind), (name, order + kind, (left.pop(0),))]
            else:
                fields.append((name, order + kind))
        return np.dtype(fields)

    counts = [_COUNT + one.name for one in properties if one.count_kind]
    tables, block = [], 1 if counts else count
    while count and properties:
        lengths = [0] * len(counts)
        try:
            for place, name in enumerate(counts):
                lengths[place] = int(np.frombuffer(body, kind_of(tuple(lengths)), 1, offset)[name][0])
            row = kind_of(tuple(lengths))
            table = np.frombuffer(body, row, min(block, count, max((len(body) - offset) // row.itemsize, 1)), offset)
            alike = np.all([table[name] == length for name, length in zip(counts, lengths, strict=True)], axis=0)
            whole = len(table) if np.all(alike) else int(alike.argmin())
            if not whole or (not counts and len(table) < count):
                raise ValueError(f"{len(table)} rows")
        except (ValueError, OverflowError) as error:
            raise SoftformError(
                "It ends before all that its header promises.", "The file is truncated or damaged: export it again."
            ) from error
        tables.append(table[:whole])
        block = 2 * block if whole == len(table) else 1  # lists of one length mostly follow each other
        offset, count = offset + whole * row.itemsize, count - whole
    return tables


def _corners(table: NDArray) -> NDArray[np.int64]:
    """Vertices that the lists of a table name, (P, n)."""
    lists = [name for name in table.dtype.names or () if table[name].ndim > 1]
    if not lists:
        raise SoftformError("Its faces name no vertices.", "Export them as 'property list … vertex_indices'.")
    given = table[max(lists, key=lambda name: name.startswith("vert"))]
    found = given.astype(np.int64)
    if (found != given).any():
        raise SoftformError("A face names a vertex by something else than its number.", "Export the file again.")
    return found


def _by_size(corners: list[NDArray[np.int64]]) -> list[NDArray[np.integer]]:
    """Polygons (P, n) for each number of corners n of 3 at least."""
    sizes = sorted({one.shape[1] for one in corners if one.shape[1] > 2})
    return [np.concatenate([one for one in corners if one.shape[1] == size]) for size in sizes]


def _of_strips(strips: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Triangles (F, 3) of strips, each of which ends with -1 or with its list; every second one is turned over."""
    ended = np.concatenate([np.pad(one, ((0, 0), (0, 1)), constant_values=-1).ravel() for one in strips])
    place = np.arange(len(ended)) - np.maximum.accumulate(np.where(ended < 0, np.arange(len(ended)), -1))
    triangles = np.stack([ended[:-2], ended[1:-1], ended[2:]], axis=1)
    triangles[place[:-2] % 2 == 0] = triangles[place[:-2] % 2 == 0][:, [1, 0, 2]]
    distinct = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)
    return triangles[distinct & (triangles >= 0).all(axis=1)]
