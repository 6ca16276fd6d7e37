"""The grammar of faults, by which launch arguments, commands and the service `rig/inject_fault` say what goes wrong.

A fault is written `[DEVICE/]KIND[=VALUE[:VALUE]][@START][+DURATION]`: `stall@10+2` hangs the board 10 s after the rig
was started, or after it is told, for 2 s; `left/disconnect` pulls the plug of one of several. What a fault does is the
matter of the device that it names; when it is on, of `fault_schedule`.
"""

import math
import re
from collections.abc import Iterable
from functools import cache

from softform_core.errors import SoftformError
from softform_rig.emulation import emulations
from softform_rig.fault_kinds import COMMON, Fault, FaultKind, Value, seconds

CLEAR = "clear"
"""What is written instead of a fault to end all of them."""

_FORM = re.compile(
    r"((?P<device>\w+)/)?(?P<kind>[a-z_]+)(=(?P<values>[^@+]*))?(@(?P<start>[^@+]*))?(\+(?P<duration>[^@+]*))?"
)


@cache
def kinds() -> dict[str, FaultKind]:
    """All kinds by their names: the common ones, and those of each family of devices that is installed."""
    return {kind.name: kind for kind in (*COMMON, *(kind for one in emulations().values() for kind in one.faults))}


def parse_fault(text: str) -> Fault:
    """Read `[DEVICE/]KIND[=VALUE[:VALUE]][@START][+DURATION]`.

    Raises:
        SoftformError: If the kind is unknown, a value is missing, superfluous or out of its bounds.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise SoftformError(f"'{text}' is not a fault.", "Write KIND[=VALUE][@START][+DURATION], as in stall@10+2.")
    kind = kinds().get(found["kind"])
    if kind is None:
        raise SoftformError(f"There is no fault '{found['kind']}'.", f"There are: {', '.join(kinds())}.")
    start = 0.0 if found["start"] is None else seconds(found["start"])
    duration = math.inf if found["duration"] is None else seconds(found["duration"])
    if start is None or duration is None:
        raise SoftformError(f"'{text}' does not say when.", "START and DURATION are seconds, as in stall@10+2.")
    if kind.is_moment and found["duration"] is not None:
        raise SoftformError(f"'{kind.name}' happens at once.", f"Write {kind.form}.")
    duration = 0.0 if kind.is_moment else duration
    words = [] if found["values"] is None else found["values"].split(":")
    return Fault(kind, _values(kind, words), start, duration, found["device"] or "")


def parse_faults(texts: Iterable[str]) -> list[Fault]:
    """Read several, also several in one text with commas between them; empty words are passed over.

    Raises:
        SoftformError: For the reasons of `parse_fault`.
    """
    return [parse_fault(word) for text in texts for word in text.split(",") if word.strip()]


def _values(kind: FaultKind, words: list[str]) -> tuple[Value, ...]:
    """Values of a fault, defaults where words are too few.

    Raises:
        SoftformError: If one is missing, superfluous or out of its bounds.
    """
    if len(words) > len(kind.values):
        left = ":".join(words[len(kind.values) :])
        raise SoftformError(f"'{kind.name}' has too many values: '{left}' is left over.", f"Write {kind.form}.")
    values: list[Value] = []
    for index, quantity in enumerate(kind.values):
        if index < len(words):
            values.append(quantity.parse(words[index]))
        elif quantity.default is None:
            raise SoftformError(f"'{kind.name}' lacks its {quantity.name}.", f"Write {kind.form}.")
        else:
            values.append(quantity.default)
    return tuple(values)
