"""Status of a running stack at one moment, and whether it is healthy; without ROS."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from itertools import islice, zip_longest
from math import isfinite
from typing import Any

from softform_core.errors import SoftformError
from softform_core.text import printable

ACTIVE = "active"
NO_ANSWER = "no answer"
GONE = "gone"
UNMANAGED = ""
"""State of a node without a life cycle."""

LEVELS = ("OK", "WARN", "ERROR", "STALE")
DRIVER = "actuation"

SILENT_AFTER = 3.5
"""Time without diagnostics, which come once a second, after which a node's health is stale, s."""

DRIVER_SILENT_AFTER = 2.5
"""Time without the driver's state, which comes five times a second, after which it is unknown, s."""

_LONGEST = 600
"""Most characters that are shown of a string from somebody else."""


@dataclass(frozen=True)
class NodeStatus:
    """One node.

    Attributes:
        name: Relative to the namespace.
        state: Life-cycle state; `UNMANAGED`, `NO_ANSWER` or `GONE`.
        level: One of `LEVELS`, or empty if it has reported nothing.
        message: Diagnostics of the node in one sentence.
    """

    name: str
    state: str
    level: str
    message: str

    @property
    def trouble(self) -> str:
        """Description of its fault; empty if there is none."""
        if self.state not in (ACTIVE, UNMANAGED):
            return f"{self.name} is {self.state}" if self.state != NO_ANSWER else f"{self.name} does not answer"
        if self.level in ("ERROR", "STALE"):
            return f"{self.name}: {self.message}"
        return ""


@dataclass(frozen=True)
class TopicStatus:
    """One topic that somebody publishes.

    Attributes:
        name: Relative to the namespace; absolute outside of it.
        publishers: Number of publishers.
        rate: Messages a second over the last seconds; 0 without any.
        age: s since the last message was sent; None if none is known.
    """

    name: str
    publishers: int
    rate: float
    age: float | None


@dataclass(frozen=True)
class ActuatorRest:
    """One actuator since it was last made safe; what is not known is False, or None.

    Attributes:
        name: Name in the robot's description.
        asked: Whether its device was asked to make it safe, and it was not driven since.
        acknowledged: Whether the device has acknowledged that.
        at_rest: Whether it was measured at rest.
        value: Last measured value, SI.
    """

    name: str
    asked: bool
    acknowledged: bool
    at_rest: bool
    value: float | None = None

    @property
    def measured(self) -> str:
        """Measured values, in words."""
        return "nothing measured" if self.value is None else f"{self.value:.4g} measured"

    @property
    def words(self) -> str:
        """Safety, in words."""
        asked = "asked" if self.asked else "NOT asked"
        acknowledged = "acknowledged" if self.acknowledged else "NOT acknowledged"
        return f"{asked}, {acknowledged}, {'measured at rest' if self.at_rest else 'NOT measured at rest'}"


@dataclass(frozen=True)
class DriverStatus:
    """The driver.

    Attributes:
        state: Word of its state, as of `softform_ros.driver_words`.
        reason: Reason of the state.
        holder: Holder of the lease; empty without one.
        held_for: Time for which the robot has been held, s.
        fingerprint: Fingerprint of robot, devices and interfaces.
        faults: All faults that `reset` would clear, the first one first.
        warnings: Faults that do not stop it.
        actuators: Safety of each actuator; empty before the driver knows its robot.
        past_known: Whether what the robot did before this driver began cannot matter any more; None if it is not told.
        silent_for: Time since it last said anything, s.
    """

    state: str
    reason: str
    holder: str = ""
    held_for: float = 0.0
    fingerprint: str = ""
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    actuators: tuple[ActuatorRest, ...] = ()
    past_known: bool | None = None
    silent_for: float = field(default=0.0, compare=False)

    @property
    def unsafe(self) -> str:
        """Actuators not known to be at rest, though nothing drives or holds them; empty if there are none."""
        if self.state in ("running", "holding"):
            return ""
        if self.silent_for > DRIVER_SILENT_AFTER:
            return f"the driver has said nothing for {self.silent_for:.0f} s: no actuator is known to be at rest"
        if not self.actuators:
            return "" if self.state == "offline" else "no actuator is known to be at rest"
        moving = [f"{one.name} ({one.measured})" for one in self.actuators if not one.at_rest]
        return f"not measured at rest: {', '.join(moving)}" if moving else ""

    @property
    def lease(self) -> str:
        """Holder of the lease, in words."""
        return f"'{self.holder}' has held it for {self.held_for:.0f} s" if self.holder else "nobody holds it"


@dataclass(frozen=True)
class RecorderStatus:
    """A recording that goes on."""

    node: str
    bag: str
    messages: int
    missing: int


@dataclass(frozen=True)
class DiskStatus:
    """Room where runs or data are kept, bytes."""

    folder: str
    free: int
    total: int


@dataclass(frozen=True)
class StackStatus:
    """The whole stack.

    Attributes:
        namespace: ROS namespace of the stack.
        domain: ROS domain.
        bringup: State of the bring-up manager; empty without one.
        driver: The driver; None without one.
        motors: Diagnostics of each motor and of their bus; empty without motors.
        held: For each node that holds a shape: time without renewal, and its limit, s.
        robots: Robots that the nodes were started for; exactly one in a consistent stack.
        models: Models in use, by node.
        nodes: Nodes by name.
        topics: Topics by name.
        recorders: Recordings that go on.
        disks: Disks of runs and data.
    """

    namespace: str
    domain: int
    bringup: str
    driver: DriverStatus | None
    motors: dict[str, str]
    held: dict[str, str]
    robots: tuple[str, ...]
    models: dict[str, str]
    nodes: tuple[NodeStatus, ...]
    topics: tuple[TopicStatus, ...]
    recorders: tuple[RecorderStatus, ...]
    disks: tuple[DiskStatus, ...]

    @property
    def troubles(self) -> list[str]:
        """Faults, most important first; empty for a healthy stack."""
        return list(self._troubles())

    def _troubles(self) -> Iterator[str]:
        if self.driver is not None:
            if self.driver.unsafe:
                yield self.driver.unsafe
            elif self.driver.silent_for > DRIVER_SILENT_AFTER:
                yield f"the driver has said nothing for {self.driver.silent_for:.0f} s: its state is unknown"
            if self.driver.state not in ("safe", "running", "holding", "making safe"):
                state = "at fault" if self.driver.state == "fault" else self.driver.state
                yield f"the driver is {state}: {'; '.join(self.driver.faults) or self.driver.reason}"
        elif any(node.name == DRIVER for node in self.nodes):
            yield "the driver's state is unknown: it has said nothing"
        if self.bringup and self.bringup != ACTIVE:
            yield f"the stack is {self.bringup}"
        yield from (node.trouble for node in self.nodes if node.trouble)
        yield from (f"{one.missing} messages are missing in {one.bag}" for one in self.recorders if one.missing)
        if len(self.robots) > 1:
            yield f"nodes were started for different robots: {', '.join(self.robots)}"
        for disk in self.disks:
            if disk.free < LEAST_FREE:
                yield f"the disk of {disk.folder} has {disk.free / 1e6:.0f} MB left"

    def as_dict(self) -> dict[str, object]:
        """Return the status for JSON; SI units and bytes."""
        return {"healthy": not self.troubles, "troubles": self.troubles, **asdict(self)}


def made_printable(value: Any) -> Any:
    """Return a status, or part of one, whose strings do nothing to a terminal: they may be anybody's."""
    if isinstance(value, str):
        return printable(value, _LONGEST)
    if isinstance(value, tuple):
        return tuple(made_printable(each) for each in value)
    if isinstance(value, dict):
        return {made_printable(key): made_printable(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: made_printable(getattr(value, one.name)) for one in fields(value)})
    return value


def rest_of_actuators(
    names: Sequence[str],
    asked: Sequence[bool],
    acknowledged: Sequence[bool],
    at_rest: Sequence[bool],
    values: Sequence[float],
) -> tuple[ActuatorRest, ...]:
    """Return what a driver says of its actuators; what it leaves out, or has as NaN, is not known."""
    each = zip_longest(names, asked, acknowledged, at_rest, values, fillvalue=False)
    return tuple(
        ActuatorRest(
            str(name), is_asked, is_acknowledged, rests, value if value is not False and isfinite(value) else None
        )
        for name, is_asked, is_acknowledged, rests, value in islice(each, len(names))
    )


def motors_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return what a driver's diagnostics say of motors and of their bus, by name."""
    return {name: value for name, value in values.items() if name.split(" ")[0] in ("bus", "motor")}


def held_shape(values: Mapping[str, str]) -> str:
    """Return the shape that a commander holds by its diagnostics, as `StackStatus.held`; empty if it holds none."""
    return values.get("held without renewal (s)", "") if values.get("holding a shape") == "True" else ""


LEAST_FREE = 1_000_000_000
"""Least free space on the disk, bytes; hours of recording need more."""


def nothing_runs(namespace: str, domain: int, elsewhere: Sequence[str], other_domains: list[int]) -> SoftformError:
    """Return what to say if no node runs in a namespace and domain, but some in other ones."""
    if elsewhere:
        step = f"Nodes run in {', '.join(elsewhere)}: ./softform status --namespace {elsewhere[0]}"
    elif other_domains:
        step = f"A stack runs in another domain: ROS_DOMAIN_ID={other_domains[0]} ./softform status"
        if len(other_domains) > 1:
            step += f" (or {', '.join(str(one) for one in other_domains[1:])})"
    else:
        step = "Start one: ./softform launch softform"
    return SoftformError(f"No node runs in {namespace} (ROS_DOMAIN_ID {domain}).", step)
