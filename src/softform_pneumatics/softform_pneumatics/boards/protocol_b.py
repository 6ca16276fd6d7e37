"""Codec of Protocol B: the ASCII lines that OpenPneu's authors documented, and that no published firmware speaks.

What the documentation leaves open is assumed as docs/boards.md says: CR LF, channels of two digits, pressures in kPa
with two decimals. Nothing carries a checksum, so a line counts only if it has exactly this form; merged lines do not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from softform_core.errors import SoftformError
from softform_core.units import PA_PER_KPA
from softform_pneumatics.boards.lines import CHANNELS, NUMBER, TERMINATOR, WIRE_LIMIT, LineParser, require_channel

ALIVE_REQUEST = b"AT" + TERMINATOR
ADDRESS_REQUEST = b"AT+ADD" + TERMINATOR
CONTROL_ALL_REQUEST = b"CON:ALL" + TERMINATOR
VENT_REQUEST = b"COFF:ALL" + TERMINATOR


def read_request(channel: int) -> bytes:
    """Return the request for the pressure of a channel.

    Raises:
        SoftformError: If the board has no such channel.
    """
    require_channel(channel)
    return b"PREAD=%02d" % channel + TERMINATOR


def targets_request(pressures: Sequence[float]) -> bytes:
    """Return the request that sets the targets (Pa) of all ten channels.

    Raises:
        SoftformError: If there are not ten, or one is not a finite number that a board of this kind could mean.
    """
    if len(pressures) != CHANNELS or not all(abs(p) <= WIRE_LIMIT for p in pressures):
        raise SoftformError(f"{list(pressures)} Pa cannot be sent.", "Give ten finite pressures, Pa gauge.")
    return b"PSET:" + b",".join(b"%.2f" % (p / PA_PER_KPA) for p in pressures) + b";" + TERMINATOR


class ReplyKind(Enum):
    """What a reply of the board says."""

    DONE = "OK"
    ADDRESS = "ADD="
    PRESSURE = "Val="
    TARGET = "XX="
    CONTROL_ALL = "ALL ON"
    STOPPED_ALL = "ALL OFF"
    CONTROL = "ON"
    STOPPED = "OFF"
    UNKNOWN_REQUEST = "Error command"
    UNTERMINATED_REQUEST = "Error end check"


@dataclass(frozen=True)
class Reply:
    """One reply; `value` is the pressure (Pa) or the address that it tells, or 0."""

    kind: ReplyKind
    value: float = 0.0


_WORDS = {kind.value: kind for kind in ReplyKind if "=" not in kind.value}
_ADDRESS = re.compile(r"ADD=(\d{2})")
_PRESSURE = re.compile(rf"Val=({NUMBER})")
_TARGET = re.compile(rf"\d{{2}}=({NUMBER})")


class ReplyParser(LineParser[Reply]):
    """Lines of the board, one reply each."""

    def parse(self, line: str) -> tuple[list[Reply], str]:
        """Return the line's reply, or the line as what is none."""
        if not line:
            return [], ""
        if line in _WORDS:
            return [Reply(_WORDS[line])], ""
        if found := _ADDRESS.fullmatch(line):
            return [Reply(ReplyKind.ADDRESS, float(found[1]))], ""
        for kind, form in ((ReplyKind.PRESSURE, _PRESSURE), (ReplyKind.TARGET, _TARGET)):
            if found := form.fullmatch(line):
                return [Reply(kind, float(found[1]) * PA_PER_KPA)], ""
        return [], line
