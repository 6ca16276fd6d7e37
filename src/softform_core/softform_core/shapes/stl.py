"""Meshes from STL files, binary and ascii."""

import re

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.shapes.text import Parsed, decoded, numbers, plain_text, shown

HEADER_BYTES = 84
TRIANGLE_BYTES = 50

_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_FACET = b"facet normal 0 0 0 outer loop vertex 0 0 0 vertex 0 0 0 vertex 0 0 0 endloop endfacet".split()
_NUMBERS = [place for place, word in enumerate(_FACET) if word == b"0"][3:]  # but for those of the normal
_KEYWORDS = [place for place, word in enumerate(_FACET) if word != b"0"]
_START = re.compile(rb"^[ \t]*solid\b.*$", re.IGNORECASE | re.MULTILINE)
_END = re.compile(rb"^[ \t]*end[ \t]*solid\b.*$", re.IGNORECASE | re.MULTILINE)


def read_stl(content: bytes) -> Parsed:
    """Read triangles of all solids; corners at the same place become one vertex, as the format knows no shared ones.

    Raises:
        SoftformError: If the file is neither, is cut off, or holds something else.
    """
    promised = int.from_bytes(content[HEADER_BYTES - 4 : HEADER_BYTES], "little")
    end = HEADER_BYTES + TRIANGLE_BYTES * promised
    if len(content) >= end and not content[end:].strip(b"\r\n\0"):
        table = np.frombuffer(content, _TRIANGLE, promised, HEADER_BYTES)
        corners = table["corners"].astype(np.float64).reshape(-1, 3)
    elif _START.match((text := decoded(content)).lstrip()) and b"\0" not in text:
        corners = _ascii_corners(plain_text(text))
    else:
        raise SoftformError(
            "It is no STL file: neither text that begins with 'solid', nor binary, as it "
            f"promises {promised} triangles but has {len(content)} bytes.",
            "The file is truncated or of another type: export it again.",
        )
    order = np.lexsort(corners.T)  # ten times as fast as numpy's `unique` of rows
    is_first = np.append(True, (np.diff(corners[order], axis=0) != 0.0).any(axis=1))[: len(order)]
    index = np.empty(len(order), dtype=np.int64)
    index[order] = np.cumsum(is_first) - 1
    return corners[order][is_first], [index.reshape(-1, 3)], []


def _ascii_corners(text: bytes) -> Array:
    """Corners (3 F, 3) of all facets; names of solids may be any words."""
    rest, ends = _END.subn(b"", text)
    rest, starts = _START.subn(b"", rest)
    words = rest.lower().split()
    count, left = divmod(len(words), len(_FACET))
    if starts != ends or left:
        raise SoftformError(
            f"It has {starts} solids, {ends} ends of solids and {len(words) / len(_FACET):.10g} facets.",
            "The file is truncated or damaged: export it again.",
        )
    for place in _KEYWORDS:
        found, due = words[place :: len(_FACET)], _FACET[place]
        if wrong := next(((facet, word) for facet, word in enumerate(found, 1) if word != due), None):
            raise SoftformError(
                f"Facet {wrong[0]} has '{shown(wrong[1])}' in place of '{due.decode()}'.",
                "Correct it, or export the file again.",
            )
    columns = [b" ".join(words[place :: len(_FACET)]) for place in _NUMBERS]
    return numbers(b" ".join(columns)).reshape(9, -1).T.reshape(-1, 3)
