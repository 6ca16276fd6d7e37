"""Check that a captured cloud follows the commanded actuation: not stuck, not mirrored, no actuator dead.

The simulated shape is what the actuation should have made; reality differs from it by millimetres, a stuck robot or
chamber by much more. Compared are mean heights above a surface over the cells of its parameters, which holes leave out.
A sheet stays over its resting surface; an arm bends away from it by more than its thickness, so heights count above the
simulated shape.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.agreement import check_agreement
from softform_core.frames.quality import COVERAGE_CELLS, cells_of
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.surface.feet import Feet, feet_on
from softform_core.units import MM_PER_M

LEAST_CHANGE_MM = 1.5
"""Least change of the simulated heights, mm, in the mean or for one actuator at its largest, that must be seen."""

STUCK_RATIO = 0.3
"""Least captured change over the simulated one; in the shipped realities it is above 0.9."""

TOO_LOW, TOO_HIGH = -0.35, 0.6
"""Limits of the actuation that a shape shows less the command, over the working range. In the shipped realities,
whose sheets are softer than the simulated one, it lies at -0.15 … 0.42."""

UNEXPLAINED = 0.4
"""Part of a deviation of heights that may be left where one actuator explains it: at most 0.17 of jammed chambers of
the membrane (realities `worn` and of the tests), at least 0.7 of the mannequin's that follow and lie under others."""

_LATEST = 10
"""Latest kept frames with which one of an arm is compared: a stuck robot shows one of them."""

_POINTS = 48 * 48
_ITERATIONS = 4
_HEIGHT_NOISE_MM = 1.0
_EXCESS = 1.3


class ShapeJudge:
    """Compares clouds with the simulated shapes and with frames kept before; a `SoftformError` without N_fk."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._simulated = robot, load_pipeline(robot, _POINTS)
        self._rest = rest_surface(robot).points
        self._size = float(np.ptp(self._rest, axis=0).max())
        self._is_arm = robot.body.goes_around
        self._numbers: list[int] = []
        self._expected: list[Array] = []
        self._heights: list[Array] = []
        self._shapes: list[tuple[Array, Array]] = []
        # Whatever is compiled or loaded at first use is so now, while no robot waits for its next command.
        middle = 0.5 * (robot.actuation_min + robot.actuation_max)
        self.fault(middle, self.expected(middle))

    def keep(self, number: int, actuation: Array, points: NDArray[np.floating]) -> None:
        """Note a frame that is kept: (k,) and (M, 3) m; later ones must differ from it."""
        captured = np.asarray(points, dtype=np.float64)
        self._numbers.append(number)
        if self._is_arm:
            self._shapes.append((actuation, captured[:: max(1, len(captured) // _POINTS)]))
        else:
            self._expected.append(self._simulated_heights(actuation, self._rest)[0])
            self._heights.append(self._mean_heights(captured, self._rest))

    def expected(self, actuation: Array) -> Array:
        """Return simulated shape (P, 3) m over `PatchSet.samples(P)` at an actuation (m,)."""
        return self._simulated.points(actuation) / MM_PER_M

    def fault(self, actuation: Array, points: NDArray[np.floating]) -> str:
        """Say why a cloud (M, 3) m that `assess_cloud` finds fit cannot be of this actuation (k,); empty if it can."""
        captured = np.asarray(points, dtype=np.float64)
        heights = self._mean_heights(captured, self._reference(actuation))
        return (
            self._stuck(actuation, heights)
            or self._misfit(actuation, captured)
            or self._unresponsive(actuation, heights)
        )

    def _apparent_actuation(self, actuation: Array, heights: Array) -> Array:
        """Return the actuation (k,) whose simulated shape is nearest to heights (g * g,) mm, NaN if not captured.

        Where holes hide a chamber, its value stays at the command, `actuation` (k,).
        """
        low, high = self._robot.actuation_min, self._robot.actuation_max
        span = high - low
        upper = low + _EXCESS * span
        found, reference = actuation.astype(np.float64), self._reference(actuation)
        for _ in range(_ITERATIONS):
            expected, slope = self._simulated_heights(found, reference)
            seen = np.isfinite(heights) & np.isfinite(expected)
            # The last rows keep a value that the heights do not determine.
            matrix = np.concatenate([slope[seen] * span / _HEIGHT_NOISE_MM, np.eye(len(span))])
            offset = np.concatenate([(heights - expected)[seen] / _HEIGHT_NOISE_MM, (actuation - found) / span])
            # Bounds with an inside, also where the start lies on one of them.
            bounds = (np.minimum((low - found) / span, -1e-9), np.maximum((upper - found) / span, 1e-9))
            found = found + span * lsq_linear(matrix, offset, bounds).x
        return found

    def _reference(self, actuation: Array) -> Array:
        """Return the surface (P, 3) m above which heights count."""
        return self.expected(actuation) if self._is_arm else self._rest

    def _before(self, reference: Array) -> tuple[list[int], Array, Array]:
        """Return frames that were kept: their numbers, simulated and captured heights (n, g * g) mm."""
        if not self._is_arm:
            return self._numbers, np.array(self._expected), np.array(self._heights)
        latest = self._shapes[-_LATEST:]
        expected = [self._simulated_heights(actuation, reference)[0] for actuation, _ in latest]
        heights = [self._mean_heights(points, reference) for _, points in latest]
        return self._numbers[-_LATEST:], np.array(expected), np.array(heights)

    def _simulated_heights(self, actuation: Array, reference: Array) -> tuple[Array, Array]:
        """Return the mean heights (g * g,) mm, NaN without a point, and their derivative (g * g, k) mm/Pa."""
        points, slope = self._simulated.points_and_jacobian(actuation)
        feet = feet_on(reference, self._robot.patches, points / MM_PER_M)
        risen = np.einsum("px,pxk->pk", feet.normals, slope)
        means = self._cell_means(np.concatenate([MM_PER_M * feet.along_normal[:, None], risen], axis=1), feet)
        return means[:, 0], means[:, 1:]

    def _mean_heights(self, points: Array, reference: Array) -> Array:
        """Return the mean heights (g * g,) mm of points (M, 3) m above a surface, NaN in empty cells."""
        feet = feet_on(reference, self._robot.patches, points)
        return self._cell_means(MM_PER_M * feet.along_normal[:, None], feet)[:, 0]

    def _stuck(self, actuation: Array, heights: Array) -> str:
        if not self._numbers:
            return ""
        reference = self._reference(actuation)
        now = self._simulated_heights(actuation, reference)[0]
        numbers, before, kept = self._before(reference)
        seen = np.isfinite(kept) & np.isfinite(heights) & np.isfinite(before) & np.isfinite(now)
        count = np.maximum(seen.sum(axis=1), 1)
        expected = np.where(seen, np.abs(now - before), 0.0).sum(axis=1) / count
        change = np.where(seen, np.abs(heights - kept), 0.0).sum(axis=1) / count
        same = np.flatnonzero((expected > LEAST_CHANGE_MM) & (change < STUCK_RATIO * expected))
        if not len(same):
            return ""
        alike = int(same[-1])
        return (
            f"it shows the shape of frame {numbers[alike]} (they differ by {change[alike]:.1f} mm, for these "
            f"actuations {expected[alike]:.1f} mm are expected): does the robot move, and does the scanner see it?"
        )

    def _misfit(self, actuation: Array, points: Array) -> str:
        try:
            check_agreement(MM_PER_M * points, self._simulated.points(actuation), self._simulated.patches)
        except SoftformError as error:
            return str(error)
        return ""

    def _unresponsive(self, actuation: Array, heights: Array) -> str:
        apparent = self._apparent_actuation(actuation, heights)
        off = (apparent - actuation) / (self._robot.actuation_max - self._robot.actuation_min)
        wrong = [
            c
            for c in np.flatnonzero((off < TOO_LOW) | (off > TOO_HIGH))
            if self._explains(int(c), actuation, apparent, heights)
        ]
        if not wrong:
            return ""
        names, units = self._robot.actuation_names, self._robot.actuation_units
        listed = ", ".join(
            f"{names[c]} is at {actuation[c]:.4g} {units[c]} and looks like {apparent[c]:.4g} {units[c]}" for c in wrong
        )
        return f"the shape does not follow the actuation: {listed}. Check the devices, and the order of the actuators."

    def _explains(self, actuator: int, actuation: Array, apparent: Array, heights: Array) -> bool:
        """Return whether heights other than the command's are explained only if this actuator is where it seems.

        Another chamber may lie over it: then what it seems to be is what the simulation errs by.
        """
        reference, instead = self._reference(actuation), apparent.copy()
        instead[actuator] = actuation[actuator]
        seeming, followed = (self._simulated_heights(one, reference)[0] for one in (apparent, instead))
        change = np.where(np.isfinite(heights), np.abs(followed - seeming), np.nan)
        most = np.nanmax(change, initial=0.0)
        moved = change > 0.5 * most
        left, before = (float(np.linalg.norm((heights - one)[moved])) for one in (seeming, followed))
        return bool(most > LEAST_CHANGE_MM and left < UNEXPLAINED * before)

    def _cell_means(self, values: Array, feet: Feet) -> Array:
        """Return the mean of values (M, q) over the cells in which their feet lie, (n g g, q), NaN in empty cells."""
        cells, inside = cells_of(feet, self._size, self._robot.patches)
        flat = cells[inside, 0] * COVERAGE_CELLS + cells[inside, 1]
        total = len(self._robot.surfaces) * COVERAGE_CELLS * COVERAGE_CELLS
        count = np.bincount(flat, minlength=total)
        sums = np.stack([np.bincount(flat, weights=column[inside], minlength=total) for column in values.T], axis=1)
        return np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], np.nan)
