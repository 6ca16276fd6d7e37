"""What is known of a running stack at one moment, and whether that is healthy; without ROS."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from softform_core.errors import SoftformError

ACTIVE = "active"
NO_ANSWER = "no answer"
GONE = "gone"
UNMANAGED = ""
"""State of a node without a life cycle."""

LEVELS = ("OK", "WARN", "ERROR", "STALE")
DRIVER = "actuation"
DRIVER_STATES = ("safe", "running", "fault", "offline")

SILENT_AFTER = 3.5
"""Seconds without diagnostics, which come once a second, after which a node's health is stale."""


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
        """What is wrong with it; empty if nothing is."""
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
class DriverStatus:
    """The driver.

    Attributes:
        state: One of `DRIVER_STATES`.
        reason: Why.
        holder: Holder of the lease; empty without one.
        held_for: For how long, s.
    """

    state: str
    reason: str
    holder: str = ""
    held_for: float = 0.0

    @property
    def lease(self) -> str:
        """Who commands, in words."""
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
        driver: None without one.
        motors: Diagnostics of each motor and of their bus; empty without motors.
        held: By node that holds a shape: for how long without renewal, and how long it may, s.
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
        """What is wrong, most important first; empty for a healthy stack."""
        return list(self._troubles())

    def _troubles(self) -> Iterator[str]:
        if self.driver is not None and self.driver.state in ("fault", "offline"):
            yield f"the driver is {'at fault' if self.driver.state == 'fault' else 'offline'}: {self.driver.reason}"
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
        """For JSON; SI units and bytes."""
        return {"healthy": not self.troubles, "troubles": self.troubles, **asdict(self)}


def motors_of(values: Mapping[str, str]) -> dict[str, str]:
    """What a driver's diagnostics say of motors and of their bus: by name."""
    return {name: value for name, value in values.items() if name.split(" ")[0] in ("bus", "motor")}


def held_shape(values: Mapping[str, str]) -> str:
    """What a commander's diagnostics say of a shape that it holds, as `StackStatus.held`; empty if it holds none."""
    return values.get("held without renewal (s)", "") if values.get("holding a shape") == "True" else ""


LEAST_FREE = 1_000_000_000
"""Bytes; hours of recording need more."""


def nothing_runs(namespace: str, domain: int, elsewhere: list[str], other_domains: list[int]) -> SoftformError:
    """What to say if no node runs in a namespace and domain, but some in other ones."""
    if elsewhere:
        step = f"Nodes run in {', '.join(elsewhere)}: ./softform status --namespace {elsewhere[0]}"
    elif other_domains:
        step = f"A stack runs in another domain: ROS_DOMAIN_ID={other_domains[0]} ./softform status"
        if len(other_domains) > 1:
            step += f" (or {', '.join(str(one) for one in other_domains[1:])})"
    else:
        step = "Start one: ./softform launch softform"
    return SoftformError(f"No node runs in {namespace} (ROS_DOMAIN_ID {domain}).", step)
