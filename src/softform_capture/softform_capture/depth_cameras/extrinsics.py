"""Poses of depth cameras in the robot's frame, from points that are identified in their clouds (paper 004, Sec. V-A).

As there: corresponding points in each camera's frame and in the robot's, and the closed-form optimal rigid motion.
Beyond it, points whose place on the robot is unknown but which several cameras see tie these cameras together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, are_in_line, kabsch

Points = Mapping[str, Array]
"""Places (3,) m of points by name."""

_FEWEST = 3
_ITERATIONS = 1000
_CONVERGED = 1e-9  # m


@dataclass(frozen=True)
class CameraExtrinsics:
    """Pose of a camera, and how well it fits its points.

    Attributes:
        motion: Takes the camera's frame into the robot's.
        residual: Root of the mean squared distance of its points from their places, m.
        largest: Largest of these distances, m.
        worst: The name of that point.
        points: Number of points used.
    """

    motion: RigidTransform
    residual: float
    largest: float
    worst: str
    points: int


def register_cameras(seen: Mapping[str, Points], places: Points) -> dict[str, CameraExtrinsics]:
    """Return poses of cameras that bring what each sees, in its own frame, onto each other and `places`: least squares.

    Places that are not known are found with the poses, by turns, until nothing moves.

    Raises:
        SoftformError: If a camera shares fewer than three points, not in line, with the robot or with cameras that do.
    """
    counted = [name for points in seen.values() for name in points]
    shared = {name for name in counted if counted.count(name) > 1} - set(places)
    known = {name: np.asarray(place, dtype=np.float64) for name, place in places.items()}
    motions: dict[str, RigidTransform] = {}
    for _ in range(_ITERATIONS):
        for camera, points in seen.items():
            names = [name for name in points if name in known]
            at = np.array([known[name] for name in names])
            if len(names) >= _FEWEST and not are_in_line(at):
                motions[camera] = kabsch(np.array([points[name] for name in names]), at)
        moved = _renew(known, shared, seen, motions)
        if moved < _CONVERGED:
            break
    unregistered = set(seen) - set(motions)
    if unregistered:
        raise SoftformError(
            f"Camera {', '.join(sorted(unregistered))} shares fewer than {_FEWEST} points with the robot, or in line.",
            "Identify more points, well apart, whose place on the robot is known or which another camera sees too.",
        )
    return {camera: _judged(motions[camera], points, known) for camera, points in seen.items()}


def _renew(
    known: dict[str, Array], shared: set[str], seen: Mapping[str, Points], motions: Mapping[str, RigidTransform]
) -> float:
    """Put shared points where the registered cameras see them on average; returns the longest way that one went, m."""
    moved = 0.0
    for name in shared:
        sights = [motion.apply(seen[camera][name]) for camera, motion in motions.items() if name in seen[camera]]
        if sights:
            place = np.mean(sights, axis=0)
            moved = max(moved, float(np.linalg.norm(place - known[name])) if name in known else np.inf)
            known[name] = place
    return moved


def _judged(motion: RigidTransform, points: Points, known: Points) -> CameraExtrinsics:
    names = [name for name in points if name in known]
    off = np.array([np.linalg.norm(motion.apply(points[name]) - known[name]) for name in names])
    worst = int(off.argmax())
    return CameraExtrinsics(motion, float(np.sqrt(np.mean(off**2))), float(off[worst]), names[worst], len(names))
