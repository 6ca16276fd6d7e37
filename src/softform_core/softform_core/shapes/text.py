"""Text of shape files as programs and editors write it: byte order marks, line ends, and ways to write a number."""

import codecs
import re

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError

Parsed = tuple[Array, list[NDArray[np.integer]], list[str]]
"""What is in a file: points (V, 3) in its unit, polygons (P, n) of them for each n, and notes of what was not read."""

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NOT_A_NUMBER = re.compile(rb"[-+]?(?:1\.#\w*|nan\(\w*\))", re.IGNORECASE)  # as Microsoft's C library writes it
_FORTRAN_EXPONENT = re.compile(rb"(?<=[\d.,])[dD](?=[-+]?\d)")
_NUMBER = re.compile(rb"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)
_DECIMALS = re.compile(rb"[.,]([^\s.,;]*)\s*$")  # of a row's last number, and its exponent

UNIT_WORD = rb"mm|cm|m|ft|feet|inch(?:es)?|(?:\xc2?\xb5|u)m|(?:milli|centi|micro)?met(?:er|re)s?"
"""Pattern of the units of lengths that programs write."""

_UNIT_COMMENT = re.compile(
    rb"(?<![a-z])(?:units?|einheit(?:en)?)(?:[ \t\"'([:=,;]|are|is|in)*"
    rb"(?:(?<![a-z])(" + UNIT_WORD + rb")|(?<=[:=([,;\"'])[ \t]*(in)(?![ \t]+\w))\b",
    re.IGNORECASE,
)
_LONGEST = 40  # of what a message quotes


def decoded(content: bytes) -> bytes:
    """A file's text without a byte order mark, with a newline at the end of each line.

    Comments keep the bytes of their encoding; UTF-16 becomes UTF-8.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", errors="replace").encode()
    return content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def plain_text(content: bytes) -> bytes:
    """The `decoded` text of a file.

    Raises:
        SoftformError: If it holds control characters, which only damage puts there.
    """
    text = decoded(content)
    if found := _CONTROL.search(text):
        line = text.count(b"\n", 0, found.start()) + 1
        raise SoftformError(
            f"Line {line} holds the control character {found[0]!r}.",
            "The file is damaged or not of the type that its name says: export it again.",
        )
    return text


def numbers(text: bytes) -> Array:
    """The numbers (n,) that the words of a text are.

    NaN may be written as any C library does, an exponent as Fortran does, and decimal marks may be commas if no number
    has a point.

    Raises:
        SoftformError: If a word is no number.
    """
    if not text.strip():
        return np.empty(0)
    try:
        return np.fromstring(text, sep=" ")
    except ValueError:
        plain = respelled(text)
    try:
        return np.fromstring(plain, sep=" ")
    except ValueError as error:
        words = zip(text.split(), plain.split(), strict=True)
        bad = next((word for word, own in words if not is_number(own)), text)
        raise SoftformError(
            f"'{shown(bad)}' is no number.",
            "Write points as decimal marks throughout." if b"," in bad else "Correct it, or export the file again.",
        ) from error


def respelled(text: bytes, commas_separate: bool = False) -> bytes:
    """A text of numbers with NaN as `nan`, exponents with `e`, and points as decimal marks."""
    text = _FORTRAN_EXPONENT.sub(b"e", _NOT_A_NUMBER.sub(b"nan", text))
    return text if commas_separate or b"." in text else text.replace(b",", b".")


def is_number(word: bytes) -> bool:
    """Whether a word is one number, with a point as decimal mark."""
    return _NUMBER.fullmatch(word) is not None


def check_last_row(rows: list[bytes], what: str = "The last row") -> None:
    """See that the last row of a file that ends without a newline is not cut within its last number.

    Where commas part columns, rows are to be the last cells alone; `what` names the row in errors.

    Raises:
        SoftformError: If it has fewer decimals than the others, of which all have the same number.
    """
    decimals = [len(found[1]) if (found := _DECIMALS.search(row)) else 0 for row in rows[-1000:]]
    is_fixed = len(set(decimals[:-1])) == 1 and decimals[0] > 1  # by a program: hands write 0.5 and 1
    if is_fixed and decimals[-1] < decimals[0]:
        raise SoftformError(
            f"{what}, '{shown(rows[-1])}', ends within a number.", "The file is truncated: export it again."
        )


def stated_length(start: bytes) -> str | None:
    """The unit of lengths that the start of a file states, as a comment or a cell such as `Length Units,Meters`.

    Returns:
        Its symbol, such as "mm", "cm" or "in"; None if none is stated.
    """
    found = _UNIT_COMMENT.search(start)
    return None if found is None else unit_named(found[1] or found[2])


def unit_named(word: bytes) -> str:
    """The symbol of a unit (`UNIT_WORD`), or its name where that has none here."""
    name = word.replace(b"\xc2", b"").decode("latin-1").lower()
    words = {"milli": "mm", "centi": "cm", "meter": "m", "metre": "m", "inch": "in", "inche": "in"}
    return words.get(name[:5], name)


def shown(text: bytes) -> str:
    """A piece of a file as a message quotes it."""
    return text[:_LONGEST].decode("ascii", errors="replace").strip() + "…" * (len(text) > _LONGEST)
