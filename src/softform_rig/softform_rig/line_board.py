"""Emulated boards that speak in lines: requests and replies end in CR LF, and what is not understood gets an error."""

import math
import re
from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

from softform_rig.emulated_board import EmulatedBoard

LONGEST_REQUEST = 64  # bytes, the receive buffer of the board


class LineBoard(EmulatedBoard):
    """A board whose protocol is `_answer`.

    Attributes:
        vent_request: The line by which a host has all channels vent.
    """

    vent_request: ClassVar[str]

    def vent_ends(self, data: bytes) -> list[int]:
        """As `EmulatedBoard.vent_ends`."""
        return [found.end() for found in self._vent_line.finditer(data)]

    @cached_property
    def _vent_line(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?<![^\n])" + re.escape(self.vent_request.encode()) + rb"\r\n")

    def _forget(self) -> None:
        self._request = bytearray()
        self._overrun = False

    def _hear(self, data: bytes) -> None:
        for byte in data:
            if byte == ord("\n"):
                self._end_of_request()
            elif len(self._request) < LONGEST_REQUEST:
                self._request.append(byte)
            else:
                self._overrun = True

    def _end_of_request(self) -> None:
        request, overrun = bytes(self._request), self._overrun
        self._request.clear()
        self._overrun = False
        if not overrun and not request.endswith(b"\r"):
            self._say("Error end check")
        elif overrun or not self._answer(request[:-1].decode("latin-1")):
            self._say("Error command")

    def _say(self, line: str) -> None:
        self._output += line.encode("ascii") + b"\r\n"

    @abstractmethod
    def _answer(self, request: str) -> bool:
        """Do what a request says, and answer it; returns whether it was understood."""


def finite_number(text: str) -> float | None:
    """A number of a request, or None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
