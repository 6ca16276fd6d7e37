"""Codec of Protocol A: the ASCII lines that the OpenPneu board speaks at 115200 8N1.

A request ends in CR LF, and so does every reply. While the board runs it sends one stream line per control tick,
`T<p0>,…,<p9>;`, between the replies. Nothing carries a checksum or a sequence number, so the parser accepts a line only
if it has exactly the form that the board prints, and counts the rest. Pascal on this side, kilopascal on the wire.
"""

import re
from dataclasses import dataclass
from enum import Enum

from softform_core.errors import SoftformError
from softform_core.units import PA_PER_KPA
from softform_pneumatics.boards.lines import CHANNELS, NUMBER, TERMINATOR, WIRE_LIMIT, LineParser, require_channel

ALIVE_REQUEST = b"AT" + TERMINATOR
VERSION_REQUEST = b"AT+VERSION" + TERMINATOR
ADDRESS_REQUEST = b"AT+ADDRESS" + TERMINATOR
PRESSURE_REQUEST = b"AT+PRESSURE" + TERMINATOR
START_REQUEST = b"C" + TERMINATOR
VENT_REQUEST = b"V" + TERMINATOR
STOP_ALL_CHANNELS_REQUEST = b"PP" + TERMINATOR


def select_channel_request(channel: int) -> bytes:
    """Return the request that selects the channel which the next target is for.

    Raises:
        SoftformError: If the board has no such channel.
    """
    require_channel(channel)
    return b"SC=%d" % channel + TERMINATOR


def target_request(pressure: float) -> bytes:
    """Return the request that sets the selected channel's target, Pa gauge; the board does not answer it.

    Raises:
        SoftformError: If `pressure` is not a finite number that a board of this kind could mean.
    """
    return b"T=" + _kilopascal(pressure) + TERMINATOR


def threshold_request(pressure: float) -> bytes:
    """Return the request that sets by how much (Pa) a channel may lie above its target before the board vents it.

    Raises:
        SoftformError: If `pressure` is not a finite number that a board of this kind could mean.
    """
    return b"ST=" + _kilopascal(pressure) + TERMINATOR


def _kilopascal(pressure: float) -> bytes:
    # `not <=` also catches NaN. Three decimals (1 Pa) lie below the sensors' quantum of 8 Pa.
    if not abs(pressure) <= WIRE_LIMIT:
        raise SoftformError(f"{pressure} Pa cannot be sent to the board.", "Give a finite pressure in Pa gauge.")
    return b"%.3f" % (pressure / PA_PER_KPA)


class ReplyKind(Enum):
    """What a reply of the board says."""

    ALIVE = "OK;Successful"
    VERSION = "Version"
    ADDRESS = "OpenPneu"
    PRESSURE = "pressure of channel 0"
    CHANNEL_SELECTED = "Global Channel is"
    THRESHOLD_SET = "Global Threshold is"
    STARTED = "Timer Starts..."
    PAUSED = "Timer Pauses..."
    STOPPED = "Stop All Motors"
    UNKNOWN_REQUEST = "Error command"
    UNTERMINATED_REQUEST = "Error end check"


@dataclass(frozen=True)
class Reply:
    """One reply; `value` is the channel, the pressure (Pa), the version or the address that it tells, or empty."""

    kind: ReplyKind
    value: int | float | str = ""


@dataclass(frozen=True)
class StreamLine:
    """Measured pressures of all channels, Pa gauge."""

    pressures: tuple[float, ...]


Message = Reply | StreamLine

_STREAM_LINE = re.compile(rf"T({NUMBER}(?:,{NUMBER}){{{CHANNELS - 1}}});")
_BARE_NUMBER = re.compile(r"-?\d{1,4}(?:\.\d+)?")
_REPLY = re.compile(
    r"(?P<ALIVE>OK;Successful)"
    r"|Version\s*(?P<VERSION>\d+(?:\.\d+)*)\s*OK"
    r"|(?P<ADDRESS>OpenPneu\d+\.\d+)"
    r"|Global Channel is\s*(?P<CHANNEL_SELECTED>\d)(?!\d)"
    r"|Global Threshold is\s*(?P<THRESHOLD_SET>-?\d{1,4}(?:\.\d+)?)"
    r"|(?P<STARTED>Timer Starts\.\.\.)"
    r"|(?P<PAUSED>Timer Pauses\.\.\.)"
    r"|(?P<STOPPED>Stop All Motors)"
    r"|(?P<UNKNOWN_REQUEST>Error command)"
    r"|(?P<UNTERMINATED_REQUEST>Error end check)"
)


def _reply(kind: ReplyKind, text: str) -> Reply:
    match kind:
        case ReplyKind.CHANNEL_SELECTED:
            return Reply(kind, int(text))
        case ReplyKind.THRESHOLD_SET | ReplyKind.PRESSURE:
            return Reply(kind, float(text) * PA_PER_KPA)
        case ReplyKind.VERSION | ReplyKind.ADDRESS:
            return Reply(kind, text)
    return Reply(kind)


class StreamParser(LineParser[Message]):
    """Lines of the board; a stream line may also be printed into the middle of a reply."""

    def parse(self, line: str) -> tuple[list[Message], str]:
        """Return stream lines and replies, and what is left of the line without them."""
        messages: list[Message] = [
            StreamLine(tuple(float(number) * PA_PER_KPA for number in found[1].split(",")))
            for found in _STREAM_LINE.finditer(line)
        ]
        remainder = _STREAM_LINE.sub("", line).strip()
        if _BARE_NUMBER.fullmatch(remainder):
            messages.append(_reply(ReplyKind.PRESSURE, remainder))
            return messages, ""
        for found in _REPLY.finditer(remainder):
            kind = str(found.lastgroup)
            messages.append(_reply(ReplyKind[kind], found[kind]))
        return messages, _REPLY.sub("", remainder).strip()
