"""Captured frames: what sim-to-real learning is told of the real robot (paper 000, Secs. II-C and III)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.units import MM_PER_M

Array = NDArray[np.float64]

_LEAST_POINTS = 100
_LARGEST_COORDINATE_M = 10.0
"""A larger coordinate means a cloud in millimetres: no robot here is ten metres long."""


@dataclass(frozen=True)
class Frames:
    """Actuations with the clouds captured under them; robot frame.

    Attributes:
        actuation: (n, k) Pa, commanded.
        clouds: n captured surfaces S_j^p, (m_j, 3) m each.
        normals: n arrays (m_j, 3) of unit normals, oriented out of the surface.
    """

    actuation: Array
    clouds: list[Array]
    normals: list[Array]

    def __post_init__(self) -> None:
        """Refuse frames that cannot be trained on, with their number.

        Raises:
            SoftformError: If lengths differ, a cloud is too small, in millimetres or not finite, or lacks its normals.
        """
        if not len(self.actuation) == len(self.clouds) == len(self.normals) > 0:
            raise SoftformError(
                f"{len(self.actuation)} actuations, {len(self.clouds)} clouds and {len(self.normals)} sets of normals.",
                "Give as many of each, at least one.",
            )
        for number, (actuation, cloud, normals) in enumerate(
            zip(self.actuation, self.clouds, self.normals, strict=True)
        ):
            if fault := _fault(actuation, cloud, normals):
                raise SoftformError(f"Frame {number}: {fault}.", "Capture this frame again or leave it out.")

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.actuation)

    def part(self, chosen: NDArray[np.int64]) -> "Frames":
        """The frames of these numbers."""
        return Frames(self.actuation[chosen], [self.clouds[j] for j in chosen], [self.normals[j] for j in chosen])


def _fault(actuation: Array, cloud: Array, normals: Array) -> str | None:
    if not np.isfinite(actuation).all():
        return "its actuation is not finite"
    if cloud.ndim != 2 or cloud.shape[1] != 3 or cloud.shape != normals.shape:
        return f"points of shape {cloud.shape} with normals of shape {normals.shape}, not (m, 3) both"
    if len(cloud) < _LEAST_POINTS:
        return f"{len(cloud)} points are too few, {_LEAST_POINTS} are needed"
    if not (np.isfinite(cloud).all() and np.isfinite(normals).all()):
        return "it has points or normals that are not finite"
    if np.abs(cloud).max() > _LARGEST_COORDINATE_M:
        return f"a coordinate of {np.abs(cloud).max():.0f} m: the cloud seems to be in units of {1 / MM_PER_M} m"
    if np.abs(np.linalg.norm(normals, axis=1) - 1.0).max() > 1e-2:
        return "its normals are not unit vectors"
    return None
