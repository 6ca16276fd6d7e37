"""What the ASCII boards' protocols share: the form of their lines, and a parser of bytes in pieces of any size."""

import abc
from typing import Generic, TypeVar

from softform_core.errors import SoftformError

CHANNELS = 10
BAUD_RATE = 115200
TERMINATOR = b"\r\n"
WIRE_LIMIT = 1e6
"""Pa; a pressure beyond it is none that a board of this kind could mean."""

NUMBER = r"-?\d{1,4}\.\d{2}"
"""The boards print two decimals: a line that lost a byte in flight seldom still has them everywhere."""

LONGEST_LINE = 512
"""Bytes after which a line without an end is garbage; the longest that a board prints, a stream line, has 82."""


Message = TypeVar("Message")


def require_channel(channel: int) -> None:
    """Look whether the boards have a channel.

    Raises:
        SoftformError: If they have not.
    """
    if not 0 <= channel < CHANNELS:
        raise SoftformError(f"The board has no channel {channel}.", f"Use 0 … {CHANNELS - 1}.")


class LineParser(abc.ABC, Generic[Message]):
    """Turns a board's bytes, in pieces of any size, into messages.

    Lines may arrive partial, merged or corrupt. What cannot be understood is dropped and counted; nothing raises, and
    memory stays bounded. Messages depend on the bytes alone, not on how they were cut into pieces.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._in_overlong_line = False
        self.corrupt = 0
        self.dropped_bytes = 0

    def feed(self, data: bytes) -> list[Message]:
        """Take the next bytes and return the messages that they complete, oldest first."""
        messages: list[Message] = []
        *completed, rest = data.split(b"\n")
        for piece in completed:
            self._append(piece)
            if self._in_overlong_line:
                self._in_overlong_line = False
            else:
                # Every byte is a character in Latin-1, so that garbage cannot raise here.
                found, left = self.parse(bytes(self._line).decode("latin-1").replace("\r", "").strip())
                messages += found
                if left:
                    self.corrupt += 1
                    self.dropped_bytes += len(left)
            self._line.clear()
        self._append(rest)
        return messages

    @abc.abstractmethod
    def parse(self, line: str) -> tuple[list[Message], str]:
        """Return the messages of one line, and the part of it that is none."""

    def _append(self, piece: bytes) -> None:
        if self._in_overlong_line:
            self.dropped_bytes += len(piece)
            return
        self._line += piece
        if len(self._line) > LONGEST_LINE:
            self._in_overlong_line = True
            self.corrupt += 1
            self.dropped_bytes += len(self._line)
            self._line.clear()
