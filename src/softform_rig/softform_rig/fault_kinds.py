"""Kinds of faults, and one fault of such a kind. What families of devices have of their own, their emulations name."""

import math
from dataclasses import dataclass

from softform_core.errors import SoftformError

Value = float | str


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
        value = seconds(text)
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
        device: What fails: `board` and `line` are those of any device on a port, others are of one family.
        does: Effect, in one sentence.
        values: Values after `=`.
        is_moment: Whether it happens at once and has no duration.
    """

    name: str
    device: str
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


def share(default: float) -> Quantity:
    """A value that is a share."""
    return Quantity("share", default, 0.0, 1.0)


_MARKER = Quantity("marker", "", is_name=True)

COMMON = (
    FaultKind("slow_boot", "board", "a boot takes so long", (Quantity("seconds", 4.0, 0.0, 600.0),)),
    FaultKind("stall", "board", "the board hangs: nothing is received or sent; pumps and valves stay as they are"),
    FaultKind("reboot", "board", "the board restarts: silent while it boots, targets forgotten, valves vent",
              is_moment=True),
    FaultKind("disconnect", "line", "the plug is pulled: the port goes away, and comes back as another terminal"),
    FaultKind("mute", "line", "nothing that the board sends arrives; it still receives"),
    FaultKind("drop_bytes", "line", "each byte that the board sends may be lost", (share(0.01),)),
    FaultKind("drop_request_bytes", "line", "each byte that the host sends may be lost", (share(0.01),)),
    FaultKind("corrupt", "line", "each byte that the board sends may have a bit flipped", (share(0.01),)),
    FaultKind("corrupt_requests", "line", "each byte that the host sends may have a bit flipped", (share(0.01),)),
    FaultKind("merge_lines", "line", "each line end that the board sends may be lost", (share(0.5),)),
    FaultKind("mocap_silent", "motion capture", "no frames come"),
    FaultKind("mocap_swap", "motion capture", "two markers carry each other's names", (_MARKER, _MARKER)),
    FaultKind("mocap_teleport", "motion capture", "a marker is seen elsewhere",
              (Quantity("metres", 0.1, 0.0, 10.0), _MARKER)),
    FaultKind("mocap_occlude", "motion capture", "a share of the markers is hidden", (share(1.0),)),
    FaultKind("scan_truncated", "scanner", "exports are cut short", (share(0.5),)),
    FaultKind("scan_nan", "scanner", "a share of an export's points is NaN", (share(0.1),)),
    FaultKind("scan_empty", "scanner", "exports hold no byte"),
    FaultKind("scan_partial_write", "scanner", "half of an export is written in place, the rest comes later",
              (Quantity("seconds", 1.5, 0.0, 60.0),)),
)  # fmt: skip
"""Of any device on a port, and of the devices that look at the body."""


def seconds(text: str) -> float | None:
    """A finite number that is not negative, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0.0 else None
