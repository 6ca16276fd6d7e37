"""The header of a PLY file, read without its body."""

import re
from dataclasses import dataclass
from pathlib import Path

from softform_core.errors import SoftformError

MAX_HEADER_BYTES = 1 << 16

_CHUNK = 1 << 20  # bytes
_SIZES = {
    **dict.fromkeys(("char", "uchar", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("double", "int64", "uint64", "float64"), 8),
}

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85]")


@dataclass(frozen=True)
class PlyHeader:
    """What a PLY file says of itself.

    Attributes:
        encoding: "ascii", "binary_little_endian" or "binary_big_endian".
        comments: Text of each comment line.
        counts: Number of rows of each element, such as "vertex" and "face".
        smallest_body: Least number of bytes that the body can have (lists taken as empty).
        body_offset: Offset of the body in the file, bytes.
    """

    encoding: str
    comments: tuple[str, ...]
    counts: dict[str, int]
    smallest_body: int
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
        start = file.read(MAX_HEADER_BYTES)
    if not start.startswith(b"ply"):
        raise SoftformError(f"{path} is not a PLY file.", "Export it as PLY, or rename it to what it is.")
    end = start.find(b"end_header")
    body_offset = start.find(b"\n", end) + 1
    if end < 0 or body_offset == 0:
        raise SoftformError(f"The PLY header of {path} is cut off.", "The file is truncated: export it again.")
    encoding = ""
    comments: list[str] = []
    counts: dict[str, int] = {}
    row_bytes: dict[str, int] = {}
    try:
        element = ""
        header = start[:end].decode("ascii", errors="replace")
        if _CONTROL.search(header):
            raise ValueError("it holds control characters")  # they would pass for spaces or ends of lines
        for line in header.splitlines()[1:]:
            match line.split():
                case ["format", name, *_]:
                    encoding = name
                case ["comment", *_]:
                    comments.append(line.partition(" ")[2].strip())
                case ["element", element, count] if element not in counts:
                    counts[element], row_bytes[element] = int(count), 0
                case ["property", "list", kind, _, _]:
                    row_bytes[element] += _SIZES[kind]
                case ["property", kind, _]:
                    row_bytes[element] += _SIZES[kind]
                case [] | ["obj_info", *_]:
                    pass
                case _:
                    raise ValueError(f"line '{line}'")
    except (KeyError, ValueError) as error:
        raise SoftformError(f"The PLY header of {path} is not understood: {error}.", "Export it again.") from error
    if encoding not in ("ascii", "binary_little_endian", "binary_big_endian") or min(counts.values(), default=0) < 0:
        raise SoftformError(
            f"The PLY header of {path} is not understood (format '{encoding}').", "Export it as ascii or binary PLY."
        )
    if encoding == "ascii":  # a row is at least one character and a line end
        smallest = sum(2 * count for count in counts.values()) - 1
    else:
        smallest = sum(count * row_bytes[name] for name, count in counts.items())
    return PlyHeader(encoding, tuple(comments), counts, smallest, body_offset)


def check_ascii_rows(path: str | Path, header: PlyHeader) -> None:
    """Reject an ascii PLY file with fewer rows than its header promises; trimesh would take what is there.

    Raises:
        SoftformError: If rows are missing.
        OSError: If the file cannot be read.
    """
    # Read, not mapped: a file that is written anew under its name meanwhile, or a drive that fails, would kill the
    # process by a signal.
    line_ends, last = 0, b"\n"
    with open(path, "rb") as file:
        file.seek(header.body_offset)
        while part := file.read(_CHUNK):
            line_ends, last = line_ends + part.count(b"\n"), part[-1:]
    rows = line_ends + int(last != b"\n")
    promised = sum(header.counts.values())
    if rows < promised:
        raise SoftformError(
            f"{path} has {rows} rows of the {promised} that its header promises.",
            "The file is truncated: export it again.",
        )
