"""Rejects shapes that cannot be a target, and says why."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

MIN_POINTS = 4
"""Fewer points fix no surface."""

MAX_POINTS = 2_000_000
"""More points than a scan of a robot has; they would only cost memory, and time to build a search tree."""

SIZE_RATIO = 20.0
"""A target more than this many times larger or smaller than the robot is a mistake of unit."""

_UNITS = {"millimetres": MM_PER_M, "centimetres": 100.0}
_FARTHEST = 3.0  # robot's sizes, of a place that somebody may want
_DEGENERATE = 1e-9
_FEWEST_AGAIN = 10
_SHARE_AGAIN = 0.01


def check_points(points: ArrayLike, what: str = "shape") -> NDArray[np.float64]:
    """Return `points` of any unit as an (N, 3) float array if they can describe a surface; `what` names them in errors.

    Raises:
        SoftformError: If there are no points, fewer than `MIN_POINTS` or more than `MAX_POINTS`; on a wrong shape, NaN
            or infinity; if all points coincide or lie on one line.
    """
    try:
        values = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SoftformError(
            f"The points of the {what} are not an array of numbers: {error}.", "Give points as an (N, 3) array."
        ) from error
    if values.size == 0:
        raise SoftformError(f"The {what} is empty.", "Give a shape with points in it.")
    if values.ndim != 2 or values.shape[1] != 3:
        raise SoftformError(f"The {what} has shape {values.shape}.", "Give points as an (N, 3) array of x, y, z.")
    check_count(len(values), what)
    if not np.isfinite(values).all():
        not_finite = ~np.isfinite(values).all(axis=1)
        raise SoftformError(
            f"{int(not_finite.sum())} of {len(values)} points of the {what} are NaN or infinite, "
            f"the first of them point {int(np.flatnonzero(not_finite)[0])}.",
            "Remove points that were not measured before sending the shape.",
        )
    columns = np.ascontiguousarray(values.T)  # numpy takes means and extents of rows ten times as fast
    centred = columns - columns.mean(axis=1, keepdims=True)
    size = float(np.abs(centred).max())
    # An offset far larger than the shape leaves rounding noise where coincident points should have none.
    noise = _DEGENERATE * max(float(np.abs(columns).max()), size)
    if size <= noise:
        raise SoftformError(f"All points of the {what} coincide.", "Give points that lie on a surface.")
    # Eigenvalues are squared lengths: of noise N eps size^2, of a line's width nothing.
    part = centred / size
    spread = np.sqrt(np.maximum(np.linalg.eigvalsh(part @ part.T / len(values)), 0.0))
    if spread[1] <= 1e-6:
        raise SoftformError(f"All points of the {what} lie on one line.", "Give points that lie on a surface.")
    return values


def measured(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points (N, 3) of a cloud were measured, (N,): devices write NaN, infinity or (0, 0, 0) for what was not.

    A single point at the origin may be one of the surface; several cannot be.
    """
    nowhere = (points == 0.0).all(axis=1)
    finite = np.isfinite(points).all(axis=1)
    return np.asarray(finite & ~nowhere if nowhere.sum() > 1 else finite)


def one_place(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points (N, 3) of a cloud lie all at one place, (N,): what was not measured, once a scanner's pose moved it.

    Where scans were merged or rounded, places of a surface come more than once, too; none is a hundredth of a scan.
    """
    # Along this direction no two places fall together but by chance; whole rows take ten times as long to sort.
    _, place, counts = np.unique(points @ [1.0, np.pi, np.e], return_inverse=True, return_counts=True)
    largest = int(counts.argmax())
    if counts[largest] < max(_FEWEST_AGAIN, _SHARE_AGAIN * len(points), _FEWEST_AGAIN * np.median(counts)):
        return np.zeros(len(points), dtype=np.bool_)
    return np.asarray(place.ravel() == largest)


def check_count(count: int, what: str = "shape") -> None:
    """Reject a number of points that no surface or no memory stands.

    Raises:
        SoftformError: If it lies outside `MIN_POINTS` … `MAX_POINTS`.
    """
    if count < MIN_POINTS:
        raise SoftformError(
            f"The {what} has {count} point{'' if count == 1 else 's'}; at least {MIN_POINTS} are needed.",
            "Give more points of the surface.",
        )
    if count > MAX_POINTS:
        raise SoftformError(
            f"The {what} has {count} points; at most {MAX_POINTS} are read.",
            "Reduce it first; a few thousand points describe any shape that the robot can take.",
        )


def check_scale(points: NDArray[np.float64], what: str, name: str, size: float) -> None:
    """Reject places (N, 3) m, `what` of a robot, so far from its origin that their unit must be wrong.

    Raises:
        SoftformError: If one is.
    """
    distances = np.linalg.norm(points, axis=1)
    furthest = int(distances.argmax())
    if distances[furthest] > SIZE_RATIO * size:
        raise SoftformError(
            f"{what} {furthest + 1} is {distances[furthest]:.3g} m from the origin; '{name}' is {size:.3g} m large.",
            f"Give metres, not {units_within(distances[furthest] / size)}, in the robot's frame.",
        )


def units_within(ratio: float) -> str:
    """Units in which a place may be given that is so many times farther away than the robot is large, in metres."""
    return "millimetres or centimetres" if ratio <= _FARTHEST * _UNITS["centimetres"] else "millimetres"


def check_target(points: ArrayLike, robot: Robot, what: str = "target") -> NDArray[np.float64]:
    """Return `points`, m, as an (N, 3) float array if `robot` may be asked to take their shape, or has it.

    `what` names them in the error message, such as "scan".

    Raises:
        SoftformError: For the reasons of `check_points`, and if the size of the shape shows that its unit is wrong.
    """
    values = check_points(points, what)
    size = float(np.linalg.norm(np.ptp(np.ascontiguousarray(values.T), axis=1)))
    robot_size = float(np.linalg.norm(robot.extent))
    ratio = size / robot_size
    if 1.0 / SIZE_RATIO <= ratio <= SIZE_RATIO:
        return values
    facts = f"The {what} is {size:.4g} m across and robot '{robot.name}' is {robot_size:.3g} m"
    # The unit in which lengths are so many times too large, or too small once converted twice; empty if none fits.
    off_by = max(ratio, 1.0 / ratio) if ratio > 0.0 else np.inf
    times, factor = min(_UNITS.items(), key=lambda one: abs(np.log(off_by / one[1])))
    times = times if 1.0 / SIZE_RATIO <= off_by / factor <= SIZE_RATIO else ""
    if ratio > SIZE_RATIO:
        if times:
            raise SoftformError(
                f"{facts}: the {what} seems to be in {times}.", f"State the unit, or divide the points by {factor:g}."
            )
        raise SoftformError(
            f"{facts}: the {what} is too large.", "Check its unit and for stray points, and scale it to the robot."
        )
    if times:
        raise SoftformError(
            f"{facts}: the {what} seems to have been converted from {times} twice.",
            f"State the unit m, or multiply the points by {factor:g}.",
        )
    raise SoftformError(f"{facts}: the {what} is too small.", "Check its unit, and scale it to the robot.")
