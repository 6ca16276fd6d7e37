"""Inverse kinematics of a tip along way-points (paper 001, Sec. II): each begins at the solution of the one before.

The paper descends along the gradient of Eq. 6. Here, Levenberg-Marquardt minimises

    O(c) = |p_i - r(p^s(c))|^2 + mu |c - c_{i-1}|^2

(Eq. 1 and a pull to the last actuation) within the working range, with the Jacobian of Eq. 4; c is counted in ranges.
The pull chooses among the actuations of a redundant robot the one nearest to the last, and keeps the step finite where
the Jacobian is singular; mu is so small that a point that can be reached moves by less than a micrometre.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.errors import SoftformError
from softform_core.inverse.box_minimum import box_minimum

Array = NDArray[np.float64]

TOLERANCE = 2e-5
"""Of the workspace's width: a way-point this near counts as reached. The paper stops at 1e-3 (Fig. 1)."""

_PULL = 1e-3  # square root of mu, of the workspace's width
_MOST_ITERATIONS = 60
_LEAST_DAMPING, _MOST_DAMPING = 1e-6, 1e8
_NO_STEP = 1e-9  # of the range
_GRID = 9  # values of each actuation among which a start is looked for


class TipMap(Protocol):
    """What the iteration asks of a model; `TipModel` is one."""

    @property
    def actuation_min(self) -> Array:
        """Lowest actuation, (m,) Pa."""

    @property
    def actuation_max(self) -> Array:
        """Highest actuation, (m,) Pa."""

    @property
    def workspace_width_mm(self) -> float:
        """Unit of tolerances."""

    def tip(self, actuation: ArrayLike) -> Array:
        """Tips (…, n) mm at actuations (…, m) Pa."""

    def tip_and_jacobian(self, actuation: ArrayLike) -> tuple[Array, Array]:
        """Tip (n,) mm and Jacobian (n, m) mm/Pa at one actuation (m,) Pa."""


@dataclass(frozen=True)
class TipPath:
    """Actuations that lead the tip along a path.

    Attributes:
        actuations: (w, m) Pa.
        errors_mm: (w,) distance that the model leaves at each way-point.
        iterations: (w,).
    """

    actuations: Array
    errors_mm: Array
    iterations: NDArray[np.int64]


def follow_path(model: TipMap, points: ArrayLike, start: ArrayLike, *, tolerance_mm: float | None = None) -> TipPath:
    """Actuations for a path of tip positions.

    Args:
        model: N_fk, N_J and, for a real robot, N_s2r.
        points: (w, n) mm in the robot's frame; one point at a time costs the same.
        start: (m,) Pa, where the robot is, or a guess for the first point.
        tolerance_mm: A way-point this near counts as reached; by default `TOLERANCE` of the workspace's width.

    Returns:
        The best actuations found. A way-point that cannot be reached keeps its error.

    Raises:
        SoftformError: If points or start do not fit the model, or are no numbers.
    """
    targets, actuation = checked_path(model, points, start)
    tolerance = TOLERANCE * model.workspace_width_mm if tolerance_mm is None else tolerance_mm
    solved = []
    for target in targets:
        actuation, error, iterations = _solve(model, target, actuation, tolerance)
        solved.append((actuation, error, iterations))
    return TipPath(
        np.array([one[0] for one in solved]),
        np.array([one[1] for one in solved]),
        np.array([one[2] for one in solved], dtype=np.int64),
    )


def start_near(model: TipMap, point: ArrayLike) -> Array:
    """A start (m,) Pa for a path's first point (n,) mm: of a coarse grid of actuations, the one whose tip is nearest.

    Raises:
        SoftformError: If the point does not fit the model.
    """
    axes = np.linspace(model.actuation_min, model.actuation_max, _GRID).T
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    target = checked_path(model, np.atleast_2d(point), grid[0])[0][0]
    nearest = int(np.argmin(np.linalg.norm(model.tip(grid) - target, axis=1)))
    return np.asarray(grid[nearest])


def checked_path(model: TipMap, points: ArrayLike, start: ArrayLike) -> tuple[Array, Array]:
    """Points (w, n) mm and start (m,) Pa, clipped to the working range, as arrays.

    Raises:
        SoftformError: If they do not fit the model, or are no numbers.
    """
    first, targets = np.asarray(start, dtype=np.float64), np.asarray(points, dtype=np.float64)
    if first.shape != model.actuation_min.shape or not np.isfinite(first).all():
        raise SoftformError(
            f"The start {first} is no actuation of {len(model.actuation_min)} values.", "Give each of them in Pa."
        )
    dimensions = model.tip(first).shape[-1]
    if targets.ndim != 2 or targets.shape[1] != dimensions or not np.isfinite(targets).all():
        raise SoftformError(
            f"Way-points of shape {targets.shape} are no finite points of {dimensions} coordinates.",
            f"Give (w, {dimensions}) positions of the tip in the robot's frame.",
        )
    return targets, np.clip(first, model.actuation_min, model.actuation_max)


def _solve(model: TipMap, target: Array, last: Array, tolerance: float) -> tuple[Array, float, int]:
    """Best actuation for one way-point from the last one, its error (mm) and the iterations."""
    low, high = model.actuation_min, model.actuation_max
    span = high - low
    pull = (_PULL * model.workspace_width_mm) ** 2
    unit = np.eye(len(last))
    here, damping = last, _LEAST_DAMPING
    tip, jacobian = model.tip_and_jacobian(here)
    offset = target - tip
    merit = float(offset @ offset)
    for iteration in range(_MOST_ITERATIONS):
        error = float(np.sqrt(offset @ offset))
        if error <= tolerance:
            return here, error, iteration
        moves = jacobian * span
        gradient = pull * (here - last) / span - offset @ moves
        hessian = moves.T @ moves + pull * unit
        scale = float(hessian.trace())
        while True:
            step = _bounded(hessian + damping * scale * unit, gradient, (low - here) / span, (high - here) / span)
            if np.abs(step).max() <= _NO_STEP or damping > _MOST_DAMPING:
                return here, error, iteration
            there = np.clip(here + span * step, low, high)
            tip, jacobian = model.tip_and_jacobian(there)
            offset_there = target - tip
            moved = (there - last) / span
            merit_there = float(offset_there @ offset_there + pull * (moved @ moved))
            if merit_there < merit:
                break
            damping = max(10.0 * damping, 1e-4)
        here, offset, merit, damping = there, offset_there, merit_there, max(0.1 * damping, _LEAST_DAMPING)
    return here, float(np.sqrt(offset @ offset)), _MOST_ITERATIONS


def _bounded(hessian: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    """Minimum of the quadratic model within the bounds; the bounds are mostly far away."""
    step = np.linalg.solve(hessian, -gradient)
    if (step >= lower).all() and (step <= upper).all():
        return np.asarray(step)
    return box_minimum(hessian, gradient, lower, upper)
