"""Goal of collecting, and its outcome."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from softform_collect.data_set import VIA, asked_actuations, default_output
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.paths import data_dir, runs_dir
from softform_core.robots import Robot
from softform_core.text import printable
from softform_interfaces.action import CollectDataset
from softform_ros.goal_error import GoalCode, Outcome, in_code

OUTPUT_ROOT = "SOFTFORM_OUTPUT_ROOT"
"""Variable that names further folders in which data sets may be made."""

AGAIN = "Then run the same command again; it continues."


@dataclass(frozen=True)
class CollectSettings:
    """SI units.

    Attributes:
        frame: The robot's.
        source: Hardware, or the reality of the rig; a data set has frames of one source only.
        bag: Raw recording of this run; None without one.
        settle_tolerance: Largest difference of a settled value from its command, one for all or (k,), in
            their units.
        settle_timeout: Time allowed to settle, s.
        capture_timeout: s to wait for a fit capture of the settled robot.
        ready_timeout: s within which the driver must publish its state.
        captures_a_frame: Captures of one actuation that are tried before its frame is rejected.
        averaged_markers: Marker frames in one stored frame.
        least_free_disk: Bytes that are left free.
        drift_warning: Share of the robot's size; reference-pose markers that moved further are reported.
        drift_limit: Share of the robot's size; collecting ends if they moved further.
    """

    frame: str
    source: str
    bag: Path | None
    settle_tolerance: Array | float
    settle_timeout: float
    capture_timeout: float
    ready_timeout: float
    captures_a_frame: int
    averaged_markers: int
    least_free_disk: float
    drift_warning: float
    drift_limit: float


@dataclass(frozen=True)
class CollectGoal:
    """A checked goal.

    Attributes:
        via: Capture device: `scanner` or `mocap`.
        frames: Frames that the data set shall have in the end.
        seed: Seed of the actuations.
        output: The store.
        reference_every: Frames between two captures of the reference pose; 0 for none.
    """

    via: str
    frames: int
    seed: int
    output: Path
    reference_every: int = 0


@dataclass(frozen=True)
class CollectOutcome(Outcome):
    """Outcome of a goal."""

    store: Path
    captured: int = 0
    rejections: dict[int, str] = field(default_factory=dict)

    def result(self) -> CollectDataset.Result:
        """Return it as the action's result."""
        return CollectDataset.Result(
            store=str(self.store),
            captured=self.captured,
            rejected=len(self.rejections),
            rejections=[f"frame {number} is rejected: {reason}" for number, reason in sorted(self.rejections.items())],
        )


@in_code(GoalCode.INVALID_GOAL)
def goal_from_message(message: CollectDataset.Goal, robot: Robot) -> CollectGoal:
    """Check a goal.

    Raises:
        GoalError: If nothing is to be collected, by nothing that there is, or to where nothing may be written.
    """
    if message.via not in VIA:
        raise SoftformError(f"Nothing captures via '{message.via}'.", f"Give one of {', '.join(VIA)}.")
    asked_actuations(robot, message.frames, message.seed)
    output = _allowed(message.output) if message.output else default_output(robot)
    if message.reference_every and message.via != "mocap":
        raise SoftformError("Drift is measured by markers.", "Collect via mocap, or without it.")
    return CollectGoal(message.via, message.frames, message.seed, output, message.reference_every)


def _allowed(given: str) -> Path:
    """Return a path that a client may have written to, whoever it is.

    Raises:
        SoftformError: If it is relative, or leaves the folders of data, of runs, and of `OUTPUT_ROOT`, also by a link.
    """
    roots = [
        data_dir(),
        runs_dir(),
        *(Path(root) for root in os.environ.get(OUTPUT_ROOT, "").split(os.pathsep) if root),
    ]
    output = Path(given)
    if not output.is_absolute():
        raise SoftformError(
            f"The output '{printable(given)}' is relative.",
            "Give an absolute path: the node runs elsewhere.",
        )
    try:
        is_inside = ".." not in output.parts and any(root.resolve() in output.resolve().parents for root in roots)
    except (OSError, RuntimeError, ValueError):  # a loop of links, a null byte
        is_inside = False
    if not is_inside:
        raise SoftformError(
            f"The output '{printable(given)}' is not in {' or '.join(map(str, roots))}, where frames may lie.",
            f"Give a path in there, or start the stack with {OUTPUT_ROOT}=FOLDER.",
        )
    return output
