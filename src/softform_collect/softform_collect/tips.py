"""Tips of a robot with a named tip, under known values, as the transfer of paper 001 is learned from.

Each tip is a row of a table (CSV, SI units), written as soon as it was captured: values as commanded, and the tip,
empty where it was not seen. The robot goes from one to the next, so that rows tell what was before. Whatever
interrupts, the table is there, and the same command goes on with it: from rest, which is a row of its own. When all are
there, the table is brought into a store, as `import tips --captured --in-order` does with a table of anybody's.
"""

import csv
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

import numpy as np
from tqdm import tqdm

from softform_client.client import ActuatorPath, ShapeClient
from softform_collect.client import START_TIMEOUT, CollectRequest, virtual_stack
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.halton import halton_actuations
from softform_core.importing.tips import import_captured_tips
from softform_core.paths import check_reality, data_dir
from softform_core.robots import TIP_MARKER, Robot, load_robot
from softform_interfaces.action import CaptureShape, FollowWaypoints
from softform_interfaces.msg import MarkerFrame
from softform_ros.stack_state import wait_while_starting

_COORDINATES = ("x", "y", "z")
_MOST_IN_A_ROW = 10
"""Tips in a row that are not seen, after which something is wrong with cameras or marker."""
_CAPTURES = 10
"""Frames of markers whose mean is one tip."""


def collect(request: CollectRequest, say: Callable[[str], None]) -> tuple[Path, int]:
    """Collect tips as `./softform collect` asks for them, on a stack that runs or one on the virtual rig.

    Returns:
        The store, and how many tips were not seen.

    Raises:
        SoftformError: For the reasons of `collect_tips`, or if the stack does not come up.
        KeyboardInterrupt: After Ctrl-C; the robot stays where it is, or vents with the stack that was launched here.
    """
    if request.via != "mocap" or request.by_hand or request.reference_every:
        raise SoftformError("A tip is captured by its marker alone.", "Give --via mocap, without --by-hand and others.")
    with ExitStack() as opened:
        namespace, robot = request.namespace, load_robot(request.robot, "tip")
        output = (data_dir() / robot.name / "tips.zarr" if request.output is None else request.output).absolute()
        if request.attach:
            wait_while_starting(namespace, START_TIMEOUT, say)
        else:
            check_reality(request.reality, robot.body.kind)
            namespace = "softform"
            opened.enter_context(virtual_stack(request, output, 0, say, solvers=True))
        client = opened.enter_context(ShapeClient(namespace))
        if (served := client.robot()).fingerprint() != robot.fingerprint():
            raise SoftformError(f"The stack drives '{served.name}', not '{robot.name}'.", "Give that --robot.")
        bar = opened.enter_context(tqdm(total=request.frames, unit="tip", desc="collect"))

        def show(done: int, note: str) -> None:
            bar.update(done - bar.n)
            if note:
                say(note)

        return output, collect_tips(robot, client, output, request.frames, request.seed, show)


class Leader(Protocol):
    """What moves and captures the robot; a `ShapeClient` is one."""

    def follow(self, path: ActuatorPath) -> FollowWaypoints.Result:
        """Lead it along values of the actuators."""

    def capture(self, *, via: str, captures: int) -> CaptureShape.Result:
        """Capture it as it stands."""


def collect_tips(
    robot: Robot, leader: Leader, output: Path, tips: int, seed: int, say: Callable[[int, str], None]
) -> int:
    """Collect tips until the table has so many, and bring it into the store; returns how many were not seen.

    Args:
        robot: Robot with a tip.
        leader: Moves and captures it.
        output: The store; its table lies beside it, `tips.csv` of `tips.zarr`.
        tips: How many.
        seed: Of the actuations, a Halton sequence.
        say: Takes how many rows there are, and what happened; empty if nothing did.

    Raises:
        SoftformError: If the store is there already, the table is another robot's or seed's, the robot or the cameras
            fail, or the disk is full; all rows up to then are kept.
    """
    if output.exists():
        raise SoftformError(f"{output} is there already.", "Give another --output, or remove it.")
    table = output.with_suffix(".csv")
    asked = halton_actuations(robot.actuation_min, robot.actuation_max, tips, seed)
    with only_writer(output, "collecting tips"):
        rows = TipTable(table, robot)
        rows.check(asked)
        if rows.count < tips:  # whoever goes on begins at rest: what is before it cannot matter more than before row 1
            leader.follow(ActuatorPath(robot.actuators_of(robot.rest_actuation)[None]))
            rows.add(robot.rest_actuation, np.full(robot.tip_dimensions, np.nan))
        missed = 0
        for actuation in asked[rows.count :]:
            leader.follow(ActuatorPath(robot.actuators_of(actuation)[None]))
            tip = tip_of(leader.capture(via="mocap", captures=_CAPTURES).markers, robot)
            rows.add(actuation, tip, number=rows.count)
            missed = missed + 1 if np.isnan(tip).any() else 0
            say(rows.count, f"tip {rows.count} was not seen" if missed else "")
            if missed == _MOST_IN_A_ROW:
                raise SoftformError(
                    f"The marker '{TIP_MARKER}' was not seen {missed} times in a row.",
                    "Look at the cameras and the marker's name. The same command goes on from here.",
                )
    columns, unit = list(_COORDINATES[: robot.tip_dimensions]), robot.actuation_units[0]
    samples, *_ = import_captured_tips(robot, table, robot.actuation_names, columns, "m", unit, output, in_order=True)
    return tips - len(samples.tips)


def tip_of(markers: MarkerFrame, robot: Robot) -> Array:
    """Return the tip (d,) m of captured markers; not a number where it was not seen."""
    with suppress(ValueError):
        index = list(markers.name).index(TIP_MARKER)
        if markers.visible[index]:
            place = markers.position[index]
            return np.array([place.x, place.y, place.z])[: robot.tip_dimensions]
    return np.full(robot.tip_dimensions, np.nan)


class TipTable:
    """The rows so far, each with its number, -1 of one at rest from which the robot went on.

    Args:
        path: Of the CSV file, which is made if it is not there.
        robot: Robot with a tip.

    Attributes:
        count: Rows that were asked for; their numbers are 0, 1, … in their order.

    Raises:
        SoftformError: If it is another robot's, or cannot be read or written.
    """

    def __init__(self, path: Path, robot: Robot) -> None:
        self._path = path
        self._header = ["number", *robot.actuation_names, *_COORDINATES[: robot.tip_dimensions]]
        self._rows = np.empty((0, len(robot.actuation_names)))
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(",".join(self._header) + "\n", encoding="utf-8")
            lines = path.read_text(encoding="utf-8")
            if not lines.endswith("\n"):  # cut off by a crash: that row is captured again
                lines = lines[: lines.rfind("\n") + 1]
                path.write_text(lines, encoding="utf-8")
            header, *rows = list(csv.reader(lines.splitlines()))
        except (OSError, UnicodeDecodeError) as error:
            raise SoftformError(f"{path} cannot be used: {error}.", "Give another --output.") from error
        if header != self._header:
            raise SoftformError(f"{path} is no table of tips of '{robot.name}'.", "Give another --output.")
        numbered = [row for row in rows if row[0] != "-1"]
        self.count = len(numbered)
        if numbered:
            self._rows = np.array(numbered)[:, 1 : 1 + len(robot.actuation_names)].astype(np.float64)

    def check(self, asked: Array) -> None:
        """Reject a table whose rows are of another sequence than actuations (n, m)."""
        known = min(len(asked), self.count)
        if not np.allclose(self._rows[:known], asked[:known], rtol=1e-6, atol=1e-12):
            raise SoftformError(f"{self._path} is of another --seed.", "Give that one, or another --output.")

    def add(self, actuation: Array, tip: Array, number: int = -1) -> None:
        """Append a row: an actuation (m,) and the tip (d,) m, not a number where it was not seen."""
        seen = ["" if np.isnan(one) else f"{one:.9g}" for one in tip]
        row = ",".join([str(number), *(f"{one:.12g}" for one in actuation), *seen])
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(row + "\n")
        except OSError as error:
            raise SoftformError(f"{self._path} cannot be written: {error.strerror}.", "Free disk space.") from error
        self.count += number >= 0
