"""What is recorded while targets stream, and the figures that are made of it."""

from dataclasses import dataclass, field

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.inverse.closest_points import closest_points_on
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ServoState

_S_PER_NS = 1e-9


@dataclass(frozen=True)
class Surface:
    """The true surface of the robot, (N, 3) m, at one moment, ns since the epoch."""

    stamp: int
    points: Array


@dataclass(frozen=True)
class StateSeen:
    """One state of the servo.

    Attributes:
        stamp: When the command was sent, ns since the epoch.
        target: Stamp of the target that it answers, ns since the epoch.
        state: TRACKING or another of `ServoState`.
        mean_error: Predicted, m.
        commands: Counter of the node.
        deadlines_missed: Counter of the node.
    """

    stamp: int
    target: int
    state: int
    mean_error: float
    commands: int
    deadlines_missed: int


@dataclass
class StreamingRecord:
    """Stamps are ns since the epoch.

    Attributes:
        sent: Stamp and place on the path of each target that was published.
        states: States that the servo reported, after each command.
        surfaces: The robot's true surface, as often as the rig looks.
    """

    sent: list[tuple[int, int]] = field(default_factory=list)
    states: list[StateSeen] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)


def punctuality(record: StreamingRecord, since: int) -> dict[str, object]:
    """How many deadlines were met, and how long targets took to be answered.

    Args:
        record: Record of the stream.
        since: ns since the epoch; what was before does not count: the robot was on its way to the path.

    Raises:
        SoftformError: If the servo answered nothing.
    """
    states = [one for one in record.states if one.stamp >= since]
    if len(states) < 2:
        raise SoftformError("The servo reported no commands while targets were streamed.", "See the launch's log.")
    commands = states[-1].commands - states[0].commands
    missed = states[-1].deadlines_missed - states[0].deadlines_missed
    first_answer: dict[int, int] = {}
    for one in states:
        first_answer.setdefault(one.target, one.stamp)
    published = [stamp for stamp, _ in record.sent if stamp >= since]
    latencies = np.array([first_answer[stamp] - stamp for stamp in published if stamp in first_answer]) * _S_PER_NS
    seconds = (states[-1].stamp - states[0].stamp) * _S_PER_NS
    return {
        "seconds": round(seconds, 1),
        "targets": len(published),
        "targets_answered": round(len(latencies) / max(1, len(published)), 4),
        "commands_per_second": round(commands / seconds, 1),
        "deadline_met": round(1.0 - missed / commands, 4),
        "target_to_command_ms": {
            name: round(float(np.percentile(latencies, share)) * 1e3, 1)
            for name, share in (("p50", 50.0), ("p99", 99.0), ("max", 100.0))
        },
        "tracking_share": round(float(np.mean([one.state == ServoState.TRACKING for one in states])), 4),
        "predicted_error_mm": round(float(np.mean([one.mean_error for one in states])) * MM_PER_M, 3),
    }


def surface_error_mm(surface: Array, target: Array) -> float:
    """Mean distance of a surface's points to a target, (N, 3) and (M, 3) m, in mm."""
    return float(closest_points_on(TargetShape(target)).query(surface * MM_PER_M).distances.mean())
