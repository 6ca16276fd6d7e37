"""Find which actuator moves when one is asked to: what `softform commission` asks for, and how it judges what moved."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.quality import COVERAGE_CELLS, cells_of
from softform_core.robots import Robot
from softform_core.robots.actuators import Quantity
from softform_core.surface.feet import feet_on
from softform_core.units import MM_PER_M

UNCLEAR = "unclear"
"""Name of a motion like that of no actuator of the description."""

_POINTS = 60**2

_LEAST_SEEN = 0.3
"""Least share of the surface that both scans must show."""

_STILL, _LEADS = 0.35, 0.5
"""Least shares of its predicted step, and of the largest share, that a moved actuator explains."""

_UNEXPLAINED = 0.7
"""Largest share of a displacement that may stay unexplained: realities differ from the simulation by up to half."""

_REGISTERED = 0.02
"""Share of the robot's size within which a scan at rest lies on the predicted rest, if the scanner is registered."""

_SAME_COMMAND = 1e-6
"""Share of its range by which a command may differ from that of the same actuation."""

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


def all_together(robot: Robot, base: Array, steps: Array) -> Array | None:
    """Return the command (k,) of all `base_and_steps` together; None if the robot never sets them so.

    Antagonists pull against each other: what the description leaves out between them is not tried out either.
    """
    together = base + (steps - base).sum(axis=0)
    span = robot.actuator_max - robot.actuator_min
    nearest = robot.actuators_of(robot.actuation_of(together))
    return together if (np.abs(nearest - together) <= _SAME_COMMAND * span).all() else None


def shape_complaint(error_mm: float, moved_mm: float) -> str:
    """Return what is wrong with a test shape that moved, and moved otherwise than predicted, by so much; or nothing."""
    if error_mm <= _UNEXPLAINED * moved_mm:
        return ""
    return (
        f"All together moved the surface by {moved_mm:.1f} mm, and {error_mm:.1f} mm otherwise than predicted: the "
        "description is of another robot, or the scanner was moved."
    )


def leak_complaints(leaks: Mapping[str, str], robot: Robot) -> list[str]:
    """Return a sentence for each actuator that leaks though its pump holds it, as the driver says of it."""
    return [
        f"{name} leaks, though its pump holds it, with a time constant of {leaks[name]}: look at its tube."
        for name in robot.actuators
        if name in leaks
    ]


class SurfaceSteps:
    """Predicted displacement of the surface by each step, and by all of them together, and those between two scans.

    Raises:
        SoftformError: If the robot is no sheet, has no model, or moves no actuator alone.
    """

    def __init__(self, robot: Robot, base: Array, steps: Array) -> None:
        if not robot.surfaces or robot.body.goes_around:  # an arm bends further than it is thick, even in a small step
            raise SoftformError(f"'{robot.name}' is no sheet, which a scan could tell of.", "Choose --by person.")
        together = all_together(robot, base, steps)
        if together is None or not np.allclose(robot.actuators_of(robot.actuation_of(steps)), steps):
            raise SoftformError(
                f"Shapes of '{robot.name}' are known for several actuators together only.", "Choose --by person."
            )
        actuations = robot.actuation_of(np.vstack([base, steps, together]))
        # The simulation alone: a sim-to-real model may have been learned on the very tubes that are in question.
        shapes = load_pipeline(robot, _POINTS).points(actuations)
        self._patches, self._rest, self._size = robot.patches, shapes[0] / MM_PER_M, float(robot.extent.max())
        predicted = np.array([self._heights(one / MM_PER_M) for one in shapes[1:]]) - self._heights(self._rest)
        self._predicted, self._together = predicted[:-1], predicted[-1]

    def moved(self, rest: Array, step: Array) -> list[int] | None:
        """Return which actuators moved, like `moved`, by clouds (N, 3) m of the robot at rest and in a step."""
        return moved(self._heights(step) - self._heights(rest), self._predicted)

    def check_registered(self, rest: Array) -> float:
        """Return the median distance, mm, of a cloud (N, 3) m of the robot at rest to the predicted rest.

        Raises:
            SoftformError: If the scanner is not where it is said to be, or sees next to nothing of the robot.
        """
        heights = np.abs(self._heights(rest))
        seen = np.isfinite(heights)
        distance = float(np.median(heights[seen])) if seen.any() else float("inf")
        if seen.mean() < _LEAST_SEEN or distance > _REGISTERED * self._size * MM_PER_M:
            raise SoftformError(
                f"The scan at rest shows {seen.mean():.0%} of the surface, {distance:.1f} mm from where it should be.",
                "Register the scanner (./softform register), or correct scanner_pose.",
            )
        return distance

    def shape_errors(self, rest: Array, step: Array) -> tuple[float, float]:
        """Return how far all steps together moved the surface otherwise than predicted, and moved it; means, mm.

        Args:
            rest: (N, 3) m, cloud of the robot at rest.
            step: (N, 3) m, cloud under `all_together`.
        """
        seen = self._heights(step) - self._heights(rest)
        known = np.isfinite(seen) & np.isfinite(self._together)
        if not known.any():
            return float("nan"), float("nan")
        return float(np.abs(seen - self._together)[known].mean()), float(np.abs(seen[known]).mean())

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
