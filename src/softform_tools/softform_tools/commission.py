"""Find which actuator moves when one is asked to: how `softform commission` moves, judges and keeps it."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import numpy as np
from rclpy.node import Node
from scipy.optimize import nnls
from sensor_msgs.msg import PointCloud2

from softform_actuation.state_files import state_file
from softform_client.capture_watch import CaptureWatch, Moment
from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.quality import COVERAGE_CELLS, cells_of
from softform_core.robots import Robot
from softform_core.robots.actuators import Quantity
from softform_core.surface.feet import feet_on
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ActuatorState, DriverState
from softform_ros import qos
from softform_ros.asked import ASKED_SECONDS
from softform_ros.command_lease import CommandLease
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.frames import Frames
from softform_ros.timers import create_steady_timer

Result = TypeVar("Result")

UNCLEAR = "unclear"
"""Name of a motion like that of no actuator of the description."""

BEAT_SECONDS = 0.2
_HOLD_SECONDS, _SETTLE_SECONDS, _LOOK_SECONDS, _REST_SECONDS, _STATE_TIMEOUT = 2.0, 15.0, 15.0, 20.0, 1.0
_POINTS = 60**2

_LEAST_SEEN = 0.3
"""Least share of the surface that both scans must show."""

_STILL, _LEADS = 0.35, 0.5
"""Least shares of its predicted step, and of the largest share, that a moved actuator explains."""

_UNEXPLAINED = 0.7
"""Largest share of a displacement that may stay unexplained: realities differ from the simulation by up to half."""

_WIDTH = 48


class Finding(NamedTuple):
    """Actuators that moved when one was asked to; `UNCLEAR` alone if that cannot be told."""

    asked: str
    seen: tuple[str, ...]


def base_and_steps(robot: Robot, share: float) -> tuple[Array, Array]:
    """Return the safe command in range, (k,), and steps from it, (k, k): row i has actuator i at a share alone."""
    low, high = robot.actuator_min, robot.actuator_max
    base = np.clip(robot.safe, low, high)
    far = np.where(high - base >= base - low, high, low)
    return base, base + np.diag(share * (far - base))


def moved(seen: Array, predicted: Array) -> list[int] | None:
    """Return which actuators moved a surface: their predicted displacements explain the seen one.

    Each may count in part, for real bodies are softer or stiffer, but not below zero.

    Args:
        seen: (P,) mm, NaN where nothing was seen.
        predicted: (k, P) mm, by the step of each actuator.

    Returns:
        Their indices, none if all stood still; None if they do not explain what was seen.

    Raises:
        SoftformError: If too little was seen.
    """
    expected = np.isfinite(predicted).all(axis=0)
    known = np.isfinite(seen) & expected
    if known.sum() < _LEAST_SEEN * max(expected.sum(), 1):
        share = known.sum() / max(expected.sum(), 1)
        raise SoftformError(f"Two scans show {share:.0%} of the surface alike.", "Look from where more of it is seen.")
    field, candidates = seen[known], predicted[:, known]
    parts, _ = nnls(candidates.T, field)
    has_moved = parts >= max(_STILL, _LEADS * parts.max())
    left = float(np.linalg.norm(field - parts[has_moved] @ candidates[has_moved]))
    if not has_moved.any():
        return [] if left < _LEADS * np.linalg.norm(candidates, axis=1).min() else None
    return None if left > _UNEXPLAINED * np.linalg.norm(field) else np.flatnonzero(has_moved).tolist()


class SurfaceSteps:
    """Predicted displacement of the surface by each step, and that between two scans.

    Raises:
        SoftformError: If the robot is no sheet, has no model, or moves no actuator alone.
    """

    def __init__(self, robot: Robot, base: Array, steps: Array) -> None:
        commands = np.vstack([base, steps])
        if not robot.surfaces or robot.body.goes_around:  # an arm bends further than it is thick, even in a small step
            raise SoftformError(f"'{robot.name}' is no sheet, which a scan could tell of.", "Choose --by person.")
        actuations = robot.actuation_of(commands)
        if not np.allclose(robot.actuators_of(actuations), commands):
            raise SoftformError(
                f"Shapes of '{robot.name}' are known for several actuators together only.", "Choose --by person."
            )
        # The simulation alone: a sim-to-real model may have been learned on the very tubes that are in question.
        shapes = load_pipeline(robot, _POINTS).points(actuations)
        self._patches, self._rest, self._size = robot.patches, shapes[0] / MM_PER_M, float(robot.extent.max())
        self._predicted = np.array([self._heights(one / MM_PER_M) for one in shapes[1:]]) - self._heights(self._rest)

    def moved(self, rest: Array, step: Array) -> list[int] | None:
        """Return which actuators moved, like `moved`, by clouds (N, 3) m of the robot at rest and in a step."""
        return moved(self._heights(step) - self._heights(rest), self._predicted)

    def _heights(self, points: Array) -> Array:
        """Return median heights (P,) mm of points (N, 3) m above the cells of the predicted rest; NaN if unseen."""
        feet = feet_on(self._rest, self._patches, points[np.isfinite(points).all(axis=1)])
        cells, inside = cells_of(feet, self._size, self._patches)
        flat = np.where(inside, cells[:, 0] * COVERAGE_CELLS + cells[:, 1], -1)
        found = np.full(len(self._patches) * COVERAGE_CELLS**2, np.nan)
        for cell in np.unique(flat[inside]):
            found[cell] = MM_PER_M * np.median(feet.along_normal[flat == cell])
        return found


PARTS: dict[Quantity, str] = {
    "pressure": "tube",
    "displacement": "tendon",
    "position": "gripper",
    "rotation": "gripper",
}
"""Part that joins an actuator of each quantity to the robot."""


def complaints(findings: Sequence[Finding], robot: Robot) -> list[str]:
    """Return what is wrong, in sentences; two swapped actuators are one. Empty if each moved alone when asked."""
    channel_of = {
        name: f"{device.name} {channel}" if len(robot.devices) > 1 else str(channel)
        for device in robot.devices
        for name, channel in zip(robot.actuators_on(device), device.channels, strict=True)
    }
    told, seen_of, swapped = [], dict(findings), set[str]()
    for asked, seen in findings:
        part = PARTS[robot.actuator_quantities[robot.actuators.index(asked)]]
        other, both = seen[0] if seen else "", " and ".join(seen)
        if seen == (asked,) or asked in swapped:
            continue
        if not seen:
            told.append(f"Nothing moved when {asked} was asked: its {part} is off, kinked or torn.")
        elif UNCLEAR in seen:
            told.append(f"What moved when {asked} was asked is like no step of the description.")
        elif len(seen) > 1:
            told.append(f"{both} moved when {asked} was asked: their {part}s are joined, or a wall is torn.")
        else:
            too = f", and {asked} when {other} was" if seen_of.get(other) == (asked,) else ""
            swapped |= {other} if too else set()
            channels = " and ".join(sorted((channel_of[asked], channel_of[other])))
            told.append(f"{other} moved when {asked} was asked{too}: {part}s or channels {channels} are swapped.")
    return told


def layout(robot: Robot) -> str:
    """Return where each actuator lies, as rows of text; several panels below each other."""
    outlines, lines = robot.body.outlines(), []
    for panel in dict.fromkeys(outline.panel for outline in outlines):
        own = [(one, name) for one, name in zip(outlines, robot.actuators, strict=True) if one.panel == panel]
        left, top = min(one.x for one, _ in own), max(one.y for one, _ in own)
        wide = max(max(one.x for one, _ in own) - left, 1e-9)
        rows: dict[int, str] = {}
        for one, name in sorted(own, key=lambda each: each[0].x):
            row = round(2.0 * (top - one.y) / max(one.height, 1e-9))
            rows[row] = rows.get(row, "").ljust(int(_WIDTH * (one.x - left) / wide)) + f" {name}"
        lines += [panel, *(rows[row] for row in sorted(rows))]
    return "\n".join(lines)


def keep(robot: Robot, adapters: Iterable[str], by: str, share: float, findings: Sequence[Finding]) -> list[str]:
    """Keep what was found beside the latch of each adapter; returns the paths.

    Raises:
        SoftformError: If a file cannot be written.
    """
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "robot": robot.name,
        "command_fingerprint": robot.command_fingerprint(),
        "by": by,
        "share": share,
        "confirmed": not complaints(findings, robot) and {one.asked for one in findings} == set(robot.actuators),
        "seen": {one.asked: list(one.seen) for one in findings},
    }
    paths = [state_file(adapter, "commissioned") for adapter in adapters]
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SoftformError(f"{path.parent} cannot be made: {error}.", "Make it, writable for you.") from error
        write_atomically(path, json.dumps(record, indent=2).encode())
    return [str(path) for path in paths]


class Stepper:
    """Moves the robot of a running driver, one step at a time, each under a lease of its own.

    The thread that waits is the one that commands: whatever keeps it, no command goes out, and the driver vents.

    Attributes:
        standstills: Number of times that this process stood still for longer than a request may be old.
        state: Last state of the driver.
    """

    def __init__(self, node: Node, robot: Robot) -> None:
        self._robot, self._frames = robot, Frames(node)
        self.lease, self.state = CommandLease(node, robot), DriverState(state=DriverState.OFFLINE)
        self._driver = DriverWatch(robot, _STATE_TIMEOUT, source=self.lease.source)
        self._clouds: CaptureWatch[PointCloud2] = CaptureWatch(
            read=lambda one: self._frames.into(robot.base_frame, one)
        )
        self._values: Array | None = None
        self.standstills, self._beaten = 0, time.clock_gettime(time.CLOCK_BOOTTIME)
        node.create_subscription(ActuatorState, "actuator_state", self._on_values, qos.ACTUATOR_STATE_READER)
        node.create_subscription(DriverState, "driver_state", self._on_state, qos.LATCHED_STATE)
        node.create_subscription(PointCloud2, "captured_cloud", self._on_cloud, qos.CAPTURED_CLOUD)
        create_steady_timer(node, BEAT_SECONDS, self._beat)

    def step(self, values: Array, base: Array, epoch: int, look: Callable[[MeasuredValues], Result]) -> Result:
        """Hold values (k,) while somebody looks, then give the lease up, whatever happens: the driver makes safe.

        Args:
            values: Commands of the step.
            base: (k,) where every actuator is safe; motors that are held when they rest go back there first.
            epoch: The driver's, when somebody asked for this step.
            look: Returns what was seen; called when the robot has settled, and commands by `hold` or `cloud`.

        Raises:
            SoftformError: If the lease is denied or lost, the driver is at fault, or the robot does not settle.
        """
        is_holding = self.state.state == DriverState.HOLDING
        self.lease.acquire(epoch)
        try:
            self._values = values
            result = look(self._settled())
            if is_holding:
                self._values = base
                self._settled()
            self.lease.release(goes_on=True)  # the next step is still meant, unless others stop or reset meanwhile
            return result
        finally:
            self._values = None
            self.lease.release()

    def hold(self, settled: MeasuredValues) -> None:
        """Hold the step for a person to look."""
        while time.monotonic() < settled.received + _HOLD_SECONDS:
            self._go_on()
            time.sleep(BEAT_SECONDS / 2.0)

    def rest_cloud(self) -> Array:
        """Capture a cloud of the robot at rest, like `cloud`."""
        still = self._driver.wait_until_still(self._robot.actuator_tolerances.arrive, _REST_SECONDS, lambda: False)
        assert still is not None
        return self.cloud(still)

    def cloud(self, moment: Moment) -> Array:
        """Return the first cloud (N, 3) m captured after a moment; what is held is held on meanwhile.

        Raises:
            SoftformError: If none comes in time, or the lease is lost.
        """
        capture = self._clouds.wait_for_one_after(moment, _LOOK_SECONDS, self._is_lost)
        self._go_on()
        if capture is None:
            raise SoftformError(f"No captured_cloud came within {_LOOK_SECONDS:g} s.", "Look at the scanner.")
        return points_from_cloud(capture.cloud)

    def wait_at_rest(self) -> None:
        """Wait until the driver has measured every actuator at rest, or holds it there as its motors do.

        Raises:
            SoftformError: If it is at fault, is gone, follows another program, or does not say so in time.
        """
        deadline = time.monotonic() + _REST_SECONDS
        while not self.is_at_rest:
            if time.monotonic() > deadline or self.state.state == DriverState.FAULT:
                self._driver.check_ready()
                raise SoftformError(f"The robot is not measured at rest: {self.state.reason}", "See ./softform status.")
            time.sleep(BEAT_SECONDS / 4.0)

    @property
    def is_at_rest(self) -> bool:
        """Return whether the driver reports rest, and nobody commands."""
        state = self.state
        rests = state.state == DriverState.SAFE and bool(state.at_rest) and all(state.at_rest)
        return not state.holder and (rests or state.state == DriverState.HOLDING)

    def _settled(self) -> MeasuredValues:
        assert self._values is not None
        settled = self._driver.wait_until_settled(
            self._values, self._robot.actuator_tolerances.arrive, _SETTLE_SECONDS, time.time(), self._is_lost
        )
        self._go_on()
        assert settled is not None
        return settled

    def _is_lost(self) -> bool:
        """Command what is held once more; whether there was a lease and is none. Waits ask it ten times a second."""
        return self._values is not None and not self.lease.send(self._values)

    def _go_on(self) -> None:
        if self._is_lost():
            raise SoftformError(
                f"The lease was lost, and the driver makes the robot safe: {self.state.reason}",
                "Look at the robot, then commission it again.",
            )

    def _beat(self) -> None:
        before, self._beaten = self._beaten, time.clock_gettime(time.CLOCK_BOOTTIME)
        self.standstills += self._beaten - before > ASKED_SECONDS

    def _on_values(self, message: ActuatorState) -> None:
        self._driver.note_values(message.name, message.value, message.status, seconds_from_stamp(message.header.stamp))

    def _on_state(self, message: DriverState) -> None:
        self.lease.note(message)
        self._driver.note_state(message.state, message.reason, message.holder)
        self.state = message

    def _on_cloud(self, message: PointCloud2) -> None:
        self._clouds.note(message, seconds_from_stamp(message.header.stamp))
