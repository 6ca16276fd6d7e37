"""Inverse kinematics of a tip along waypoints (paper 001, Sec. II): each begins at the solution of the one before.

The paper descends along the gradient of Eqs. 2, 5 and 6. Here, Levenberg-Marquardt minimises

    O(c) = |p_i - r(p^s(c))|^2 + mu |c - c_{i-1}|^2

(Eq. 1 and a pull to the last actuation) within the working range, with the Jacobian of Eq. 4; c is counted in ranges.
The pull chooses among the actuations of a redundant robot the one nearest to the last, and keeps the step finite where
the Jacobian is singular; mu is so small that a point that can be reached moves by less than a micrometre.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.one_point import TipMap, TipPoint
from softform_core.halton import halton_actuations
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_prepared
from softform_core.shapes.features import FeaturePoints
from softform_core.units import MM_PER_M

TOLERANCE = 2e-5
"""Largest distance of a reached waypoint, over the workspace's width. The paper stops at 1e-3 (Fig. 1)."""

_PULL = 1e-3
"""Square root of mu, as a part of the workspace's width."""

_MOST_ITERATIONS = 60
_RELATIVE_DECREASE = 1e-9
_GRID = 9  # values of each actuation among which a start is looked for
_MOST_STARTS = 9**4

TIP_UV = np.zeros((1, 2))
"""Parameters of a tip: a model of one point gives the same everywhere."""

_WEIGHT = np.ones(1)


@dataclass(frozen=True)
class TipPath:
    """Actuations (w, m) that lead the tip along a path; distance that the model leaves, and iterations, (w,) each."""

    actuations: Array
    errors_mm: Array
    iterations: NDArray[np.int64]


def pull_mm2(model: TipMap) -> float:
    """Return mu: the squared error that an actuation a whole range away from the last one is worth, mm^2."""
    return (_PULL * model.workspace_width_mm) ** 2


def tip_wanted_at(place: Array) -> FeaturePoints:
    """Return a place (n,) m of the tip, finite, as a feature point; not checked, as each waypoint would pay for it."""
    wanted = np.zeros((1, 3))
    wanted[0, : len(place)] = place
    return FeaturePoints(TIP_UV, wanted, _WEIGHT)


def follow_path(model: TipMap, points: ArrayLike, start: ArrayLike) -> TipPath:
    """Return actuations for a path of tip positions.

    Args:
        model: N_fk, N_J and, for a real robot, N_s2r.
        points: (w, n) mm in the robot's frame; one point at a time costs the same.
        start: (m,), where the robot is, or a guess for the first point.

    Returns:
        The best actuations found. A waypoint that cannot be reached keeps its error.

    Raises:
        SoftformError: If points or start do not fit the model, or are no numbers.
    """
    targets, actuation = checked_path(model, points, start)
    options = IkOptions(
        model.actuation_min,
        model.actuation_max,
        smoothness_mm2=pull_mm2(model),
        tolerance_mm=TOLERANCE * model.workspace_width_mm,
        relative_decrease=_RELATIVE_DECREASE,
        max_iterations=_MOST_ITERATIONS,
    )
    tip, solved = TipPoint(model), []
    for target in targets:
        term = FeatureTerm(tip, tip_wanted_at(target / MM_PER_M))
        found = solve_prepared(tip, None, replace(options, previous_actuation=actuation), features=term)
        actuation = found.actuation
        solved.append((actuation, found.mean_error_mm, found.iterations))
    actuations, errors, counts = zip(*solved, strict=True)
    return TipPath(np.array(actuations), np.array(errors), np.array(counts, dtype=np.int64))


def start_near(model: TipMap, point: ArrayLike) -> Array:
    """Return a start (m,) for a path's first point (n,) mm: of a coarse grid, the one with the nearest tip.

    Raises:
        SoftformError: If the point does not fit the model.
    """
    low, high = model.actuation_min, model.actuation_max
    if _GRID ** len(low) > _MOST_STARTS:  # a grid of twelve actuations has 10^11 places
        grid = np.array(list(halton_actuations(low, high, _MOST_STARTS, seed=0)))
    else:
        grid = np.stack(np.meshgrid(*np.linspace(low, high, _GRID).T, indexing="ij"), axis=-1).reshape(-1, len(low))
    target = checked_path(model, np.atleast_2d(point), grid[0])[0][0]
    nearest = int(np.argmin(np.linalg.norm(model.tip(grid) - target, axis=1)))
    return np.asarray(grid[nearest])


def checked_path(model: TipMap, points: ArrayLike, start: ArrayLike) -> tuple[Array, Array]:
    """Return points (w, n) mm and start (m,), clipped to the working range, as arrays.

    Raises:
        SoftformError: If they do not fit the model, or are no numbers.
    """
    first, targets = np.asarray(start, dtype=np.float64), np.asarray(points, dtype=np.float64)
    if first.shape != model.actuation_min.shape or not np.isfinite(first).all():
        raise SoftformError(
            f"The start {first} is no actuation of {len(model.actuation_min)} values.", "Give one number for each."
        )
    dimensions = model.tip(first).shape[-1]
    if targets.ndim != 2 or targets.shape[1] != dimensions or not np.isfinite(targets).all():
        raise SoftformError(
            f"Waypoints of shape {targets.shape} are no finite points of {dimensions} coordinates.",
            f"Give (w, {dimensions}) positions of the tip in the robot's frame.",
        )
    return targets, np.clip(first, model.actuation_min, model.actuation_max)
