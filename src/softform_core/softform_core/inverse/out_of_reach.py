"""Check whether a plan fits: the error to its target over what the robot can deform. Millimetres.

A target that lies nowhere near has a nearest shape, too, often with every actuation at its end. Nobody means that one.
"""

from collections.abc import Callable

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_CORNERS, _FEW_CORNERS = 64, 16
"""Corners of the working range that are searched for the largest deformation: a robot deforms most at corners. Of a
model that solves for each shape few: on an arm of three sections 16 find 98 % of what 64 do."""

_FEWEST = 2
_ONE_WAY = 0.5
"""Least share of the mean error that a miss's mean vector has if the miss has a direction."""


class OutOfReachError(SoftformError):
    """The nearest shape that the robot can take is too far from the target."""


def largest_deformation(points_of: Callable[[Array], Array], low: Array, high: Array, is_solved: bool = False) -> float:
    """Return the largest mean distance between two shapes of a robot, mm.

    Args:
        points_of: Returns points (n, ..., d) mm of shapes at actuations (n, k).
        low: (k,) lowest actuation.
        high: (k,) highest one.
        is_solved: Whether each shape costs a solve: fewer corners are asked for, and those without a balance left out.

    Raises:
        SoftformError: If no two shapes are to be had, for the reason of the last.
    """
    corners = np.where(np.random.default_rng(0).random((_CORNERS, len(low))) < 0.5, low, high)
    actuations = np.unique(np.vstack([low, high, corners[:_FEW_CORNERS] if is_solved else corners]), axis=0)
    shapes = _solved(points_of, actuations) if is_solved else np.asarray(points_of(actuations))
    shapes = shapes.reshape(len(shapes), -1, shapes.shape[-1])
    return max(float(np.linalg.norm(shapes - shape, axis=2).mean(axis=1).max()) for shape in shapes)


def _solved(points_of: Callable[[Array], Array], actuations: Array) -> Array:
    """Points of those actuations (n, k) at which there is a shape."""
    found: list[Array] = []
    error: SoftformError | None = None
    for actuation in actuations:
        try:
            found.append(np.asarray(points_of(actuation[None]))[0])
        except SoftformError as wrong:
            error = wrong
    if error is not None and len(found) < _FEWEST:
        raise error
    return np.array(found)


def check_reach(
    mean_error_mm: float, miss_mm: Array, most_mm: float, what: str = "target", cut_short: bool = False
) -> None:
    """Reject a plan that does not fit.

    Args:
        mean_error_mm: Mean distance that the plan leaves.
        miss_mm: (d,) mean vector from the predicted shape to the target.
        most_mm: Largest mean distance of a plan that fits.
        what: Is to be reached, for the message.
        cut_short: Whether the solver's time was up before it had found the nearest shape.

    Raises:
        OutOfReachError: If it is further off than that, with distance and direction.
    """
    if mean_error_mm <= most_mm:
        return
    length = float(np.linalg.norm(miss_mm))
    if length >= _ONE_WAY * mean_error_mm:
        direction = ", ".join(f"{part:.2f}" for part in miss_mm / length)
        side = f"it lies {length:.1f} mm away in the direction ({direction}) of the robot's frame"
    else:
        side = "it lies on several sides: it is turned, upside down, or of another size"
    missed = f"misses it by {mean_error_mm:.1f} mm in the mean, more than {most_mm:.1f} mm; {side}"
    next_step = "Check its place, orientation, size and unit."
    if cut_short:
        raise OutOfReachError(
            f"The time for solving was up, and the {what} may be out of reach: the nearest shape until then {missed}.",
            f"Allow more max_time. {next_step}",
        )
    raise OutOfReachError(f"The {what} is out of reach: the nearest shape {missed}.", next_step)
