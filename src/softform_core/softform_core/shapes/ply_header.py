"""The header of a PLY file, read without its body."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from softform_core.errors import SoftformError

MAX_HEADER_BYTES = 1 << 16

_KINDS = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)},
    **{"float": "f4", "float32": "f4", "double": "f8", "float64": "f8"},
}
_BYTE_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?ply[ \t]*(\r\n|\n|\r)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class PlyProperty(NamedTuple):
    """Name and NumPy's name of the type of a property; of a list also that of the count before its values, else ""."""

    name: str
    kind: str
    count_kind: str = ""


@dataclass(frozen=True)
class PlyHeader:
    """What a PLY file says of itself.

    Attributes:
        byte_order: "<" or ">" of a binary body, "" of an ascii one.
        comments: Text of each comment line.
        counts: Number of rows of each element, such as "vertex" and "face", in their order in the body.
        properties: Properties of each element.
        body_offset: Offset of the body in the file, bytes.
    """

    byte_order: str
    comments: tuple[str, ...]
    counts: dict[str, int]
    properties: dict[str, list[PlyProperty]]
    body_offset: int

    def comment(self, key: str) -> str | None:
        """Rest of the first comment that begins with the word `key`, or None."""
        return next((text.partition(" ")[2].strip() for text in self.comments if text.partition(" ")[0] == key), None)


def read_ply_header(path: str | Path) -> PlyHeader:
    """Read the header of a PLY file.

    Raises:
        SoftformError: If the file is not a PLY file or its header is cut off or not understood.
        OSError: If the file cannot be read.
    """
    with open(path, "rb") as file:
        return ply_header(file.read(MAX_HEADER_BYTES))


def ply_header(start: bytes) -> PlyHeader:
    """The header of a PLY file with this content, or this start of it.

    Raises:
        SoftformError: As `read_ply_header`.
    """
    first = _FIRST_LINE.match(start)
    if first is None:
        raise SoftformError("It is not a PLY file.", "Export it as PLY, or rename it to what it is.")
    # The first line end tells which one ends the header: the byte after it may be a number's.
    end = re.search(rb"(?:\r\n|\n|\r)end_header[ \t]*" + first[1], start[:MAX_HEADER_BYTES])
    if end is None:
        raise SoftformError("Its PLY header is cut off.", "The file is truncated: export it again.")
    encoding = ""
    comments: list[str] = []
    counts: dict[str, int] = {}
    properties: dict[str, list[PlyProperty]] = {}
    try:
        element = ""
        header = start[first.end() : end.start()].decode("latin-1")
        if _CONTROL.search(header):
            raise ValueError("it holds control characters")  # they would pass for spaces or ends of lines
        for line in re.split("\r\n|\n|\r", header):
            match line.split():
                case ["format", name, *_]:
                    encoding = name
                case ["comment", *_]:
                    comments.append(line.partition("comment")[2].strip())
                case ["element", name, count] if (element := name.lower()) not in counts and count.isdecimal():
                    counts[element], properties[element] = int(count), []
                case ["property", "list", count_kind, kind, name] if _is_new(name, properties[element]):
                    properties[element].append(PlyProperty(name.lower(), _KINDS[kind], _KINDS[count_kind]))
                case ["property", kind, name] if _is_new(name, properties[element]):
                    properties[element].append(PlyProperty(name.lower(), _KINDS[kind]))
                case [] | ["obj_info", *_]:
                    pass
                case _:
                    raise ValueError(f"line '{line}'")
        order = _BYTE_ORDERS[encoding]
    except (KeyError, ValueError) as error:
        raise SoftformError(f"Its PLY header is not understood: {error}.", "Export it again.") from error
    return PlyHeader(order, tuple(comments), counts, properties, end.end())


def _is_new(name: str, listed: list[PlyProperty]) -> bool:
    return name.lower() not in [one.name for one in listed]
