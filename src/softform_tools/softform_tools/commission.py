"""Which actuator moves when one is asked to: how `softform commission` moves, judges and keeps it."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
"""Stands for what moved like no actuator of the description."""

BEAT_SECONDS = 0.2
_HOLD_SECONDS, _SETTLE_SECONDS, _LOOK_SECONDS, _REST_SECONDS, _STATE_TIMEOUT = 2.0, 15.0, 15.0, 20.0, 1.0
_POINTS = 60**2

_LEAST_SEEN = 0.3
"""Share of the surface that both scans must show."""

_STILL, _LEADS = 0.35, 0.5
"""An actuator has moved that explains this part of its predicted step, and of the largest part at least."""

_UNEXPLAINED = 0.7
"""Part of a displacement that may be left: realities differ from the simulation by up to half."""

_WIDTH = 48


class Finding(NamedTuple):
    """Which actuators moved when one was asked to; `UNCLEAR` alone if that cannot be told."""

    asked: str
    seen: tuple[str, ...]


def base_and_steps(robot: Robot, share: float) -> tuple[Array, Array]:
    """The safe command within the range, (k,), and the steps from it, (k, k): row i has actuator i at a share alone."""
    low, high = robot.actuator_min, robot.actuator_max
    base = np.clip(robot.safe, low, high)
    far = np.where(high - base >= base - low, high, low)
    return base, base + np.diag(share * (far - base))


def moved(seen: Array, predicted: Array) -> list[int] | None:
    """Which actuators moved a surface: whose predicted displacements explain the seen one.

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
    """What each step is predicted to do to the surface, and what two scans show that it did.

    Raises:
        SoftformError: If the robot has no surface or no model, or moves no actuator alone.
    """

    def __init__(self, robot: Robot, base: Array, steps: Array) -> None:
        commands = np.vstack([base, steps])
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
        """As `moved`, by clouds (N, 3) m of the robot at rest and in a step."""
        return moved(self._heights(step) - self._heights(rest), self._predicted)

    def _heights(self, points: Array) -> Array:
        """Median heights (P,) mm of points (N, 3) m above the cells of the predicted rest; NaN where none is seen."""
        feet = feet_on(self._rest, self._patches, points[np.isfinite(points).all(axis=1)])
        cells, inside = cells_of(feet, self._size, self._patches)
        flat = np.where(inside, cells[:, 0] * COVERAGE_CELLS + cells[:, 1], -1)
        found = np.full(len(self._patches) * COVERAGE_CELLS**2, np.nan)
        for cell in np.unique(flat[inside]):
            found[cell] = MM_PER_M * np.median(feet.along_normal[flat == cell])
        return found


def complaints(findings: Sequence[Finding], robot: Robot) -> list[str]:
    """What is wrong, in sentences; two that are swapped are one. Empty if each actuator moved alone when asked."""
    channel_of = {
        name: f"{device.name} {channel}" if len(robot.devices) > 1 else str(channel)
        for device in robot.devices
        for name, channel in zip(robot.actuators_on(device), device.channels, strict=True)
    }
    part = "tube" if robot.quantity == "pressure" else "tendon"
    told, seen_of, swapped = [], dict(findings), set[str]()
    for asked, seen in findings:
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
    """Where each actuator lies, as rows of text; empty if the body does not tell."""
    outlines, lines = robot.body.outlines(), []
    for panel in dict.fromkeys(outline.panel for outline in outlines):
        own = [(o, n) for o, n in zip(outlines, robot.actuators, strict=True) if o.panel == panel]
        left, top = min(o.x for o, _ in own), max(o.y for o, _ in own)
        wide = max(max(o.x for o, _ in own) - left, 1e-9)
        rows: dict[int, str] = {}
        for one, name in sorted(own, key=lambda each: each[0].x):
            number, place = round(2.0 * (top - one.y) / max(one.height, 1e-9)), int(_WIDTH * (one.x - left) / wide)
            rows[number] = f"{rows[number]} {name}" if number in rows else ""
            rows[number] = (
                (rows[number].removesuffix(f" {name}").ljust(place) + " " + name)
                if rows[number]
                else " " * place + " " + name
            )
        lines += [panel, *(rows[number] for number in sorted(rows))]
    return "\n".join(lines)


class Stepper:
    """Moves the robot of a running driver, one step at a time, each under a lease of its own."""
