"""Tips of a robot with a named tip, under known values, as the transfer of paper 001 is learned from.

Each tip is a row of a table (CSV, SI units), written as soon as it was captured: values as commanded, and the tip,
empty where it was not seen. The robot goes from one to the next, so that rows tell what was before. Whatever
interrupts, the table is there, and the same command goes on with it: from rest, which is a row of its own. When all are
there, the table is brought into a store, as `import tips --captured --in-order` does with a table of anybody's.

The next one is always that of those that are missing where the robot is soonest: in the order of the sequence it is on
its way for most of the time, or waits for a chamber to be empty.
"""

import csv
import os
import signal
import time
from collections.abc import Callable, Set
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from std_srvs.srv import Trigger
from tqdm import tqdm

from softform_client.client import ActuatorPath, ShapeClient
from softform_collect.client import ATTACH_TIMEOUT, START_TIMEOUT, CollectRequest, terminate, virtual_stack
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.halton import halton_actuations
from softform_core.importing.tips import import_captured_tips
from softform_core.paths import check_reality, data_dir
from softform_core.robots import TIP_MARKER, Robot, load_robot
from softform_interfaces.action import CaptureShape, FollowWaypoints
from softform_interfaces.msg import MarkerFrame
from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import call_service
from softform_ros.stack_state import wait_while_starting

_COORDINATES = ("x", "y", "z")
_MOST_IN_A_ROW = 10
"""Tips in a row that are not seen, after which something is wrong with cameras or marker."""
_EMPTIES_SECONDS = 5.0
"""What it takes until the last of its air has left a chamber that is to be empty, beyond the way there."""
_CAPTURES = 10
"""Frames of markers whose mean is one tip."""


class CollectedTips(NamedTuple):
    """What was collected.

    Attributes:
        store: Where the tips are.
        seen: How many there are.
        not_seen: Of how many the cameras did not see the marker.
        seconds: That each one took, of those that were collected now.
    """

    store: Path
    seen: int
    not_seen: int
    seconds: float


def collect(request: CollectRequest, say: Callable[[str], None]) -> CollectedTips:
    """Collect tips as `./softform collect` asks for them, on a stack that runs or one on the virtual rig.

    However it ends, but by `kill -9`, the robot is let go of: it vents, or is made safe otherwise.

    Raises:
        SoftformError: For the reasons of `collect_tips`, or if the stack does not come up.
        KeyboardInterrupt: After Ctrl-C or SIGTERM.
    """
    signal.signal(signal.SIGTERM, terminate)
    if request.via != "mocap" or request.by_hand or request.reference_every:
        raise SoftformError("A tip is captured by its marker alone.", "Give --via mocap, without --by-hand and others.")
    with ExitStack() as opened:
        namespace, robot = request.namespace, load_robot(request.robot, "tip")
        output = (data_dir() / robot.name / "tips.zarr" if request.output is None else request.output).absolute()
        if request.attach:
            wait_while_starting(namespace, START_TIMEOUT, say)
            opened.callback(_let_go, namespace, say)
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

        return collect_tips(robot, client, output, request.frames, request.seed, show)


def _let_go(namespace: str, say: Callable[[str], None]) -> None:
    """Have the stack hold the last actuation no longer."""
    server = "inverse_kinematics"
    with BackgroundNode(f"collect_{os.getpid()}_end", namespace) as node:
        answer = call_service(node, server, Trigger, "release", Trigger.Request(), ATTACH_TIMEOUT)
    if answer is None or not answer.success:
        say("the robot could not be let go of, and may hold the last actuation: ./softform stop")


class Leader(Protocol):
    """What moves and captures the robot; a `ShapeClient` is one."""

    def follow(self, path: ActuatorPath) -> FollowWaypoints.Result:
        """Lead it along values of the actuators."""

    def capture(self, *, via: str, captures: int) -> CaptureShape.Result:
        """Capture it as it stands."""


def collect_tips(
    robot: Robot, leader: Leader, output: Path, tips: int, seed: int, say: Callable[[int, str], None]
) -> CollectedTips:
    """Collect tips until the table has so many, and bring it into the store.

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
        missing = [number for number in range(tips) if number not in rows.numbers]
        count = max(1, len(missing))
        seconds = _led(robot, leader, rows, asked, missing, say) / count
    columns, unit = list(_COORDINATES[: robot.tip_dimensions]), robot.actuation_units[0]
    samples, *_ = import_captured_tips(robot, table, robot.actuation_names, columns, "m", unit, output, in_order=True)
    return CollectedTips(output, len(samples.tips), len(rows.numbers) - len(samples.tips), seconds)


def _led(
    robot: Robot, leader: Leader, rows: "TipTable", asked: Array, missing: list[int], say: Callable[[int, str], None]
) -> float:
    """Lead the robot to each of the missing ones of actuations (n, m), and note its tip; returns the time, s."""
    if not missing:
        return 0.0
    values = np.array([robot.actuators_of(one) for one in asked])
    here, missed = robot.actuators_of(robot.rest_actuation), 0
    try:  # whoever goes on begins at rest: what is before it cannot matter more than before row 1
        leader.follow(ActuatorPath(here[None]))
        rows.add(robot.rest_actuation, np.full(robot.tip_dimensions, np.nan))
        begun = time.monotonic()
        while missing:
            number = missing.pop(int(_durations(robot, here, values[missing]).argmin()))
            here = values[number]
            leader.follow(ActuatorPath(here[None]))
            tip = tip_of(leader.capture(via="mocap", captures=_CAPTURES).markers, robot)
            rows.add(asked[number], tip, number)
            missed = missed + 1 if np.isnan(tip).any() else 0
            say(len(rows.numbers), f"tip {number} was not seen" if missed else "")
            if missed == _MOST_IN_A_ROW:
                raise SoftformError(
                    f"The marker '{TIP_MARKER}' was not seen {missed} times in a row.",
                    "Look at the cameras and the marker's name.",
                )
    except SoftformError as error:
        kept = f"{len(rows.numbers)} of {len(asked)} tips are kept; the same command goes on with them."
        raise SoftformError(str(error), kept) from error
    return time.monotonic() - begun


def _durations(robot: Robot, here: Array, there: Array) -> Array:
    """Return about how long a robot takes from actuator values (k,) to others (n, k), s."""
    empties = (there == robot.safe) & (here != robot.safe)
    return np.asarray((np.abs(there - here) / robot.slew_rate).max(axis=1) + _EMPTIES_SECONDS * empties.any(axis=1))


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

    Raises:
        SoftformError: If it is another robot's, or cannot be read or written.
    """

    def __init__(self, path: Path, robot: Robot) -> None:
        self._path = path
        self._header = ["number", *robot.actuation_names, *_COORDINATES[: robot.tip_dimensions]]
        another = SoftformError(f"{path} is no table of tips of '{robot.name}'.", "Give another --output.")
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(",".join(self._header) + "\n", encoding="utf-8")
            lines = path.read_text(encoding="utf-8")
            if not lines.endswith("\n"):  # cut off by a crash: that row is captured again
                lines = lines[: lines.rfind("\n") + 1]
                path.write_text(lines, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SoftformError(f"{path} cannot be used: {error}.", "Give another --output.") from error
        header, *rows = list(csv.reader(lines.splitlines())) or [[]]
        if header != self._header or any(len(row) != len(header) for row in rows):
            raise another
        actuated = slice(1, 1 + len(robot.actuation_names))
        try:
            self._rows = {int(row[0]): np.array(row[actuated], dtype=np.float64) for row in rows if row[0] != "-1"}
        except ValueError as error:
            raise another from error

    @property
    def numbers(self) -> Set[int]:
        """Of the rows so far: their places in the sequence that is asked for."""
        return self._rows.keys()

    def check(self, asked: Array) -> None:
        """Reject a table whose rows are of another sequence than actuations (n, m)."""
        known = [number for number in self._rows if 0 <= number < len(asked)]
        if known and not np.allclose([self._rows[one] for one in known], asked[known], rtol=1e-6, atol=1e-12):
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
        if number >= 0:
            self._rows[number] = actuation
