"""Iterative closest points (Besl and McKay 1992): the pose step of paper 000, Algorithm 2; millimetres."""

import numpy as np
from numpy.typing import NDArray

from softform_core.inverse.closest_points import ClosestPoints, Matches
from softform_core.registration.rigid import RigidTransform, kabsch

Array = NDArray[np.float64]

_NO_ROTATION = np.eye(3)


def posed_query(target: ClosestPoints, pose: RigidTransform, points: Array) -> Matches:
    """Closest points R c* + t of (P, 3) mm on a target that `pose` has been applied to (Eq. 15)."""
    if not pose.translation.any() and (pose.rotation == _NO_ROTATION).all():
        return target.query(points)
    matches = target.query(pose.apply_inverse(points))
    return Matches(pose.apply(matches.points), pose.rotate(matches.normals), matches.distances, matches.on_border)


def icp(
    points: Array,
    target: ClosestPoints,
    pose: RigidTransform,
    max_iterations: int = 10,
    relative_decrease: float = 1e-4,
) -> tuple[RigidTransform, int]:
    """Pose of the target that brings it closer to the points; never worse than the given one.

    Args:
        points: (P, 3) mm, points of the predicted shape.
        target: The target before any pose.
        pose: Where to start.
        max_iterations: Most matchings.
        relative_decrease: Stop when the squared error falls by less than this part of itself.

    Returns:
        The pose and the number of matchings made.
    """
    best, best_error = pose, np.inf
    for iteration in range(1, max_iterations + 1):
        matches = target.query(pose.apply_inverse(points))
        error = float(matches.distances @ matches.distances)
        if error >= best_error * (1.0 - relative_decrease):
            return (pose if error < best_error else best), iteration
        best, best_error = pose, error
        pose = kabsch(matches.points, points)
    return best, max_iterations
