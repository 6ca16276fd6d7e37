"""Align a motion-capture system's frame with the robot's, by markers on the robot's rigid base."""

from collections.abc import Mapping, Sequence

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, are_in_line, kabsch

_FEWEST = 3


def base_alignment(
    names: Sequence[str], positions: Array, base_markers: Mapping[str, Sequence[float]], largest_residual: float
) -> tuple[RigidTransform, float]:
    """Return the least-squares motion that brings the visible base markers to their places on the robot (Kabsch).

    Args:
        names: Names of the captured markers.
        positions: (M, 3) m in the capture system's frame, NaN where missing.
        base_markers: Name -> place in the robot's frame, m.
        largest_residual: Root of the mean squared distance, m, beyond which markers were moved or mixed up.

    Returns:
        The motion, and that residual, m.

    Raises:
        SoftformError: If fewer than three base markers are visible, they stand in line, or the residual is too large.
    """
    seen = [index for index, name in enumerate(names) if name in base_markers and np.isfinite(positions[index]).all()]
    if len(seen) < _FEWEST:
        raise SoftformError(
            f"{len(seen)} of the base markers {', '.join(base_markers)} are visible, {_FEWEST} are needed.",
            "Clear the cameras' view of the robot's base, and check its markers' names.",
        )
    captured = positions[seen]
    places = np.array([base_markers[names[index]] for index in seen], dtype=np.float64)
    if are_in_line(places):
        raise SoftformError("The visible base markers stand in line.", "Clear the view of another base marker.")
    motion = kabsch(captured, places)
    residual = float(np.sqrt(np.square(motion.apply(captured) - places).sum(axis=1).mean()))
    if residual > largest_residual:
        raise SoftformError(
            f"The base markers are {residual:.4f} m off their places, more than {largest_residual:.4f} m.",
            "Check their names, base_markers of the robot's description, and that the system reports metres.",
        )
    return motion, residual
