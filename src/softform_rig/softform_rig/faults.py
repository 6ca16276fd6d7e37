"""Faults of the emulated devices: what there is, and how one is written down. Without ROS.

A fault is written `[DEVICE/]KIND[=VALUE[:VALUE]][@START][+DURATION]`: `stall@10+2` hangs the board 10 s after the rig
was started for 2 s, `left/disconnect` pulls the plug of one of several. What a fault does is the matter of the device
that it names; when it is on, of `fault_schedule`.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from softform_core.errors import SoftformError

Device = Literal["board", "line", "air", "motors", "dead-man", "motion capture", "scanner"]
Value = float | str

_FORM = re.compile(
    r"((?P<device>\w+)/)?(?P<kind>[a-z_]+)(=(?P<values>[^@+]*))?(@(?P<start>[^@+]*))?(\+(?P<duration>[^@+]*))?"
)
_LAST_CHANNEL = 9
_LAST_MOTOR = 252


@dataclass(frozen=True)
class Quantity:
    """One value of a kind of fault: a number within bounds, or a marker's name.

    Attributes:
        name: Name, with the unit.
        default: None if it must be given.
        low: Least number.
        high: Largest number.
        whole: Whether it must be an integer.
        is_name: Whether it is a name instead.
    """

    name: str
    default: Value | None = None
    low: float = 0.0
    high: float = math.inf
    whole: bool = False
    is_name: bool = False

    def parse(self, text: str) -> Value:
        """The value of a word.

        Raises:
            SoftformError: If it is no such value.
        """
        if self.is_name and text:
            return text
        value = _seconds(text)
        if value is None or not self.low <= value <= self.high or (self.whole and value != int(value)):
            bounds = "a name" if self.is_name else f"{'a whole number' if self.whole else 'a number'} within "
            bounds += "" if self.is_name else f"{self.low:g} … {self.high:g}"
            raise SoftformError(f"'{text}' is no {self.name}.", f"Give {bounds}.")
        return value


@dataclass(frozen=True)
class FaultKind:
    """What can go wrong with a device.

    Attributes:
        name: Name on the command line.
        device: Device that fails.
        does: Effect, in one sentence.
        values: Values after `=`.
        is_moment: Whether it happens at once and has no duration.
    """

    name: str
    device: Device
    does: str
    values: tuple[Quantity, ...] = ()
    is_moment: bool = False

    @property
    def form(self) -> str:
        """How it is written."""
        names = [quantity.name.split(",")[0].upper() for quantity in self.values]
        needed = sum(quantity.default is None for quantity in self.values)
        written = "=" + ":".join(names[:needed]) if needed else ""
        for name in names[needed:]:
            written += f"[{':' if '=' in written else '='}{name}"
        written += "]" * (len(names) - needed)
        return self.name + written + ("[@START]" if self.is_moment else "[@START][+DURATION]")


_CHANNEL = Quantity("channel", None, 0, _LAST_CHANNEL, whole=True)
_MOTOR = Quantity("id", None, 0, _LAST_MOTOR, whole=True)


def _share(default: float) -> Quantity:
    return Quantity("share", default, 0.0, 1.0)


KINDS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("slow_boot", "board", "a boot takes so long", (Quantity("seconds", 4.0, 0.0, 600.0),)),
        FaultKind("stall", "board", "the board hangs: nothing is received or sent; pumps and valves stay as they are"),
        FaultKind("reboot", "board", "the board restarts: silent while it boots, targets forgotten, valves vent",
                  is_moment=True),
        FaultKind("disconnect", "line", "the plug is pulled: the port goes away, and comes back as another terminal"),
        FaultKind("mute", "line", "nothing that the board sends arrives; it still receives"),
        FaultKind("drop_bytes", "line", "each byte that the board sends may be lost", (_share(0.01),)),
        FaultKind("drop_request_bytes", "line", "each byte that the host sends may be lost", (_share(0.01),)),
        FaultKind("corrupt", "line", "each byte that the board sends may have a bit flipped", (_share(0.01),)),
        FaultKind("corrupt_requests", "line", "each byte that the host sends may have a bit flipped", (_share(0.01),)),
        FaultKind("merge_lines", "line", "each line end that the board sends may be lost", (_share(0.5),)),
        FaultKind("stuck_valve", "air", "the valve sticks between its seats: the chamber is shut in", (_CHANNEL,)),
        FaultKind("leak", "air", "the chamber leaks to ambient",
                  (_CHANNEL, Quantity("seconds, time constant", 1.0, 0.01, 1e4))),
        FaultKind("blocked_tube", "air", "the tube is kinked: the sensor is cut off from the chamber", (_CHANNEL,)),
        FaultKind("stuck_sensor", "air", "the pressure sensor stands still: it shows what it showed last", (_CHANNEL,)),
        FaultKind("missing_motor", "motors", "a motor answers nothing and moves no more", (_MOTOR,)),
        FaultKind("cut_bus", "motors", "the cable is cut before a motor: it and all behind answer nothing", (_MOTOR,)),
        FaultKind("doubled_motor", "motors", "another motor has the same id: both answer at once", (_MOTOR,)),
        FaultKind("hot_motor", "motors", "a motor is overheated and shuts down", (_MOTOR,)),
        FaultKind("blocked_motor", "motors", "a motor cannot move", (_MOTOR,)),
        FaultKind("torn_tendon", "motors", "a tendon is torn: its motor pulls nothing", (_MOTOR,)),
        FaultKind("deaf_motor", "motors", "a motor answers, but takes nothing that it is told", (_MOTOR,)),
        FaultKind("surging_motor", "motors", "a motor takes half as much current again as its limit", (_MOTOR,)),
        FaultKind("welded_relay", "dead-man", "the relay conducts whatever is asked of it"),
        FaultKind("mocap_silent", "motion capture", "no frames come"),
        FaultKind("mocap_swap", "motion capture", "two markers carry each other's names",
                  (Quantity("marker", "", is_name=True), Quantity("marker", "", is_name=True))),
        FaultKind("mocap_teleport", "motion capture", "a marker is seen elsewhere",
                  (Quantity("metres", 0.1, 0.0, 10.0), Quantity("marker", "", is_name=True))),
        FaultKind("mocap_occlude", "motion capture", "a share of the markers is hidden", (_share(1.0),)),
        FaultKind("scan_truncated", "scanner", "exports are cut short", (_share(0.5),)),
        FaultKind("scan_nan", "scanner", "a share of an export's points is NaN", (_share(0.1),)),
        FaultKind("scan_empty", "scanner", "exports hold no byte"),
        FaultKind("scan_partial_write", "scanner", "half of an export is written in place, the rest comes later",
                  (Quantity("seconds", 1.5, 0.0, 60.0),)),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One fault to come.

    Attributes:
        kind: Kind of the fault.
        values: One for each of the kind's quantities.
        start: Start, s.
        duration: s; infinite for one that stays.
        device: Name, in the robot's description, of the board or bus that fails; empty for the only one.
    """

    kind: FaultKind
    values: tuple[Value, ...] = ()
    start: float = 0.0
    duration: float = math.inf
    device: str = ""

    def __str__(self) -> str:
        """As it is written."""
        values = ":".join(value if isinstance(value, str) else f"{value:.12g}" for value in self.values).rstrip(":")
        lasting = "" if self.duration == math.inf or self.kind.is_moment else f"+{self.duration:.12g}"
        device = f"{self.device}/" if self.device else ""
        return f"{device}{self.kind.name}{'=' if values else ''}{values}@{self.start:.12g}{lasting}"

    def number(self, index: int = 0) -> float:
        """One of its values that is a number."""
        return float(self.values[index])

    @property
    def channel(self) -> int:
        """Channel, or id of the motor, that the fault affects."""
        return int(self.number())


def parse_fault(text: str) -> Fault:
    """Read `[DEVICE/]KIND[=VALUE[:VALUE]][@START][+DURATION]`.

    Raises:
        SoftformError: If the kind is unknown, a value is missing, superfluous or out of its bounds.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise SoftformError(f"'{text}' is not a fault.", "Write KIND[=VALUE][@START][+DURATION], as in stall@10+2.")
    kind = KINDS.get(found["kind"])
    if kind is None:
        raise SoftformError(f"There is no fault '{found['kind']}'.", f"There are: {', '.join(KINDS)}.")
    start = 0.0 if found["start"] is None else _seconds(found["start"])
    duration = math.inf if found["duration"] is None else _seconds(found["duration"])
    if start is None or duration is None:
        raise SoftformError(f"'{text}' does not say when.", "START and DURATION are seconds, as in stall@10+2.")
    if kind.is_moment and found["duration"] is not None:
        raise SoftformError(f"'{kind.name}' happens at once.", f"Write {kind.form}.")
    duration = 0.0 if kind.is_moment else duration
    words = [] if found["values"] is None else found["values"].split(":")
    return Fault(kind, fault_values(kind, words, words), start, duration, found["device"] or "")


def parse_faults(texts: Iterable[str]) -> list[Fault]:
    """Read several, also several in one text with commas between them; empty words are passed over.

    Raises:
        SoftformError: For the reasons of `parse_fault`.
    """
    return [parse_fault(word) for text in texts for word in text.split(",") if word.strip()]


def fault_values(kind: FaultKind, numbers: list[str], names: list[str]) -> tuple[Value, ...]:
    """Values of a fault, defaults where words are too few; of two lists, or of one that is given twice.

    SoftformError if one is missing, superfluous or out of its bounds.
    """
    values: list[Value] = []
    for quantity in kind.values:
        given = names if quantity.is_name else numbers
        if given:
            values.append(quantity.parse(given.pop(0)))
        elif quantity.default is None:
            raise SoftformError(f"'{kind.name}' lacks its {quantity.name}.", f"Write {kind.form}.")
        else:
            values.append(quantity.default)
    if numbers or names:
        left = ":".join(numbers or names)
        raise SoftformError(f"'{kind.name}' has too many values: '{left}' is left over.", f"Write {kind.form}.")
    return tuple(values)


def _seconds(text: str) -> float | None:
    """A finite number that is not negative, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0.0 else None
