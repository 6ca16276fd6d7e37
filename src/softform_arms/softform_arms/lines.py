"""Lines on the wire of the arms' controller: words and a checksum, so that no damaged number is taken for a position.

`WORDS*CRC` and a line end; CRC is CRC-16/XMODEM of the words, four hexadecimal digits. The first word is the request or
its answer:

| host | controller | |
|---|---|---|
| `W` | `I COUNT` | who is there: number of joints |
| `L WATCHDOG V… A… LOW… HIGH…` | the same, as it has taken them | s; limits of velocity, acceleration, position |
| `D` | `D Q…`, or `E` | brakes off, it follows points from where it is; `E`: its stop button is pressed |
| `T Q…` | | the next point of the trajectory, rad |
| `H` | `H Q…` | brakes on |
| `Q` | `S MODE Q… V…` | where the joints are, and how fast; unasked 50 times a second while driven, and as it brakes |

MODE is `D` driven, `B` brakes on as asked, `W` as no point came within the watchdog, `E` by the stop button.
"""

import binascii
from collections.abc import Iterable

from softform_core.arrays import Array

__all__ = ["Line", "LineReader", "packed", "written"]

Line = tuple[str, list[str]]
"""First word, and the others."""

_LONGEST = 4096
"""Bytes without a line end that are kept."""


def packed(kind: str, words: Iterable[str] = ()) -> bytes:
    """A line as it goes over the wire."""
    payload = " ".join((kind, *words)).encode("ascii")
    return b"%b*%04X\n" % (payload, binascii.crc_hqx(payload, 0))


def written(values: Array) -> list[str]:
    """Numbers as words, to the microradian."""
    return [f"{value:.6f}" for value in values.tolist()]


class LineReader:
    """Finds whole lines among received bytes.

    Attributes:
        damaged: Number of lines so far whose checksum is wrong.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self._rest = b""

    def forget(self) -> None:
        """Drop what is not whole."""
        self._rest = b""

    def feed(self, data: bytes) -> list[Line]:
        """Take bytes; return the lines that they complete, without the damaged ones."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest, found = rest[-_LONGEST:], []
        for line in filter(None, lines):
            payload, _, checksum = line.rpartition(b"*")
            if checksum == b"%04X" % binascii.crc_hqx(payload, 0):
                kind, *words = payload.decode("ascii", "replace").split(" ")
                found.append((kind, words))
            else:
                self.damaged += 1
        return found
