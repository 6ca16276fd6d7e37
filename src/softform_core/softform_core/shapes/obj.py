"""Meshes and clouds from Wavefront OBJ files."""

import re
from collections import Counter

import numpy as np

from softform_core.errors import SoftformError
from softform_core.shapes.text import Parsed, check_last_row, numbers, plain_text, shown

_COMMENT = re.compile(rb"#[^\n]*")
_CONTINUED = re.compile(rb"\\[ \t]*\n")
_OF_LOOKS = "vt vn vp o g s mg usemtl usemap mtllib maplib bevel c_interp d_interp lod shadow_obj trace_obj"
_OF_OTHER_GEOMETRY = "p l cstype deg bmat step curv curv2 surf parm trim hole scrv sp end con ctech stech call csh"
_IGNORED = frozenset(f"{_OF_LOOKS} {_OF_OTHER_GEOMETRY}".encode().split())
_SHAPES = (b"surf", b"curv", b"call")


def read_obj(content: bytes) -> Parsed:
    """Read vertices and faces; a face's corners are the first of the indices `v/vt/vn`, negative ones count backwards.

    A cut-off file is recognised only if it ends within a row, or within a coordinate whose decimals are fewer than
    all others', as the format has neither counts nor an end mark.

    Raises:
        SoftformError: If a row is none of the format, or holds too few numbers.
    """
    text = _CONTINUED.sub(b" ", _COMMENT.sub(b"", plain_text(content)))
    places: list[bytes] = []
    corners: list[bytes] = []
    sizes: list[int] = []
    before: list[int] = []
    unread: Counter[bytes] = Counter()
    lines = text.split(b"\n")
    if lines[-1].strip():
        check_last_row([line for line in lines if line.split()[:1] == lines[-1].split()[:1]])
    for line in lines:
        words = line.split()
        if not words:
            continue
        words[0] = words[0].lower()
        if words[0] == b"v" and len(words) > 3:
            places += words[1:4]
        elif words[0] in (b"f", b"fo") and len(words) > 3:
            corners += [word.partition(b"/")[0] for word in words[1:]]
            sizes.append(len(words) - 1)
            before.append(len(places) // 3)
        elif words[0] not in _IGNORED:
            raise SoftformError(
                f"The line '{shown(line)}' is no whole line of an OBJ file.",
                "The file is damaged or truncated: export it again.",
            )
        elif words[0] in _SHAPES:
            unread[words[0]] += 1
    given = numbers(b" ".join(corners))
    if len(given) != sum(sizes) or not (np.abs(given) >= 1.0).all() or (given % 1.0).any():
        raise SoftformError("A face names a vertex by something else than its number.", "Export the file again.")
    index = np.where(given < 0.0, given + np.repeat(before, sizes), given - 1.0).astype(np.int64)
    notes = [f"{count} lines '{word.decode()}' are no polygons: not read" for word, count in unread.items()]
    counts = np.array(sizes, dtype=np.int64)
    starts = np.cumsum(counts) - counts
    polygons = [index[starts[counts == size][:, None] + np.arange(size)] for size in np.unique(counts)]
    return numbers(b" ".join(places)).reshape(-1, 3), polygons, notes
